"""LinearTS on a continuum, as the FastBandit paper plays it: on 1,000 points of the box."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.requests import read_context
from fastbandit.baselines.linear import LinearTS
from fastbandit.errors import SettingError
from fastbandit.features.rewards import RewardKind
from fastbandit.types import Decision, Features
from lab.baselines.points import BoxTable, cover

if TYPE_CHECKING:
    from fastbandit.arms.box import Box

_BLOCK = 2**22


class GridLinearTS:
    """Thompson sampling with rewards linear in a point's coordinates, and an intercept.

    The box becomes `points` arms: a grid in one dimension, Roberts' sequence in more. Being
    linear it can only prefer a corner, which is the point of comparing with it. A reward at
    any other point of the box is learned as the nearest arm's.
    """

    def __init__(
        self,
        *,
        box: Box,
        context: int | Features = 1,
        reward: RewardKind = "real",
        seed: int = 0,
        points: int = 1000,
        ridge: float = 1.0,
        scale: float = 1.0,
    ) -> None:
        if not isinstance(points, int | np.integer) or points < 2:
            raise SettingError(
                f"A grid needs at least 2 points: got {points!r}. Use 1000, as the paper does."
            )
        self._table = BoxTable(box, read_context(context), reward, seed)
        self._shares = cover(int(points), box.dim)
        self._linear = LinearTS(
            arms=np.pad(self._shares, ((0, 0), (0, 1)), constant_values=1.0),
            context=context,
            reward=reward,
            seed=seed,
            ridge=ridge,
            scale=scale,
        )

    def select(self, contexts: Any, *, explore: bool = True) -> Decision:
        """Choose the best point of the grid for each context, under a draw of its own."""
        decision = self._linear.select(contexts, explore=explore)
        points = self._table.values(self._shares[decision.rows[:, 0]])
        return replace(decision, arms=points, rows=np.zeros_like(decision.rows))

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from the rewards of points."""
        shares, _ = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        self._linear.update(contexts=contexts, arms=self._nearest(shares), rewards=rewards)

    def _nearest(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        parts = [
            np.square(part[:, None] - self._shares).sum(axis=2).argmin(axis=1)
            for part in _split(shares, self._shares.size)
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _split(shares: NDArray[np.float64], width: int) -> Iterator[NDArray[np.float64]]:
    size = max(1, _BLOCK // width)
    return (shares[start : start + size] for start in range(0, len(shares), size))
