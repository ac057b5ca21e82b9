"""What every bandit and baseline reads and answers: requests, feedback, decisions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.eligibility import draw_eligible, read_eligible
from fastbandit.arms.ids import ArmIds, IdTable
from fastbandit.arms.rows import ArmRows
from fastbandit.arms.stale_ids import drop_stale
from fastbandit.declaration import check_seed
from fastbandit.errors import SettingError, ShapeError
from fastbandit.features.kinds import Dense, is_size, kind_of, shown
from fastbandit.features.rewards import (
    Outcomes,
    RewardKind,
    Weights,
    check_reward_kind,
    combined,
    read_outcomes,
    read_rewards,
)
from fastbandit.features.schema import Schema
from fastbandit.features.tables import is_named, table_of
from fastbandit.noise.philox import decision_seeds
from fastbandit.types import Decision, Features, Inputs


@dataclass(frozen=True)
class Request:
    """Contexts to decide for, the seeds of the decisions, and the arms they may take.

    `dropped` counts the ids of these that are stale, for each context.
    """

    contexts: Inputs
    seeds: NDArray[np.uint64]
    eligible: NDArray[np.bool_] | None
    k: int
    dropped: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Feedback:
    """Contexts, the rows chosen for them, and the rewards that came."""

    contexts: Inputs
    rows: NDArray[np.int64]
    rewards: NDArray[np.float32]
    outcomes: Outcomes | None = None


@dataclass(frozen=True)
class ArmTable:
    """The arms' ids, and how to read what is said about them."""

    ids: ArmIds
    context: Features | None
    reward: RewardKind
    seed: int
    weights: Weights = ()

    def __post_init__(self) -> None:
        check_reward_kind(self.reward)
        check_seed(self.seed)

    def read_request(
        self,
        contexts: Any,
        *,
        k: int,
        eligible: Any,
        first: int,
        rows: ArmRows | None = None,
        strict: bool = True,
    ) -> Request:
        """Check a request whose first decision is number `first` of the bandit's life.

        `rows` are those of the arms, where some may not be live or have columns. Unless `strict`,
        eligible ids that are not among them are dropped.
        """
        if not is_size(k):
            raise SettingError(
                f"The number of arms k needs to be at least 1: got {k!r}. Ask for one or more."
            )
        inputs = self._read_contexts(contexts)
        dropped = np.zeros(len(inputs), dtype=np.int64)
        if rows is not None and not strict:
            eligible, dropped = drop_stale(eligible, rows, contexts=len(inputs))
        if rows is None:
            mask = read_eligible(eligible, self.ids, contexts=len(inputs))
        else:
            mask = rows.eligible(eligible, contexts=len(inputs))
        seeds = decision_seeds(self.seed, first, len(inputs))
        return Request(inputs, seeds, mask, int(k), dropped)

    def read_feedback(self, *, contexts: Any, arms: Iterable[Any], rewards: Any) -> Feedback:
        """Check what happened: one arm and one reward for each context."""
        inputs = self._read_contexts(contexts)
        rows = self.ids.rows(arms)
        check_one_each(len(inputs), len(rows))
        return Feedback(inputs, rows, *self.read_rewards(rewards, count=len(inputs)))

    def read_rewards(self, raw: Any, *, count: int) -> tuple[NDArray[np.float32], Outcomes | None]:
        """Return rewards, and the outcomes that they are combined of where they are."""
        if not self.weights:
            return read_rewards(raw, kind=self.reward, count=count), None
        outcomes = read_outcomes(raw, count=count)
        return combined(outcomes, self.weights, count=count), outcomes

    def decide(
        self,
        request: Request,
        rows: NDArray[np.int64],
        scores: NDArray[np.floating[Any]],
        *,
        version: int,
        evaluations: int = 0,
        uniform: bool = False,
    ) -> Decision:
        """Return the decision for chosen rows (B, k), after so many `evaluations` each."""
        batch = len(request.seeds)
        return Decision(
            arms=self._name(rows),
            rows=rows,
            scores=scores.astype(np.float32),
            seeds=request.seeds,
            version=version,
            uniform=uniform,
            evaluations=np.full(batch, evaluations, dtype=np.int64),
            lookups=np.zeros(batch, dtype=np.int64),
            dropped=request.dropped,
        )

    def decide_uniformly(self, request: Request, *, version: int) -> Decision:
        rows = draw_eligible(request.seeds, request.eligible, arms=len(self.ids), count=request.k)
        scores = np.where(rows >= 0, 0.0, -np.inf)
        return self.decide(request, rows, scores, version=version, uniform=True)

    def _read_contexts(self, contexts: Any) -> Inputs:
        if self.context is None and is_named(contexts):  # only how many there are matters
            return Inputs(dense=np.zeros((table_of(contexts, what="contexts").rows, 1), np.float32))
        kind = kind_of(contexts, what="contexts") if self.context is None else self.context
        return kind.read(contexts, what="contexts")

    def _name(self, rows: NDArray[np.int64]) -> list[Hashable] | list[list[Hashable]]:
        if rows.shape[1] == 1:
            return self.ids.ids(rows[:, 0])
        return [self.ids.ids(row[row >= 0]) for row in rows]


def check_one_each(contexts: int, arms: int) -> None:
    if arms != contexts:
        raise ShapeError(
            f"Each context needs one arm: got {contexts} contexts and {arms} arms. Give a context "
            f"once for each of its arms."
        )


def read_arms(arms: Any, ids: Iterable[Any] | None) -> tuple[IdTable, Inputs | None]:
    """Read the arms from features, from ids, or from both."""
    if arms is None and ids is None:
        raise SettingError(
            "A bandit needs arms: got neither features nor ids. Give one of the two."
        )
    features = None if arms is None else kind_of(arms, what="arms").read(arms, what="arms")
    return IdTable(ids, count=None if features is None else len(features)), features


def read_context(context: Any) -> Features:
    """Read a number of dimensions, a kind of features, a schema or a frame as a kind."""
    if isinstance(context, Schema):
        return Dense.of(context)
    if is_named(context):
        return kind_of(context, what="contexts")
    if isinstance(context, Features) and not isinstance(context, type):
        return context
    if not is_size(context):
        raise SettingError(
            f"The context needs to be the number of its features, a kind of them, a Schema, or a "
            f"frame to infer one from: got {shown(context)}. Give context=4 or context=frame, and "
            f"the contexts to select()."
        )
    dim: Any = context
    return Dense(int(dim))


def take_best(
    scores: NDArray[np.float64], eligible: NDArray[np.bool_] | None, *, count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the best eligible rows of (B, N) scores, best first: (B, count), then -1."""
    if eligible is not None:
        scores = np.where(eligible, scores, -np.inf)
    size = min(count, scores.shape[1])
    rows = np.sort(np.argpartition(-scores, size - 1, axis=1)[:, :size], axis=1)
    best = np.take_along_axis(scores, rows, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    best = _pad(np.take_along_axis(best, order, axis=1), count, -np.inf)
    rows = _pad(np.take_along_axis(rows, order, axis=1), count, -1)
    return np.where(np.isneginf(best), -1, rows), best


def _pad(array: NDArray[Any], count: int, filler: float) -> NDArray[Any]:
    missing = ((0, 0), (0, count - array.shape[1]))
    return np.pad(array, missing, constant_values=filler)
