"""Encodes what a frozen bandit is given, and decodes its scores into units of reward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.partitions import Floats
from fastbandit.errors import InputError, ShapeError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, shown
from fastbandit.features.rewards import RewardKind
from fastbandit.features.schema import Schema
from fastbandit.features.tables import is_named
from fastbandit.runtime.encodings import Encoding, LinearEncoding, typical_inputs
from fastbandit.types import Inputs

_UNKNOWN = np.iinfo(np.int64).max
_FLAT = 1e-3  # columns that move an arm so little, beside others, cannot be told from its point


@dataclass(frozen=True)
class Codec:
    """Encodings of contexts and arms, and units of reward; also whose seed and version they are."""

    context: Encoding | LinearEncoding
    arm: Encoding
    inverse: Floats
    centre: Floats
    reward: RewardKind
    reward_shift: float
    reward_scale: float
    seed: int
    version: int

    @property
    def schema(self) -> Schema | None:
        """What contexts are read by, where they have names."""
        return getattr(self.context.kind, "schema", None)

    @property
    def typical(self) -> Inputs:
        """The context whose features are all typical."""
        return typical_inputs(self.context)

    @property
    def origin(self) -> NDArray[np.float64]:
        """The coordinates of an arm whose embedding is all zeros."""
        return np.asarray(-self.centre.astype(np.float64) @ self.inverse.astype(np.float64))

    @cached_property
    def arm_axes(self) -> tuple[NDArray[np.float64], ...]:
        """What dense columns of arms add to coordinates, typical ones, where these lead, and back.

        The last has no rows where coordinates do not tell the columns apart.
        """
        arm, inverse = self.arm, self.inverse.astype(np.float64)
        columns = arm.matrix[:, :-1].T.astype(np.float64) @ inverse  # (C, D)
        usual = np.asarray(arm.typical if arm.typical.size else np.zeros(len(columns)), np.float64)
        origin = self.origin + arm.matrix[:, -1].astype(np.float64) @ inverse + usual @ columns
        is_known = 0 < len(columns) <= columns.shape[1] and np.linalg.cond(columns) < 1 / _FLAT
        solver = np.linalg.pinv(columns) if is_known else np.zeros((0, 0))
        return columns, usual, origin, np.asarray(solver, np.float64)

    @cached_property
    def offers(self) -> dict[bytes, Any]:
        """Arms that came with requests, as JSON, and what became of each: those of late."""
        return {}

    def read(self, contexts: Any) -> Inputs:
        """Read contexts and check them; those that come as Inputs were checked by the caller."""
        if isinstance(contexts, Inputs):
            return contexts
        return self.context.kind.read(contexts, what="contexts")

    def read_one(self, context: Any) -> Inputs:
        """Read one context and check it, unless it comes as Inputs."""
        if isinstance(context, Inputs):
            return context
        if isinstance(context, Mapping) and self.schema is not None:
            return Inputs(dense=self.schema.encode_one(context)[None])
        is_row = isinstance(self.context.kind, Dense) and not is_named(context)
        rows = np.asarray(context)[None] if is_row else context
        inputs = self.context.kind.read(rows, what="contexts")
        if len(inputs) != 1:
            raise ShapeError(
                f"One context needs one row of features: got {len(inputs)}. Give many contexts "
                f"to select()."
            )
        return inputs

    def points(self, arms: Any, ids: list[Any] | None) -> Floats:
        """Return the coordinates of new arms."""
        inputs = self._read_arms(arms, ids)
        return np.asarray((self.arm.embed(inputs) - self.centre) @ self.inverse, np.float32)

    def _read_arms(self, arms: Any, ids: list[Any] | None) -> Inputs:
        kind = self.arm.kind
        if isinstance(kind, Ids):
            if arms is not None or ids is None:
                raise InputError(
                    f"This bandit knows its arms by their ids alone: got arms={shown(arms)} and "
                    f"ids={shown(ids)}. Give ids=, and no features."
                )
            return Inputs(ids=np.full(len(ids), _UNKNOWN))
        if isinstance(kind, FeaturesAndIds):
            features = kind.features.read(arms, what="arms")
            return replace(features, ids=np.full(len(features), _UNKNOWN))
        return kind.read(arms, what="arms")

    def in_reward(self, score: float) -> float:
        """Turn one score into units of reward."""
        if self.reward == "binary":
            return 1 / (1 + math.exp(-score)) if score > -500 else 0.0
        return score * self.reward_scale + self.reward_shift

    def in_rewards(self, scores: Floats) -> Floats:
        """Turn scores into units of reward."""
        with np.errstate(over="ignore"):
            rewards = scores * np.float32(self.reward_scale) + np.float32(self.reward_shift)
            if self.reward == "binary":
                rewards = 1 / (1 + np.exp(-scores))
        return np.where(np.isneginf(scores), -np.inf, rewards).astype(np.float32)
