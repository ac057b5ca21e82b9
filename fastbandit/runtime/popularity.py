"""What version 0 decides by once rewards came: Thompson sampling by the arms' popularity.

Arms with the same record share a posterior, and one draw from it: the group whose draw is highest
is taken, then any eligible arm of it, each as likely. So the many arms that nobody tried weigh as
much as one, and not as the best of a hundred thousand draws. A decision's seed fixes its draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.eligibility import draw_eligible_row
from fastbandit.arms.ids import ArmIds
from fastbandit.errors import InputError
from fastbandit.noise.philox import Stream, normals_at
from fastbandit.runtime.parts import check_delta
from fastbandit.runtime.propensity import Propensities

OTHERS = -1
"""The row in a delta that stands for all arms which it does not name."""
_POINTS = 128  # of the integral behind a propensity

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


class Grouped(NamedTuple):
    """Eligible rows by group: those of group g are `rows[ends[g]:ends[g + 1]]`, in order."""

    rows: Rows
    ends: Rows


@dataclass(frozen=True, eq=False)
class Popularity:
    """The group of each row, 0 for the arms without a reward; each group's mean and deviation."""

    groups: NDArray[np.int32]
    means: Floats
    deviations: Floats
    _whole: dict[int, Grouped] = field(default_factory=dict)  # of so many rows, all eligible

    @staticmethod
    def of(rows: Any, means: Any, deviations: Any, *, arms: int) -> Popularity:
        """Return what a delta of version 0 says, `OTHERS` first, of so many arms."""
        own = np.zeros(arms + 1, dtype=np.float32)
        listed, middle, width = check_delta(own, np.asarray(rows) + 1, means, deviations)
        if not len(listed) or listed[0] != OTHERS + 1:
            raise InputError(
                f"A delta of version 0 needs row {OTHERS} first, all arms it does not name: got "
                f"{np.asarray(rows)[:1].tolist()}. Give that row the mean of all rewards."
            )
        both = np.stack([middle, width], axis=1).astype(np.float64)
        known, places = np.unique(both[1:], axis=0, return_inverse=True)
        groups = np.zeros(arms, dtype=np.int32)
        groups[listed[1:] - 1] = 1 + places.reshape(-1)
        posteriors = np.concatenate([both[:1], known])
        return Popularity(groups, posteriors[:, 0], posteriors[:, 1])

    def greedy(self) -> Popularity:
        """Return what takes the group with the highest mean."""
        return replace(self, deviations=np.zeros_like(self.deviations))

    def of_rows(self, rows: Rows) -> Popularity:
        """Return the same for some arms alone."""
        return Popularity(self.groups[rows], self.means, self.deviations)

    def grouped(self, rows: Rows | None, *, total: int) -> Grouped:
        """Sort eligible rows (None: all in range(total)) into groups; newer ones have no reward."""
        if rows is not None:
            return self._sorted(rows)
        if total not in self._whole:
            self._whole[total] = self._sorted(np.arange(total))
        return self._whole[total]

    def _sorted(self, eligible: Rows) -> Grouped:
        groups = self.groups.take(eligible, mode="clip")
        groups[np.searchsorted(eligible, len(self.groups)) :] = 0
        rest, some = np.flatnonzero(groups == 0), np.flatnonzero(groups)
        some = some[np.argsort(groups[some], kind="stable")]
        sizes = np.bincount(groups[some], minlength=len(self.means))
        sizes[0] = len(rest)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        return Grouped(eligible[np.concatenate([rest, some])], ends)

    def draw(self, seed: int, among: Grouped, *, count: int) -> Rows:
        """Draw up to `count` different rows: by groups, the highest draw first."""
        seeds, places = np.array([seed], dtype=np.uint64), np.arange(len(self.means))
        noise = normals_at(seeds, places, Stream.ARMS)[0]
        chosen: list[Rows] = []
        for group in np.argsort(-(self.means + self.deviations * noise), kind="stable").tolist():
            rows = among.rows[among.ends[group] : among.ends[group + 1]]
            left = count - sum(map(len, chosen))
            if len(rows) and left:
                chosen.append(draw_eligible_row(seed, rows, total=0, count=min(left, len(rows))))
        return np.concatenate(chosen)

    def propensities(self, among: Grouped, ids: ArmIds, *, epsilon: float) -> Propensities:
        """Return how likely each eligible arm is; nothing is drawn."""
        sizes = np.diff(among.ends)
        each = (1 - epsilon) * self._shares(sizes > 0) / np.maximum(sizes, 1)
        each += epsilon / sizes.sum()
        listed = among.rows[sizes[0] :]
        probabilities = np.repeat(each[1:], sizes[1:])
        order = np.argsort(-probabilities, kind="stable")
        return Propensities(
            rows=listed[order],
            arms=list(ids.ids(listed[order])),
            probabilities=probabilities[order],
            standard_errors=np.zeros(len(order)),
            rest=float(each[0]),
            eligible_count=int(sizes.sum()),
            draws=0,
            is_exact=True,
        )

    def _shares(self, is_there: NDArray[np.bool_]) -> Floats:
        """Return the probability that a group's draw is the highest of those that are there.

        For each, over even quantiles of its own draw, that all others' are below.
        """
        means, widths = self.means[is_there], np.maximum(self.deviations[is_there], 1e-12)
        quantiles = [NormalDist().inv_cdf((n + 0.5) / _POINTS) for n in range(_POINTS)]
        drawn = means[:, None] + widths[:, None] * np.array(quantiles)  # (groups, points)
        below = _normal_cdf((drawn[:, :, None] - means) / widths)  # (groups, points, groups)
        own = np.arange(len(means))
        below[own, :, own] = 1.0
        shares = np.zeros(len(is_there))
        shares[is_there] = below.prod(axis=2).mean(axis=1)
        return shares / shares.sum()


def _normal_cdf(numbers: Floats) -> Floats:
    """Return the standard normal distribution function, to 1e-7 (Abramowitz and Stegun 7.1.26)."""
    x = np.abs(numbers) / math.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * x)
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    tail = np.polyval([*reversed(terms), 0.0], t) * np.exp(-np.square(x)) / 2.0
    return np.where(numbers < 0, tail, 1.0 - tail)
