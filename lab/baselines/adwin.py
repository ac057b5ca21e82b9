"""ADWIN: a window over a stream of numbers that forgets what came before their mean changed.

Bifet and Gavaldà, "Learning from time-changing data with adaptive windowing" (2007): an
exponential histogram holds the window in few buckets. While the means of an older and a newer part
differ by more than chance explains, its oldest bucket is dropped. The bound is that which the
paper uses in practice, with the variance of the window.
"""

from __future__ import annotations

import math

import numpy as np

from fastbandit.declaration import check_number

_CAPACITY = 5  # buckets of each size
_EVERY = 32  # numbers between two looks for a change
_FEWEST = 5  # numbers of each part that is compared


class Adwin:
    """The latest numbers, in [0, 1], since their mean last changed.

    `delta` bounds how likely a look finds a change where there is none.
    """

    def __init__(self, *, delta: float = 0.1) -> None:
        check_number("delta", delta, above_zero=True)
        self._delta = delta
        self._levels: list[list[tuple[float, float]]] = [[]]  # sums, sums of squares; oldest first
        self._count = 0
        self._added = 0

    def __len__(self) -> int:
        """Return how many numbers the window holds."""
        return self._count

    @property
    def mean(self) -> float:
        """The mean of the window, 0 where it is empty."""
        return sum(one for level in self._levels for one, _ in level) / max(1, self._count)

    def add(self, number: float) -> bool:
        """Take a number in; return whether older ones were forgotten."""
        self._levels[0].append((number, number * number))
        self._count += 1
        self._added += 1
        if len(self._levels[0]) > _CAPACITY:
            self._compress()
        return self._added % _EVERY == 0 and self._shrink()

    def _compress(self) -> None:
        """Join the two oldest buckets of each full level into one of the next."""
        for level, buckets in enumerate(self._levels):
            if len(buckets) <= _CAPACITY:
                return
            (one, one_squares), (two, two_squares) = buckets[:2]
            del buckets[:2]
            if level + 1 == len(self._levels):
                self._levels.append([])
            self._levels[level + 1].append((one + two, one_squares + two_squares))

    def _shrink(self) -> bool:
        before = self._count
        while self._has_changed():
            oldest = len(self._levels) - 1
            del self._levels[oldest][0]
            self._count -= 2**oldest
            if not self._levels[oldest] and oldest:
                self._levels.pop()
        return self._count < before

    def _has_changed(self) -> bool:
        """Compare the older and the newer part, at each border of two buckets."""
        if self._count < 2 * _FEWEST:
            return False
        levels = range(len(self._levels) - 1, -1, -1)  # a later level holds older numbers
        buckets = np.array([bucket for level in levels for bucket in self._levels[level]])
        sizes = np.array([2.0**level for level in levels for _ in self._levels[level]])
        sums, older = buckets[:, 0].cumsum(), sizes.cumsum()
        mean = sums[-1] / self._count
        variance = max(0.0, buckets[:, 1].sum() / self._count - mean * mean)
        is_long = (older >= _FEWEST) & (self._count - older >= _FEWEST)
        sums_before, before = sums[is_long], older[is_long]
        after = self._count - before
        gaps = np.abs(sums_before / before - (sums[-1] - sums_before) / after)
        shares = 1.0 / before + 1.0 / after
        rarity = math.log(2.0 * math.log(self._count) / self._delta)
        bounds = np.sqrt(2.0 * shares * variance * rarity) + 2.0 / 3.0 * shares * rarity
        return bool((gaps > bounds).any())
