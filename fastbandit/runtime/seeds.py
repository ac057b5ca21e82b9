"""The seeds of decisions: given by the caller, or one for each number of a bandit's life."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SettingError, ShapeError
from fastbandit.features.kinds import shown
from fastbandit.noise.draws import seed_of
from fastbandit.noise.philox import decision_seeds

Seeds = NDArray[np.uint64]


class SeedCounter:
    """Numbers decisions from `decisions` on, each once, whatever thread asks."""

    def __init__(self, seed: int, decisions: int) -> None:
        self.decisions = decisions
        self._seed, self._root = seed, np.uint64(seed % 2**64)
        self._lock = threading.Lock()

    def take(self, count: int) -> int:
        """Return the number of the next decision, and count so many as made."""
        with self._lock:
            first = self.decisions
            self.decisions += count
        return first

    def give_back(self, first: int | None, count: int) -> None:
        """Count decisions that were rejected as not made, unless others were asked for since."""
        with self._lock:
            if first is not None and self.decisions == first + count:
                self.decisions = first

    def seed_of(self, number: int) -> int:
        """Return the seed of a decision by its number."""
        return int(seed_of(self._root, number))

    def seeds_for(self, count: int, given: Any) -> tuple[int | None, Seeds]:
        """Return the number of the next decision, if it is numbered here, and seeds."""
        if given is not None:
            return None, read_seeds(given, count)
        first = self.take(count)
        return first, decision_seeds(self._seed, first, count)


def read_seeds(seeds: Any, count: int) -> Seeds:
    """Read one seed for each context."""
    array = np.array(seeds)
    if array.shape != (count,) or array.dtype.kind not in "iu" or (array < 0).any():
        raise ShapeError(
            f"Seeds need to be {count} whole numbers from 0 on, one for each context: got "
            f"{shown(array)} of {array.dtype}. Take them from Decision.seeds."
        )
    return array.astype(np.uint64)


def read_seed(seed: Any) -> int:
    """Read the seed of one decision."""
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise SettingError(
            f"A seed needs to be a whole number from 0 to 2**64 - 1: got {seed!r}. Take one from "
            f"Chosen.seed."
        )
    return int(seed)
