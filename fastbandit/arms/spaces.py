"""Reads what a caller calls arms: a space of them, more of them, and those that were chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from fastbandit.arms.box import Box
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.ids import IdTable, list_ids
from fastbandit.arms.named_arms import named_arms, read_named
from fastbandit.arms.requests import ArmTable, Request, check_one_each, read_context
from fastbandit.arms.shared_texts import with_shared_texts
from fastbandit.errors import InputError, SettingError
from fastbandit.features.kinds import (
    Dense,
    FeaturesAndIds,
    Ids,
    Image,
    Point,
    Sparse,
    kind_of,
    shown,
)
from fastbandit.features.rewards import RewardKind, Weights
from fastbandit.features.tables import is_named
from fastbandit.types import Features, Inputs, Interactions


def read_both(
    context: Any, arms: Any, ids: Iterable[Any] | None, columns: Any, *, embed_ids: bool
) -> tuple[Features, Catalogue | BoxSpace, Features]:
    """Return the kind of contexts, an arm space, and the kind of its features."""
    context, arms = with_shared_texts(context, arms, ids)
    return read_context(context), *read_space(arms, ids, columns, embed_ids=embed_ids)


def read_space(
    arms: Any, ids: Iterable[Any] | None, columns: Any, *, embed_ids: bool
) -> tuple[Catalogue | BoxSpace, Features]:
    """Return an arm space, and the kind of its features."""
    if isinstance(arms, Box):
        if ids is not None or columns is not None:
            raise SettingError(
                f"A box needs no ids or columns, as every point of it is an arm: got "
                f"ids={shown(ids)} and columns={shown(columns)}. Leave them out."
            )
        return BoxSpace(arms), Point(tuple(arms.low), tuple(arms.high))
    if arms is None:
        table = IdTable(ids)
        return Catalogue.of(table, Inputs(ids=np.arange(len(table))), columns), Ids(len(table))
    kind: Features
    if is_named(arms):
        named = named_arms(arms, ids)
        kind, features, ids = named.kind, named.features, named.ids
        columns = (named.columns or None) if columns is None else columns
    else:
        kind = kind_of(arms, what="arms")
        features = kind.read(arms, what="arms")
    table = IdTable(ids, count=len(features))
    if not embed_ids:
        return Catalogue.of(table, features, columns), kind
    features = replace(features, ids=np.arange(len(table)))
    assert isinstance(kind, Dense | Sparse | Image)
    return Catalogue.of(table, features, columns), FeaturesAndIds(kind, Ids(len(table)))


def read_more(
    kind: Features, arms: Any, ids: Iterable[Any] | None, columns: Any, *, after: Catalogue
) -> tuple[list[Any] | None, Inputs, Any]:
    """Return ids, features and columns of arms that come in rows `after` those of a catalogue."""
    first = len(after.table)
    if arms is None and ids is None:
        raise InputError(
            "New arms need features, ids or both: got neither. Give arms=, a row for each."
        )
    if isinstance(kind, Ids) and arms is not None:
        raise InputError(
            f"This bandit knows its arms by their ids alone: got features of type "
            f"{type(arms).__name__}. Give ids=, or build a bandit from features."
        )
    listed = None if ids is None else list_ids(ids)
    if isinstance(kind, Ids):
        return listed, Inputs(ids=np.arange(first, first + len(listed or ()))), columns
    plain = kind.features if isinstance(kind, FeaturesAndIds) else kind
    if is_named(arms) and isinstance(plain, Dense) and plain.schema is not None:
        named = read_named(plain.schema.gathered(arms, what="arms"), plain.schema, listed)
        listed, features = named.ids, named.features
        columns = (named.columns or None) if columns is None else columns
    else:
        features = plain.read(arms, what="arms")
    if isinstance(kind, FeaturesAndIds):
        features = replace(features, ids=np.arange(first, first + len(features)))
    return listed, features, columns


class _Plan(Protocol):
    """What a table of arms needs to know of a bandit."""

    @property
    def context(self) -> Features: ...
    @property
    def reward(self) -> RewardKind: ...
    @property
    def seed(self) -> int: ...
    @property
    def weights(self) -> Weights: ...


def table_of(space: Catalogue | BoxSpace, plan: _Plan) -> ArmTable:
    ids = IdTable(count=1) if isinstance(space, BoxSpace) else space.table
    return ArmTable(ids, plan.context, plan.reward, plan.seed, plan.weights)


def read_request(
    space: Catalogue | BoxSpace,
    table: ArmTable,
    contexts: Any,
    *,
    k: int,
    eligible: Any,
    first: int,
    strict: bool = True,
) -> Request:
    """Check a request whose first decision is number `first` of the bandit's life.

    Unless `strict`, eligible ids that no arm has are dropped.
    """
    if isinstance(space, BoxSpace) and eligible is not None:
        raise SettingError(
            "Eligible arms need a catalogue: got a box, in which every point is an arm. Make the "
            "box smaller instead."
        )
    rows = None if isinstance(space, BoxSpace) else space.rows
    return table.read_request(
        contexts, k=k, eligible=eligible, first=first, rows=rows, strict=strict
    )


def catalogue_of(space: Catalogue | BoxSpace, doing: str) -> Catalogue:
    """Return a space as a catalogue, if it is one; `doing` says what one is needed for."""
    if isinstance(space, BoxSpace):
        raise SettingError(f"One cannot {doing} a box: every point of it is an arm.")
    return space


def read_interactions(
    space: Catalogue | BoxSpace,
    table: ArmTable,
    kind: Features,
    *,
    contexts: Any,
    arms: Any,
    rewards: Any,
) -> Interactions:
    """Read what happened: contexts, the arms that were chosen for them, and rewards."""
    if not isinstance(space, BoxSpace):
        feedback = table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        features = space.features.take(feedback.rows)
        read = (feedback.contexts, features, feedback.rewards)
        return Interactions(*read, rows=feedback.rows, outcomes=feedback.outcomes)
    assert table.context is not None
    inputs = table.context.read(contexts, what="contexts")
    values = kind.read(arms, what="arms")
    check_one_each(len(inputs), len(values))
    space.box.check(values)
    found, outcomes = table.read_rewards(rewards, count=len(inputs))
    return Interactions(inputs, values, found, outcomes=outcomes)
