"""All interactions of an agent: contexts as they came, and as vectors scaled by all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.types import Features, Inputs
from lab.experiments.context_scaling import Scaling, Vectors

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass
class History:
    """All interactions of an agent so far; each addition renews the scaling of contexts."""

    kind: Features
    has_plain_words: bool = False
    contexts: Inputs | None = None
    rows: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rewards: Floats = field(default_factory=lambda: np.zeros(0))
    scaling: Scaling = field(default_factory=Scaling)

    def add(self, contexts: Any, arms: Any, rewards: Any) -> None:
        """Take more interactions, and scale by all contexts seen."""
        fresh = self.kind.read(contexts, what="contexts")
        seen = fresh if self.contexts is None else Inputs.stack([self.contexts, fresh])
        self.contexts = seen
        self.scaling = Scaling.of(self.kind, seen, has_plain_words=self.has_plain_words)
        self.rows = np.concatenate([self.rows, np.asarray(arms, dtype=np.int64)])
        self.rewards = np.concatenate([self.rewards, np.asarray(rewards, dtype=np.float64)])

    def vectors(self) -> Vectors:
        """Return the vectors of all contexts so far."""
        assert self.contexts is not None
        return self.scaling.vectors(self.contexts)

    def show(self, contexts: Any) -> Vectors:
        """Return the vectors of contexts to decide for."""
        return self.scaling.vectors(self.kind.read(contexts, what="contexts"))
