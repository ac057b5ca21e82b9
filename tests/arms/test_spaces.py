"""What a caller calls arms becomes a space, and what was chosen becomes interactions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import vectors_of
from plans import plan_for

from fastbandit import Box, Dense, FeaturesAndIds, Ids
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.spaces import (
    read_interactions,
    read_more,
    read_request,
    read_space,
    table_of,
)
from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.reward.model import NetworkSettings

BOX = Box([0.0, 0.0], [1.0, 2.0])
CONTEXTS = np.zeros((2, 3), dtype=np.float32)
NETWORK = NetworkSettings(embedding=4, hidden=(8,), weight_penalty=0.1, dropout_penalty=1.0)
PLAN = plan_for(Dense(3), Dense(2), NETWORK)


def _three() -> Catalogue:
    space, _ = read_space(None, ["a", "b", "c"], None, embed_ids=False)
    assert isinstance(space, Catalogue)
    return space


def box_interactions(arms: Any) -> Any:
    space, kind = read_space(BOX, None, None, embed_ids=False)
    table = table_of(space, PLAN)
    return read_interactions(space, table, kind, contexts=CONTEXTS, arms=arms, rewards=[1.0, 2.0])


def test_features_become_a_catalogue() -> None:
    space, kind = read_space(vectors_of(5, 2), ["a", "b", "c", "d", "e"], None, embed_ids=False)

    assert isinstance(space, Catalogue)
    assert space.table.ids([1, 4]) == ["b", "e"]
    assert kind == Dense(2)


def test_ids_alone_are_the_features_of_their_arms() -> None:
    space, kind = read_space(None, ["a", "b"], None, embed_ids=False)

    assert isinstance(space, Catalogue)
    assert space.features.ids is not None
    assert space.features.ids.tolist() == [0, 1]
    assert kind == Ids(2)


def test_features_can_come_with_ids_that_are_embedded() -> None:
    _, kind = read_space(vectors_of(5, 2), None, None, embed_ids=True)

    assert kind == FeaturesAndIds(Dense(2), Ids(5))


def test_a_box_takes_no_ids() -> None:
    with pytest.raises(SettingError, match="A box needs no ids or columns"):
        read_space(BOX, ["a"], None, embed_ids=False)


def test_new_arms_known_by_ids_take_the_rows_that_follow() -> None:
    _, more, _ = read_more(Ids(3), None, ["d", "e"], None, after=_three())

    assert more.ids is not None
    assert more.ids.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("kind", "arms", "advice"),
    [(Dense(2), None, "Give arms="), (Ids(3), vectors_of(1, 2), "Give ids=")],
)
def test_new_arms_of_another_kind_are_refused(kind: Any, arms: Any, advice: str) -> None:
    with pytest.raises(InputError, match=advice):
        read_more(kind, arms, None, None, after=_three())


def test_a_box_has_no_eligible_arms() -> None:
    space = BoxSpace(BOX)
    table = table_of(space, PLAN)

    with pytest.raises(SettingError, match="Eligible arms need a catalogue"):
        read_request(space, table, CONTEXTS, k=1, eligible=[0], first=0)


def test_points_of_a_box_are_the_features_of_interactions() -> None:
    read = box_interactions([[0.5, 1.0], [1.0, 2.0]])

    assert read.arms.dense.tolist() == [[0.5, 1.0], [1.0, 2.0]]
    assert read.rows is None


def test_arms_of_a_catalogue_are_found_by_id() -> None:
    arms = vectors_of(3, 2)
    space, kind = read_space(arms, ["a", "b", "c"], None, embed_ids=False)
    table = table_of(space, PLAN)

    read = read_interactions(
        space, table, kind, contexts=CONTEXTS, arms=["c", "a"], rewards=[1.0, 2.0]
    )

    np.testing.assert_array_equal(read.arms.dense, arms[[2, 0]])
    assert read.rows.tolist() == [2, 0]


def test_each_context_of_a_box_needs_one_point() -> None:
    with pytest.raises(ShapeError, match="got 2 contexts and 1 arms"):
        box_interactions([[0.5, 1.0]])


def test_a_point_outside_the_box_is_refused() -> None:
    with pytest.raises(InputError, match="in row 1"):
        box_interactions([[0.5, 1.0], [0.5, 9.0]])
