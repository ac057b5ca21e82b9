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
    if sums.pairs == 0:
        return None
    mean, half = sums.total / sums.pairs, _half(sums, around)
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return Mean(sums.pairs, mean, low, high, min(1.0, sums.open / sums.pairs))


def lift_of(sums: Sums, baseline: Sums) -> Mean | None:
    """Return by how much one mean exceeds the other, with the band of the difference."""
    ours, theirs = mean_of(sums), mean_of(baseline)
    if ours is None or theirs is None:
        return None
    lift, halves = ours.mean - theirs.mean, (_half(sums, None), _half(baseline, None))
    if halves[0] is None or halves[1] is None:
        return Mean(sums.pairs, lift, None, None, ours.open)
    half = sqrt(halves[0] ** 2 + halves[1] ** 2)
    return Mean(sums.pairs, lift, lift - half, lift + half, ours.open)


def _half(sums: Sums, around: Sums | None) -> float | None:
    spread, weight = _spread(sums), sums.pairs - 1
    if around is not None and around.pairs > 1:
        spread, weight = (
            spread + _BORROWED * _spread(around) / (around.pairs - 1),
            weight + _BORROWED,
        )
    return _WIDTH * sqrt(spread / weight / sums.pairs) if weight > 0 else None


def _spread(sums: Sums) -> float:
    """Return the sum of squared distances from the mean."""
    return max(0.0, sums.squares - sums.total**2 / sums.pairs)
