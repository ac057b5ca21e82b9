"""Rewards that drift: what a context is worth rotates with the rounds, at a known pace.

The environment keeps its contexts and arms; a round's rewards are those of its context rotated by a
rotation that depends on the round's number alone. So the best possible reward of every round is
known, and what was learned long ago misleads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastbandit.declaration import known_name
from fastbandit.errors import SettingError
from fastbandit.noise.philox import Stream, decision_seeds, normals
from lab.experiments.environment import FAR, Floats

KINDS = ("switch", "turn")


@dataclass(frozen=True)
class Drift:
    """A rotation of contexts that changes with the rounds.

    "switch": another rotation, drawn with the seed, after every `period` rounds; the first of
    them rotates nothing. "turn": steadily, by a full turn in the plane of each two coordinates
    within `period` rounds.
    """

    kind: str
    period: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        known_name("drift", self.kind, KINDS)
        if self.period < 1:
            raise SettingError(
                f"A drift needs a period of at least 1 round: got {self.period}. Raise it."
            )

    def __call__(self, contexts: Any, first: int) -> Floats:
        """Return the contexts (n, d) of rounds `first` and on as their rewards see them."""
        contexts = np.asarray(contexts, dtype=np.float64)
        rounds = np.arange(first, first + len(contexts))
        if self.kind == "turn":
            return _rotated(contexts, 2 * math.pi * (rounds % self.period) / self.period)
        rotated = np.empty_like(contexts)
        spells = rounds // self.period
        for spell in np.unique(spells):
            is_now = spells == spell
            rotated[is_now] = contexts[is_now] @ self._rotation(int(spell), contexts.shape[1])
        return rotated

    def _rotation(self, spell: int, dim: int) -> Floats:
        if spell == 0:
            return np.eye(dim)
        seeds = decision_seeds(self.seed, FAR + 8 + spell, 1)
        numbers = normals(seeds, dim * dim, Stream.TRAINING).astype(np.float64)
        axes, scales = np.linalg.qr(numbers.reshape(dim, dim))
        return np.asarray(axes * np.sign(np.diagonal(scales)))


def _rotated(contexts: Floats, angles: Floats) -> Floats:
    """Rotate each two coordinates by the angle of its row; an odd one stays."""
    rotated = contexts.copy()
    even, odd = slice(0, contexts.shape[1] // 2 * 2, 2), slice(1, None, 2)
    cosines, sines = np.cos(angles)[:, None], np.sin(angles)[:, None]
    rotated[:, even] = cosines * contexts[:, even] - sines * contexts[:, odd]
    rotated[:, odd] = sines * contexts[:, even] + cosines * contexts[:, odd]
    return rotated
