"""Means with their 95 % bands, from sums."""

from __future__ import annotations

from math import sqrt

from fastbandit.serving.console.answer import Mean
from fastbandit.serving.console.tally import Sums

_WIDTH = 1.96
_BORROWED = 10


def mean_of(sums: Sums, *, around: Sums | None = None) -> Mean | None:
    """Return the mean reward of chosen arms; None where there are none.

    A small group says little of its own spread (ten zeros in a row would have none at all), so
    it borrows that of the group `around` it, as if ten values came from there.
    """
    if sums.arms == 0:
        return None
    pending = min(1.0, sums.pending / sums.arms)
    return _mean(sums.arms, sums.total / sums.arms, _half(sums, around), pending)


def difference_of(sums: Sums, baseline: Sums) -> Mean | None:
    """Return by how much one mean exceeds the other, with the band of the difference."""
    ours, theirs = mean_of(sums), mean_of(baseline)
    if ours is None or theirs is None:
        return None
    halves = _half(sums, None), _half(baseline, None)
    half = None if halves[0] is None or halves[1] is None else sqrt(halves[0] ** 2 + halves[1] ** 2)
    return _mean(sums.arms, ours.mean - theirs.mean, half, ours.pending)


def _mean(count: int, mean: float, half: float | None, pending: float) -> Mean:
    if half is None:
        return Mean(count, mean, None, None, pending)
    return Mean(count, mean, mean - half, mean + half, pending)


def _half(sums: Sums, around: Sums | None) -> float | None:
    """Return half the width of a band, None where one value says nothing of it."""
    spread, weight = _spread(sums), sums.arms - 1
    if around is not None and around.arms > 1:
        spread += _BORROWED * _spread(around) / (around.arms - 1)
        weight += _BORROWED
    return _WIDTH * sqrt(spread / weight / sums.arms) if weight > 0 else None


def _spread(sums: Sums) -> float:
    """Return the sum of squared distances from the mean."""
    return max(0.0, sums.squares - sums.total**2 / sums.arms)
