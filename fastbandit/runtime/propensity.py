"""Uniform mixing: with probability epsilon any eligible arm; and how likely each arm was.

A decision is uniform among the eligible arms with probability epsilon, else the policy's own.
The decision's seed fixes both, so a replay repeats them. Of the stream
`UNIFORM_CHOICE`, block 2**32 decides between the two; blocks from 0 on draw the arms, as they
do before a bandit has learned anything (`fastbandit.arms.eligibility.draw_eligible`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import ArmIds
from fastbandit.errors import SettingError, UnknownArmError
from fastbandit.noise.draws import number_of, seeds_from
from fastbandit.noise.philox import Stream, philox
from fastbandit.runtime.effects import DRAWN
from fastbandit.runtime.fold import DROPOUT, HEADS, LAST_LAYER
from fastbandit.runtime.kernel import ASCENT, POSTERIOR, SCALE, SEARCH
from fastbandit.runtime.parts import FAR, FrozenModel

Seeds = NDArray[np.uint64]
_COIN = 2**32
_HALF = np.uint64(32)


@dataclass(frozen=True)
class Propensities:
    """How likely each eligible arm was to be chosen for one context.

    `rows` and `arms` are those that were drawn, likeliest first, with their `probabilities`
    and the `standard_errors` of these. Each of the other eligible arms has the
    probability `rest`; all of them sum to 1. None is below epsilon / eligible arms. `is_exact`
    says that nothing was drawn: the policy always takes the one arm listed, but for epsilon.
    """

    rows: NDArray[np.int64]
    arms: list[Any]
    probabilities: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    rest: float
    eligible_count: int
    draws: int
    is_exact: bool

    def of(self, arm: Any) -> float:
        """Return the probability of an arm that was eligible."""
        if arm in self.arms:
            return float(self.probabilities[self.arms.index(arm)])
        if len(self.arms) == self.eligible_count:
            raise UnknownArmError(
                f"An arm needs to have been eligible to have a probability: got {arm!r}, and all "
                f"{self.eligible_count} eligible arms are listed. Correct its id."
            )
        return self.rest


def check_epsilon(epsilon: float) -> float:
    """Raise unless epsilon is a probability."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 <= epsilon <= 1:
        raise SettingError(
            f"The epsilon of uniform mixing needs to be a probability: got {epsilon!r}. Use 0 "
            f"for none, 0.01 for one decision in a hundred."
        )
    return float(epsilon)


def is_uniform(seed: int, epsilon: float) -> bool:
    """Return whether the decision of a seed is uniform."""
    return int(number_of(np.uint64(seed), _COIN, int(Stream.UNIFORM_CHOICE))) < _bar(epsilon)


def are_uniform(seeds: Seeds, epsilon: float) -> NDArray[np.int64]:
    """Return the positions of the decisions that are uniform."""
    if epsilon == 0:
        return np.empty(0, dtype=np.int64)
    blocks = np.array([_COIN], dtype=np.uint64)
    words = philox(seeds, blocks, int(Stream.UNIFORM_CHOICE))[:, 0].astype(np.uint64)
    numbers = words[:, 0] | (words[:, 1] << _HALF)
    if epsilon == 1:
        return np.arange(len(seeds))
    return np.flatnonzero(numbers < np.uint64(_bar(epsilon)))


def is_certain(model: FrozenModel) -> bool:
    """Return whether a policy takes the same arm whatever the seed, but for epsilon."""
    is_drawn = (
        model.counts[POSTERIOR] in (DROPOUT, LAST_LAYER, HEADS, DRAWN) and model.numbers[SCALE] > 0
    )
    return not is_drawn and model.counts[SEARCH] != ASCENT  # which starts anywhere


def propensity_seeds(seed: int, draws: int) -> Seeds:
    """Return the seeds of the draws behind propensities."""
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise SettingError(
            f"The number of draws needs to be at least 1: got {draws!r}. Use 1000, or more for "
            f"smaller standard errors."
        )
    seeds = np.empty(int(draws), dtype=np.uint64)
    seeds_from(np.uint64(seed % 2**64), FAR, seeds)
    return seeds


def propensities_of(
    drawn: NDArray[np.int32],
    ids: ArmIds,
    *,
    eligible_count: int,
    epsilon: float,
    is_exact: bool,
) -> Propensities:
    """Turn the rows that were drawn into probabilities."""
    counted = sorted(Counter(drawn.tolist()).items(), key=lambda it: (-it[1], it[0]))
    rows, counts = np.array(counted, dtype=np.int64).reshape(-1, 2).T
    shares, rest = counts / len(drawn), epsilon / eligible_count
    return Propensities(
        rows=rows,
        arms=list(ids.ids(rows)),
        probabilities=(1 - epsilon) * shares + rest,
        standard_errors=(1 - epsilon) * np.sqrt(shares * (1 - shares) / len(drawn)),
        rest=rest,
        eligible_count=eligible_count,
        draws=len(drawn),
        is_exact=is_exact,
    )


def _bar(epsilon: float) -> int:
    """Return the whole number of 64 bits below which a decision is uniform."""
    return math.floor(epsilon * 2.0**64)
