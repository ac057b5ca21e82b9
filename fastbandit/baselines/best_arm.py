"""The best policies that never look at the context: one arm for all, learned or known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.eligibility import draw_eligible
from fastbandit.arms.requests import ArmTable, Request, read_arms, read_context
from fastbandit.errors import SettingError
from fastbandit.features.rewards import RewardKind
from fastbandit.types import Decision, Features


class BestArmBandit:
    """The arm with the highest mean reward so far, over all contexts.

    Each arm's mean is held back as if it had earned the mean of all rewards `prior_count`
    times before, so that one lucky reward does not win: (sum + mean x prior_count) /
    (n + prior_count). Untried arms stand at the mean of all. Arms that are level share the
    decisions evenly, so before the first reward above the rest the choice is uniform; an arm
    that was lucky is tried, falls back, and makes room for the next. `explore` changes nothing.
    """

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        context: int | Features | None = None,
        reward: RewardKind = "real",
        seed: int = 0,
        prior_count: float = 10.0,
    ) -> None:
        if not 0.0 < prior_count < np.inf:
            raise SettingError(
                f"A prior_count needs to be above 0: got {prior_count}. Use 1 to trust rewards "
                f"early, 10 or more where they are noisy."
            )
        table, _ = read_arms(arms, ids)
        kind = None if context is None else read_context(context)
        self._table = ArmTable(table, kind, reward, seed)
        self._prior_count = prior_count
        self._sums = np.zeros(len(table))
        self._counts = np.zeros(len(table))
        self._decided = 0
        self._version = 0

    def select(
        self, contexts: Any, *, k: int = 1, eligible: Any = None, explore: bool = True
    ) -> Decision:
        """Choose the k arms with the highest means, the same for all contexts up to ties."""
        request = self._table.read_request(contexts, k=k, eligible=eligible, first=self._decided)
        if self._version == 0:
            decision = self._table.decide_uniformly(request, version=0)
        else:
            means = self._means()
            rows = _take_leaders(means, request)
            scores = np.where(rows >= 0, means[rows], -np.inf)
            decision = self._table.decide(request, rows, scores, version=self._version)
        self._decided += len(decision)
        return decision

    def update(self, *, contexts: Any, arms: Iterable[Any], rewards: Any) -> None:
        """Add the rewards to the arms that earned them."""
        feedback = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        size = len(self._sums)
        self._sums = self._sums + np.bincount(feedback.rows, feedback.rewards, minlength=size)
        self._counts = self._counts + np.bincount(feedback.rows, minlength=size)
        self._version += 1 if len(feedback.rows) else 0

    def _means(self) -> NDArray[np.float64]:
        overall = self._sums.sum() / self._counts.sum()
        held_back = self._sums + overall * self._prior_count
        return np.asarray(held_back / (self._counts + self._prior_count))


class FixedArmBandit:
    """The same arm for ever: with the best arm in hindsight, what no single arm can beat.

    Where that arm may not be chosen, and where more arms are asked for, others are drawn, all
    equally likely. Rewards are checked and forgotten; `explore` changes nothing.
    """

    def __init__(
        self,
        *,
        row: int,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        context: int | Features | None = None,
        reward: RewardKind = "real",
        seed: int = 0,
    ) -> None:
        table, _ = read_arms(arms, ids)
        kind = None if context is None else read_context(context)
        self._table = ArmTable(table, kind, reward, seed)
        self._row = _check_row(row, len(table))
        self._decided = 0
        self._version = 0

    def select(
        self, contexts: Any, *, k: int = 1, eligible: Any = None, explore: bool = True
    ) -> Decision:
        """Choose the arm for each context where it is allowed, and others for want of it."""
        request = self._table.read_request(contexts, k=k, eligible=eligible, first=self._decided)
        means = np.zeros(len(self._table.ids))
        means[self._row] = 1.0
        rows = _take_leaders(means, request)
        scores = np.where(rows >= 0, 0.0, -np.inf)
        decision = self._table.decide(request, rows, scores, version=self._version)
        self._decided += len(decision)
        return decision

    def update(self, *, contexts: Any, arms: Iterable[Any], rewards: Any) -> None:
        """Check what happened, and learn nothing from it."""
        feedback = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        self._version += 1 if len(feedback.rows) else 0


def _check_row(row: int, arms: int) -> int:
    is_whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
    if not is_whole or not 0 <= row < arms:
        raise SettingError(
            f"The row of the fixed arm needs to be from 0 to {arms - 1}: got {row!r}. Count the "
            f"arms from 0."
        )
    return int(row)


def _take_leaders(means: NDArray[np.float64], request: Request) -> NDArray[np.int64]:
    """Give the k highest allowed rows; arms that tie for the last places share them by lot."""
    arms, k = len(means), request.k
    eligible = np.ones((1, arms), dtype=np.bool_) if request.eligible is None else request.eligible
    leaders, level = [], np.zeros_like(eligible)
    for place, mask in enumerate(eligible):
        pool = np.flatnonzero(mask)
        order = pool[np.argsort(-means[pool], kind="stable")]
        last = means[order[:k][-1]]
        leaders.append(order[means[order] > last])
        level[place] = mask & (means == last)
    rows = draw_eligible(request.seeds, level, arms=arms, count=k)
    for place, row in enumerate(rows):
        above = leaders[place if len(leaders) > 1 else 0]
        rows[place] = np.concatenate([above, row])[:k]
    return rows
