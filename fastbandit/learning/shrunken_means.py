"""Popularity: each arm's mean reward, shrunken towards that of all arms.

How far is estimated by the moments of a one-way analysis of variance: where arms differ little
beside the noise of their rewards, all have nearly the mean of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

OTHERS = -1
"""Stands for the rows of all arms that have no reward yet."""
_UNKNOWN = 4.0  # where no arm has two rewards: an arm's own rewards outweigh the mean from 4 on
_LEAST, _MOST = 1.0, 1e4
_MOST_WHEN_EXPLORING = 20.0  # arms may differ more than the first rewards can show
_STEPS = 4.0  # so many steps of means in a deviation: arms with about the same share a draw

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShrunkenMeans:
    """Counts and sums of rewards by row, the mean of all, and how many rewards that is worth."""

    rows: Rows
    counts: Floats
    sums: Floats
    mean: float
    variance: float
    strength: float

    @staticmethod
    def of(rows: Rows, rewards: Floats) -> ShrunkenMeans:
        """Return the means of arms whose rewards came, at least one."""
        known, places = np.unique(rows, return_inverse=True)
        counts = np.bincount(places, minlength=len(known)).astype(np.float64)
        sums = np.bincount(places, weights=rewards, minlength=len(known)).astype(np.float64)
        mean, variance = float(np.mean(rewards)), float(np.var(rewards))
        strength = _strength(counts, sums, total=variance * len(rewards), mean=mean)
        return ShrunkenMeans(known, counts, sums, mean, variance, strength)

    def predicted(self, rows: Rows) -> Floats:
        """Return the mean of the arm in each row; that of all where it has no reward."""
        means = (self.sums + self.strength * self.mean) / (self.counts + self.strength)
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[places] == rows, means[places], self.mean)

    def posterior(self, *, is_binary: bool) -> tuple[Rows, Floats, Floats]:
        """Return rows with the means and deviations of their arms' rates, `OTHERS` first.

        Of binary rewards they are those of Beta distributions. Means are rounded to a part of a
        deviation, so that arms with about the same record have the same posterior.
        """
        strength = min(self.strength, _MOST_WHEN_EXPLORING)
        counts, sums = (np.insert(each, 0, 0.0) for each in (self.counts, self.sums))
        total = self.counts.sum()
        mean = (self.mean * total + 0.5) / (total + 1.0) if is_binary else self.mean
        worth = counts + strength
        means = (sums + strength * mean) / worth
        if is_binary:
            deviations = np.sqrt(means * (1.0 - means) / (worth + 1.0))
        else:
            deviations = np.sqrt(max(self.variance, 1e-12) / worth)
            step = deviations[0] / _STEPS
            means = np.round(means / step) * step
        return np.insert(self.rows, 0, OTHERS), means, deviations


def _strength(counts: Floats, sums: Floats, *, total: float, mean: float) -> float:
    """Return the variance of rewards within arms over that of the means between arms."""
    count, arms = float(counts.sum()), len(counts)
    if arms < 2 or count <= arms:
        return _UNKNOWN
    between = float((counts * np.square(sums / counts - mean)).sum())
    within = max(0.0, total - between) / (count - arms)
    size = (count - float(np.square(counts).sum()) / count) / (arms - 1)
    spread = (between / (arms - 1) - within) / size
    return _MOST if spread * _MOST <= within else float(np.clip(within / spread, _LEAST, _MOST))
