"""Each arm's own constant, beside what its features say: a posterior from three sums an arm.

    score of an arm = what is shared (from features) + constant of the arm

An arm's interactions count as if all had the mean of their shared scores. So an arm is known by
three sums (interactions, rewards, shared scores), a reward changes its arm alone, and the order of
rewards changes nothing beyond rounding. Rewards of 0 and 1 have Laplace's approximation, others a
Gaussian posterior. The width of the prior is the likeliest one, constants integrated out, under a
log-normal prior of its own: it stays where it was as long as rewards say little, and shrinks the
constants away where features tell all, sooner where they are not drawn. Arms that were never chosen
have no constant, but for a few that are worth trying.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.types import Floats, Rows

PRIOR = 0.58
"""The first width of constants, in log odds or in deviations of rewards."""
_WIDTHS = np.geomspace(0.02, 4.0, 24)  # to choose from
_FOLD = 0.4  # the deviation of the logarithm of a width about that of the first; of draws
_FREE_FOLD = 3.0  # of constants that are not drawn: rewards alone tell their width
_NEWTON_STEPS = 30
_LONGEST = 2.0  # a step of Newton's method


@dataclass(frozen=True, eq=False)
class ArmConstants:
    """Sums of each arm (N,), and the prior of constants.

    `tried` are rows never chosen that have the prior's width. `noise` is the variance of a reward
    whose expectation is known, None for rewards of 0 and 1. `stamp` tells the draws of one
    posterior from those of another. Deviations are `temper` times as wide as they are.
    """

    counts: Floats
    rewards: Floats
    offsets: Floats
    tried: Rows
    width: float = PRIOR
    noise: float | None = None
    stamp: int = 0
    temper: float = 1.0

    @staticmethod
    def fit(
        rows: Rows,
        rewards: Floats,
        offsets: Floats,
        weights: Floats,
        *,
        arms: int,
        tried: Rows,
        noise: float | None,
        temper: float = 1.0,
    ) -> ArmConstants:
        """Return the constants of arms whose interactions had these rewards and shared scores."""

        def summed(numbers: Floats) -> Floats:
            return np.bincount(rows, weights=numbers, minlength=arms).astype(np.float64)

        made = ArmConstants(
            summed(weights),
            summed(weights * rewards),
            summed(weights * offsets),
            tried,
            PRIOR,
            noise,
            len(rows),
            temper,
        )
        return replace(made, width=made.likeliest_width())

    def __len__(self) -> int:
        return len(self.counts)

    def posterior(self, rows: Rows | None = None) -> tuple[Floats, Floats]:
        """Return means and deviations of the constants of all arms, or of some."""
        counts, rewards, offsets = (
            part if rows is None else part[rows]
            for part in (self.counts, self.rewards, self.offsets)
        )
        means, deviations = np.zeros(len(counts)), np.zeros(len(counts))
        seen = np.flatnonzero(counts > 0)
        means[seen], deviations[seen] = self._posterior_of(
            counts[seen], rewards[seen], offsets[seen]
        )
        is_tried = np.isin(np.arange(len(self)) if rows is None else rows, self.tried)
        deviations[is_tried & (counts == 0)] = self.width
        return means, self.temper * deviations

    def _posterior_of(
        self, counts: Floats, rewards: Floats, offsets: Floats
    ) -> tuple[Floats, Floats]:
        loose = 1.0 / self.width**2
        if self.noise is not None:
            precision = counts / self.noise + loose
            return (rewards - offsets) / self.noise / precision, 1.0 / np.sqrt(precision)
        middle, means = offsets / counts, np.zeros(len(counts))
        for _ in range(_NEWTON_STEPS):
            likely = 1.0 / (1.0 + np.exp(-np.clip(middle + means, -40.0, 40.0)))
            precision = counts * likely * (1.0 - likely) + loose
            step = (rewards - counts * likely - loose * means) / precision
            means += np.clip(step, -_LONGEST, _LONGEST)
        return means, 1.0 / np.sqrt(precision)

    def likeliest_width(self) -> float:
        """Return the width under which the rewards are likeliest, constants integrated out."""
        chosen = self.counts > 0
        sums = (self.counts[chosen], self.rewards[chosen], self.offsets[chosen])
        each = [replace(self, width=float(width))._evidence(*sums) for width in _WIDTHS]
        fold = _FOLD if self.temper else _FREE_FOLD
        found = np.array(each) - 0.5 * np.square(np.log(_WIDTHS / PRIOR) / fold)
        return float(_WIDTHS[int(np.argmax(found))])

    def _evidence(self, counts: Floats, rewards: Floats, offsets: Floats) -> float:
        """Return the log likelihood of the rewards of arms, by Laplace's approximation."""
        means, deviations = self._posterior_of(counts, rewards, offsets)
        if self.noise is None:
            odds = offsets / counts + means
            fit = rewards * odds - counts * np.logaddexp(0.0, odds)
        else:
            fit = (means * (rewards - offsets) - 0.5 * counts * np.square(means)) / self.noise
        pull = -0.5 * np.square(means / self.width) + np.log(deviations / self.width)
        return float((fit + pull).sum())

    def private(self, arms: int) -> ArmConstants:
        """Return a copy that may be changed where it stands, with room for so many arms."""
        missing = max(0, arms - len(self))
        counts, rewards, offsets = (
            np.concatenate([part, np.zeros(missing)])
            for part in (self.counts, self.rewards, self.offsets)
        )
        return replace(self, counts=counts, rewards=rewards, offsets=offsets)

    def observe(self, rows: Rows, rewards: Floats, offsets: Floats) -> None:
        """Learn more rewards where it stands; the prior stays as it was."""
        np.add.at(self.counts, rows, 1.0)
        np.add.at(self.rewards, rows, rewards)
        np.add.at(self.offsets, rows, offsets)

    # -- files

    def arrays(self) -> dict[str, NDArray[Any]]:
        noise = -1.0 if self.noise is None else self.noise
        return {
            "counts": self.counts,
            "rewards": self.rewards,
            "offsets": self.offsets,
            "tried": self.tried,
            "numbers": np.array([self.width, noise, self.stamp, self.temper]),
        }

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]]) -> ArmConstants:
        width, noise, stamp, temper = arrays["numbers"].tolist()
        sums = (arrays["counts"], arrays["rewards"], arrays["offsets"], arrays["tried"])
        if len({part.shape for part in sums[:3]}) > 1 or sums[0].ndim != 1:
            raise ValueError(f"constants of {[part.shape for part in sums[:3]]} arms")
        return ArmConstants(*sums, width, None if noise < 0 else noise, int(stamp), temper)
