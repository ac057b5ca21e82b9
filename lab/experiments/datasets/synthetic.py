"""h1, h1b, h2 and h3 on the unit sphere, as an experiment plays them; their rewards may drift."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import known_name
from fastbandit.demo.synthetic import Floats, Synthetic
from fastbandit.features.rewards import RewardKind
from lab.experiments.drift import KINDS, Drift

ContextDrift = Callable[[Any, int], NDArray[np.floating[Any]]]
"""Turns the contexts of rounds, from a first one on, into those that their rewards see."""


class SyntheticRounds(Synthetic):
    """A synthetic environment without an end of rounds.

    With a `drift`, rewards are those of other contexts, in each round of others.
    """

    embed_ids: ClassVar[bool] = False
    reward: ClassVar[RewardKind] = "real"
    rounds: ClassVar[None] = None

    def __init__(
        self,
        function: str = "h1",
        dim: int = 4,
        arms: int = 10_000,
        *,
        noise: float = 1.0,
        seed: int = 0,
        drift: ContextDrift | None = None,
    ) -> None:
        super().__init__(function, dim, arms, noise=noise, seed=seed)
        self.name, self.drift = function, drift

    def expected(self, first: int, chosen: Any) -> Floats:
        """Return the expected rewards of the rows chosen in rounds `first` and on."""
        return self.means(self._drifted(first, len(chosen)), chosen)

    def observed(self, first: int, chosen: Any) -> Floats:
        """Return the rewards of rounds `first` and on; a round's noise is the same for any arm."""
        return self.noisy(first, self.expected(first, chosen))

    def ceiling(self, first: int, count: int) -> Floats:
        """Return the expected reward of the best arm in each round: (n,); O(n N)."""
        return self.best(self._drifted(first, count))[1]

    def best_arm(self, rounds: int) -> int:
        """Find the one arm that would earn most in the first `rounds`; O(rounds N)."""
        totals = np.zeros(self.size)
        for first in range(0, rounds, 500):
            contexts = self._drifted(first, min(500, rounds - first))
            for start, block in self.all_means(contexts):
                totals[start : start + block.shape[1]] += block.sum(axis=0)
        return int(totals.argmax())

    def average(self, contexts: Any) -> Floats:
        """Return the expected reward of a random arm for each context: (n,); O(n N)."""
        return sum(block.sum(axis=1) for _, block in self.all_means(contexts)) / self.size

    def _drifted(self, first: int, count: int) -> NDArray[np.floating[Any]]:
        """Return the contexts of rounds as their rewards see them."""
        contexts = self.contexts(first, count)
        return contexts if self.drift is None else self.drift(contexts, first)


def load(
    *,
    name: str,
    data: Path | None,
    seed: int,
    dim: int = 4,
    arms: int = 10_000,
    noise: float = 1.0,
    drift: str = "none",
    period: int = 1000,
) -> SyntheticRounds:
    """Make a synthetic environment; it needs no files."""
    known_name("drift", drift, ("none", *KINDS))
    drifting = None if drift == "none" else Drift(drift, period, seed)
    return SyntheticRounds(name, dim, arms, noise=noise, seed=seed, drift=drifting)
