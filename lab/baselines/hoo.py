"""Hierarchical optimistic optimisation of a box: a tree of ever smaller partitions.

Bubeck, Munos, Stoltz and Szepesvári, "X-armed bandits" (2011). We differ in three things. The
bounds of a path are renewed after each visit, those of the whole tree only when rewards came:
renewing all at each round costs the square of the rounds. Decisions that wait for their reward
count as visits that change no mean, so that a batch spreads. The confidence radius is that of
noise with a standard deviation of `width`; the paper's is that of any rewards in [0, 1].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.requests import Request, read_context
from fastbandit.errors import SettingError
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import Stream, uniforms
from fastbandit.types import Decision, Features
from lab.baselines.points import BoxTable, Floats

if TYPE_CHECKING:
    from fastbandit.arms.box import Box


class Pick(NamedTuple):
    """A point, how high the tree thinks of it, and how many partitions were looked at for it."""

    share: Floats
    score: float
    partitions: int


class HOO:
    """The partition with the highest upper bound, halved after each visit along its longest side.

    A partition at depth h is taken to vary by `roughness` x `decay`ʰ. By default `decay` is
    2^(-1/d): halving each side once halves the variation, as for a Lipschitz function, and
    `roughness` 1 covers rewards in [0, 1]. A visit's reward is taken to be off by `width`
    (1 is the paper's, and explores very long). Contexts are read and make no difference.
    """

    def __init__(
        self,
        *,
        box: Box,
        context: int | Features | None = None,
        reward: RewardKind = "real",
        seed: int = 0,
        roughness: float = 1.0,
        decay: float | None = None,
        width: float = 0.1,
    ) -> None:
        kind = None if context is None else read_context(context)
        self._table = BoxTable(box, kind, reward, seed)
        decay = 2.0 ** (-1.0 / box.dim) if decay is None else decay
        _check_settings(roughness, decay, width)
        self._tree = CellTree(box.dim, roughness=roughness, decay=decay, width=width)
        self._decided = 0
        self._version = 0

    def select(self, contexts: Any, *, explore: bool = True) -> Decision:
        """Choose a point for each context; without exploration the surest good partition's middle.

        Choices wait for their rewards until the next update, and spread meanwhile.
        """
        request = self._table.read_request(contexts, first=self._decided)
        if self._version == 0:
            decision = self._table.decide_uniformly(request)
        elif explore:
            within = uniforms(request.seeds, self._table.box.dim, Stream.POSTERIOR)
            decision = self._decide(request, [self._tree.pick(p) for p in within.astype(float)])
        else:
            decision = self._decide(request, [self._tree.favourite()] * len(request.seeds))
        self._decided += len(decision)
        return decision

    def _decide(self, request: Request, picks: list[Pick]) -> Decision:
        shares = np.array([pick.share for pick in picks]).reshape(-1, self._table.box.dim)
        return self._table.decide(
            request,
            shares,
            np.array([pick.score for pick in picks]),
            version=self._version,
            evaluations=np.array([pick.partitions for pick in picks], dtype=np.int64),
        )

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Add each reward to the partitions that its point lies in; nothing waits any more."""
        shares, numbers = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        if len(numbers) == 0:
            return
        self._tree.learn(shares, numbers)
        self._version += 1


class CellTree:
    """Partitions of the unit cube in arrays: partition 0 is all of it, children come by twos."""

    def __init__(self, dim: int, *, roughness: float, decay: float, width: float) -> None:
        self._roughness, self._decay, self._width = roughness, decay, width
        self._size = 1
        self._low, self._high = np.zeros((64, dim)), np.ones((64, dim))
        self._depth = np.zeros(64, dtype=np.int64)
        self._first_child = np.full(64, -1, dtype=np.int64)
        self._visits, self._waiting = np.zeros(64), np.zeros(64)
        self._sums = np.zeros(64)
        self._bound = np.full(64, np.inf)

    def __len__(self) -> int:
        return self._size

    def pick(self, within: Floats) -> Pick:
        """Walk down the highest bounds to a partition not yet visited, and take a point in it.

        `within` is where in the partition, from 0 to 1 along each side. The score is the bound of
        the last partition on the way that has one.
        """
        path, partition = [0], 0
        while self._visits[partition] + self._waiting[partition] > 0:
            child = int(self._first_child[partition])
            partition = child + int(self._bound[child + 1] > self._bound[child])
            path.append(partition)
        self._split(partition)
        self._waiting[path] += 1
        self._renew(path)
        share = self._low[partition] + within * (self._high[partition] - self._low[partition])
        bounds = self._bound[path]
        return Pick(share, float(bounds[np.isfinite(bounds)][-1]), len(path))

    def learn(self, shares: Floats, rewards: Floats) -> None:
        """Count rewards in the partitions on each point's way, down to the first without any."""
        self._waiting[:] = 0
        for share, reward in zip(shares, rewards, strict=True):
            partition = 0
            while True:
                is_new = self._visits[partition] == 0
                self._visits[partition] += 1
                self._sums[partition] += reward
                self._split(partition)
                if is_new:
                    break
                partition = self._child_of(partition, share)
        self._renew_all()

    def favourite(self) -> Pick:
        """Take the middle of the partition whose mean, less its radius, is highest of all."""
        seen = np.flatnonzero(self._visits[: self._size])
        visits = self._visits[seen]
        means = self._sums[seen] / visits
        radius = self._width * np.sqrt(2.0 * math.log(visits[0]) / visits)
        best = int((means - radius).argmax())
        middle = (self._low[seen[best]] + self._high[seen[best]]) / 2
        return Pick(middle, float(means[best]), len(seen))

    def _child_of(self, partition: int, share: Floats) -> int:
        child = int(self._first_child[partition])
        return child if (share <= self._high[child]).all() else child + 1

    def _split(self, partition: int) -> None:
        if self._first_child[partition] >= 0:
            return
        if self._size + 2 > len(self._visits):
            self._grow()
        child = self._size
        side = int((self._high[partition] - self._low[partition]).argmax())
        middle = (self._low[partition, side] + self._high[partition, side]) / 2
        for new in (child, child + 1):
            self._low[new], self._high[new] = self._low[partition], self._high[partition]
            self._depth[new] = self._depth[partition] + 1
        self._high[child, side] = self._low[child + 1, side] = middle
        self._first_child[partition] = child
        self._size += 2

    def _mean(self, partition: int) -> float:
        return float(self._sums[partition] / self._visits[partition])

    def _renew(self, path: list[int]) -> None:
        """Renew the bounds of a path; partitions without rewards have the mean of those above."""
        means: list[float] = []
        for partition in path:
            means.append(self._mean(partition) if self._visits[partition] > 0 else means[-1])
        total = math.log(self._visits[0] + self._waiting[0])
        for partition, mean in zip(reversed(path), reversed(means), strict=True):
            radius = self._width * math.sqrt(
                2.0 * total / (self._visits[partition] + self._waiting[partition])
            )
            upper = mean + radius + self._roughness * self._decay ** self._depth[partition]
            child = int(self._first_child[partition])
            self._bound[partition] = min(upper, max(self._bound[child], self._bound[child + 1]))

    def _renew_all(self) -> None:
        """Renew all bounds, level by level from the deepest; nothing waits now."""
        partitions = slice(0, self._size)
        visits, depth = self._visits[partitions], self._depth[partitions]
        is_seen, seen = visits > 0, np.maximum(visits, 1.0)
        radius = self._width * np.sqrt(2.0 * math.log(max(1.0, visits[0])) / seen)
        upper = self._sums[partitions] / seen + radius + self._roughness * self._decay**depth
        bound = np.where(is_seen, upper, np.inf)
        for level in _levels(depth):
            parents = level[is_seen[level]]
            child = self._first_child[parents]
            bound[parents] = np.minimum(bound[parents], np.maximum(bound[child], bound[child + 1]))
        self._bound[partitions] = bound

    def _grow(self) -> None:
        """Make room for twice as many partitions."""
        self._low, self._high = _doubled(self._low, 0.0), _doubled(self._high, 1.0)
        self._visits, self._sums = _doubled(self._visits, 0.0), _doubled(self._sums, 0.0)
        self._waiting, self._bound = _doubled(self._waiting, 0.0), _doubled(self._bound, np.inf)
        self._depth = _doubled(self._depth, 0)
        self._first_child = _doubled(self._first_child, -1)


def _doubled(array: NDArray[Any], filler: float) -> NDArray[Any]:
    return np.concatenate([array, np.full_like(array, filler)])


def _levels(depth: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the partitions of each depth, deepest first."""
    order = np.argsort(depth, kind="stable")
    starts = np.flatnonzero(np.diff(depth[order])) + 1
    return np.split(order, starts)[::-1]


def _check_settings(roughness: float, decay: float, width: float) -> None:
    if not 0.0 <= roughness < np.inf or not 0.0 <= width < np.inf:
        raise SettingError(
            f"The roughness and the width need to be numbers of at least 0: got {roughness} and "
            f"{width}. Use 1 for rewards in [0, 1] of which nothing is known."
        )
    if not 0.0 < decay < 1.0:
        raise SettingError(
            f"The decay needs to be between 0 and 1: got {decay}. Use None for a Lipschitz "
            f"function."
        )
