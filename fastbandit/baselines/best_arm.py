"""Policies that never look at the context: any arm, or one for all, learned or known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.eligibility import draw_eligible
from fastbandit.arms.requests import Feedback, Request
from fastbandit.baselines.baseline import Baseline
from fastbandit.declaration import check_number
from fastbandit.errors import SettingError
from fastbandit.types import Decision, Inputs


@dataclass(kw_only=True, eq=False, repr=False)
class RandomBandit(Baseline):
    """Every eligible arm is equally likely, for ever: the least that any policy should beat.

    Rewards are checked and forgotten. There is nothing to be greedy about: `explore` changes
    nothing.
    """

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        return self._table.decide_uniformly(request, version=self._version)


@dataclass(kw_only=True, eq=False, repr=False)
class BestArmBandit(Baseline):
    """The arm with the highest mean reward so far, over all contexts.

    Each arm's mean is held back as if it had earned the mean of all rewards `prior_count`
    times before, so that one lucky reward does not win: (sum + mean x prior_count) /
    (n + prior_count). Untried arms stand at the mean of all. Arms that are level share the
    decisions evenly, so before the first reward above the rest the choice is uniform; an arm
    that was lucky is tried, falls back, and makes room for the next. `explore` changes nothing.
    """

    prior_count: float = 10.0

    def _prepare(self, features: Inputs | None) -> None:
        super()._prepare(features)
        check_number("prior_count", self.prior_count, above_zero=True)
        self._sums = np.zeros(len(self._table.ids))
        self._counts = np.zeros(len(self._table.ids))

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        """Choose the k arms with the highest means, the same for all contexts up to ties."""
        if self._version == 0:
            return self._table.decide_uniformly(request, version=0)
        means = self._means()
        rows = _take_leaders(means, request)
        scores = np.where(rows >= 0, means[rows], -np.inf)
        return self._table.decide(request, rows, scores, version=self._version)

    def _learn(self, feedback: Feedback) -> None:
        super()._learn(feedback)
        size = len(self._sums)
        self._sums = self._sums + np.bincount(feedback.rows, feedback.rewards, minlength=size)
        self._counts = self._counts + np.bincount(feedback.rows, minlength=size)

    def _means(self) -> NDArray[np.float64]:
        overall = self._sums.sum() / self._counts.sum()
        held_back = self._sums + overall * self.prior_count
        return np.asarray(held_back / (self._counts + self.prior_count))


@dataclass(kw_only=True, eq=False, repr=False)
class FixedArmBandit(Baseline):
    """The same arm for ever: with the best arm in hindsight, what no single arm can beat.

    Where that arm is not eligible, and where more arms are asked for, others are drawn, all
    equally likely. Rewards are checked and forgotten; `explore` changes nothing.
    """

    row: int

    def _prepare(self, features: Inputs | None) -> None:
        super()._prepare(features)
        row, arms = self.row, len(self._table.ids)
        is_whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
        if not is_whole or not 0 <= row < arms:
            raise SettingError(
                f"The row of the fixed arm needs to be from 0 to {arms - 1}: got {row!r}. Count "
                f"the arms from 0."
            )

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        """Choose the arm for each context where it is eligible, and others for want of it."""
        means = np.zeros(len(self._table.ids))
        means[self.row] = 1.0
        rows = _take_leaders(means, request)
        scores = np.where(rows >= 0, 0.0, -np.inf)
        return self._table.decide(request, rows, scores, version=self._version)


def _take_leaders(means: NDArray[np.float64], request: Request) -> NDArray[np.int64]:
    """Return the k highest eligible rows; arms that tie for the last of them are drawn."""
    arms, k = len(means), request.k
    eligible = np.ones((1, arms), dtype=np.bool_) if request.eligible is None else request.eligible
    leaders, level = [], np.zeros_like(eligible)
    for number, mask in enumerate(eligible):
        pool = np.flatnonzero(mask)
        order = pool[np.argsort(-means[pool], kind="stable")]
        last = means[order[:k][-1]]
        leaders.append(order[means[order] > last])
        level[number] = mask & (means == last)
    rows = draw_eligible(request.seeds, level, arms=arms, count=k)
    for number, row in enumerate(rows):
        above = leaders[number if len(leaders) > 1 else 0]
        rows[number] = np.concatenate([above, row])[:k]
    return rows
