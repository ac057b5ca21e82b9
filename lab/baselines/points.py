"""What every baseline on a box reads and answers, and points that cover a box evenly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import IdTable
from fastbandit.arms.requests import ArmTable, Request
from fastbandit.errors import SettingError, ShapeError
from fastbandit.features.kinds import Dense
from fastbandit.features.rewards import RewardKind, read_rewards
from fastbandit.noise.philox import Stream, uniforms
from fastbandit.types import Decision, Features

if TYPE_CHECKING:
    from fastbandit.arms.box import Box

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BoxTable:
    """A box, and how to read what is said about its points.

    Policies think in shares: a point is (d,) numbers from 0 at the lowest to 1 at the highest
    corner. Without `context` any dense, sparse or image contexts are taken.
    """

    box: Box
    context: Features | None
    reward: RewardKind
    seed: int

    def __post_init__(self) -> None:
        if not hasattr(self.box, "cover"):
            raise SettingError(
                f"A policy on a continuum needs a box: got {type(self.box).__name__}. Write "
                f"Box([0.0], [1.0])."
            )
        self._table()

    def read_request(self, contexts: Any, *, first: int) -> Request:
        """Check contexts whose first decision is number `first` of the bandit's life."""
        return self._table().read_request(contexts, k=1, eligible=None, first=first)

    def read_feedback(self, *, contexts: Any, arms: Any, rewards: Any) -> tuple[Floats, Floats]:
        """Check what happened; return the shares of the points (n, d), and the rewards."""
        count = len(self._table().read_request(contexts, k=1, eligible=None, first=0).seeds)
        values = Dense(self.box.dim).read(arms, what="arms")
        if len(values) != count:
            raise ShapeError(
                f"Each context needs one arm: got {count} contexts and {len(values)} arms. "
                f"Give a context once for each of its arms."
            )
        self.box.check(values)
        numbers = read_rewards(rewards, kind=self.reward, count=count)
        low, high = self._corners()
        shares = (np.asarray(values.dense, dtype=np.float64) - low) / (high - low)
        return np.clip(shares, 0.0, 1.0), numbers.astype(np.float64)

    def decide(
        self,
        request: Request,
        shares: Floats,
        scores: Floats,
        *,
        version: int,
        evaluations: int | NDArray[np.int64],
    ) -> Decision:
        """Make a decision of the points chosen (B, d); `evaluations` were made for each."""
        batch = len(request.seeds)
        rows = np.zeros((batch, 1), dtype=np.int64)
        decision = self._table().decide(request, rows, scores[:, None], version=version)
        counts = np.broadcast_to(np.asarray(evaluations, dtype=np.int64), (batch,)).copy()
        return replace(decision, arms=self.values(shares), evaluations=counts)

    def decide_uniformly(self, request: Request) -> Decision:
        """Let every point be equally likely."""
        shares = uniforms(request.seeds, self.box.dim, Stream.UNIFORM_CHOICE).astype(np.float64)
        decision = self.decide(request, shares, np.zeros(len(shares)), version=0, evaluations=0)
        return replace(decision, uniform=True)

    def values(self, shares: Floats) -> NDArray[np.float32]:
        """Turn shares into the user's units."""
        low, high = self._corners()
        return (low + (high - low) * shares).astype(np.float32)

    def _corners(self) -> tuple[Floats, Floats]:
        return np.asarray(self.box.low), np.asarray(self.box.high)

    def _table(self) -> ArmTable:
        return ArmTable(IdTable(count=1), self.context, self.reward, self.seed)


def cover(count: int, dim: int, *, shift: Floats | None = None) -> Floats:
    """Return `count` points spread over the unit cube: a grid in one dimension, else Roberts'.

    Roberts' sequence adds the powers of one irrational number, modulo 1; `shift` (d,) moves
    all points, modulo 1.
    """
    if dim == 1:
        return np.linspace(0.0, 1.0, count)[:, None]
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (dim + 1))
    strides = root ** -np.arange(1.0, dim + 1)
    start = np.full(dim, 0.5) if shift is None else shift
    return (start + np.arange(1, count + 1)[:, None] * strides) % 1.0
