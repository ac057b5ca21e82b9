"""Rows of a catalogue: what is there, and how it is replaced."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit.arms.ids import IdTable
from fastbandit.arms.rows import ArmRows, Upserted
from fastbandit.errors import (
    DuplicateArmError,
    EligibilityError,
    InputError,
    SettingError,
    ShapeError,
)
from fastbandit.types import Inputs

VECTORS = vectors_of(5, 2)


@pytest.fixture
def rows() -> ArmRows:
    return ArmRows.of(IdTable([*"abc"]), Inputs(dense=VECTORS[:3]), {"price": [1, 2, 3]})


def add(rows: ArmRows, ids: list[str], columns: object = None) -> ArmRows:
    return rows.added(len(ids), ids, features=Inputs(dense=VECTORS[: len(ids)]), columns=columns)


def upsert(rows: ArmRows, ids: list[str], prices: list[int], *, is_same: bool) -> ArmRows:
    features = Inputs(dense=VECTORS[: len(ids)])
    grown, _, _ = rows.upserted(
        ids,
        features=features,
        columns={"price": prices},
        is_same=lambda given, rows: np.full(len(rows), is_same),
    )
    return grown


def test_no_arms_are_no_catalogue() -> None:
    with pytest.raises(InputError, match="at least one arm"):
        ArmRows.of(IdTable.restored([]))


def test_a_discarded_arm_keeps_its_row(rows: ArmRows) -> None:
    without, missing = rows.discarded(["b"])

    assert missing == []
    assert without.live.tolist() == [True, False, True]
    assert (without.total, without.live_count) == (3, 2)
    assert rows.live_count == 3


def test_discarding_returns_what_was_not_there(rows: ArmRows) -> None:
    without, missing = rows.discarded(["b", "x", "b"])

    assert missing == ["x"]
    assert without.discarded(["b"]) == (without, ["b"])


def test_the_last_arm_is_not_discarded(rows: ArmRows) -> None:
    with pytest.raises(EligibilityError, match="at least one arm"):
        rows.discarded([*"cab"])


def test_an_id_is_free_again_once_its_arm_is_gone(rows: ArmRows) -> None:
    without, _ = rows.discarded(["b"])

    again = add(without, ["b"], {"price": [9]})

    assert again.live_rows_of(["a", "b", "x"]).tolist() == [0, 3, -1]
    with pytest.raises(DuplicateArmError):
        add(rows, ["b"], {"price": [9]})


def test_new_arms_have_a_value_in_each_column(rows: ArmRows) -> None:
    grown = add(rows, ["d"], {"price": [9]})

    assert grown.columns is not None
    assert grown.columns.row(3) == {"price": 9}
    with pytest.raises(InputError, match="price"):
        add(rows, ["d"])


def test_columns_of_new_arms_alone_are_rejected() -> None:
    bare = ArmRows.of(IdTable([*"abc"]), Inputs(dense=VECTORS[:3]))

    with pytest.raises(SettingError, match="set_columns"):
        add(bare, ["d"], {"price": [9]})


def test_each_new_arm_needs_one_id(rows: ArmRows) -> None:
    with pytest.raises(ShapeError, match="2 ids and 1 rows"):
        rows.added(1, ["d", "e"], features=Inputs(dense=VECTORS[:1]), columns={"price": [9]})


@pytest.mark.parametrize(("price", "is_same", "total"), [(1, True, 3), (7, True, 4), (1, False, 4)])
def test_an_upsert_takes_a_new_row_where_something_differs(
    rows: ArmRows, price: int, is_same: bool, total: int
) -> None:
    grown = upsert(rows, ["a"], [price], is_same=is_same)

    assert (grown.total, grown.live_count) == (total, 3)


def test_an_upsert_counts_what_it_does(rows: ArmRows) -> None:
    _, fresh, counts = rows.upserted(
        [*"abd"],
        features=Inputs(dense=VECTORS[:3]),
        columns={"price": [1, 2, 9]},
        is_same=lambda given, rows: rows == 0,
    )

    assert counts == Upserted(added=1, changed=1, unchanged=1)
    assert fresh.tolist() == [1, 2]


def test_features_that_are_ids_are_the_rows_of_new_arms() -> None:
    rows = ArmRows.of(IdTable([*"ab"]), Inputs(dense=VECTORS[:2], ids=np.arange(2)))

    grown, _, _ = rows.upserted(
        [*"ab"],
        features=Inputs(dense=VECTORS[:2], ids=np.arange(2, 4)),
        columns=None,
        is_same=lambda given, rows: rows == 0,
    )

    assert grown.features is not None
    assert grown.features.ids.tolist() == [0, 1, 2]  # type: ignore[union-attr]


def test_a_predicate_leaves_out_what_is_not_live(rows: ArmRows) -> None:
    without, _ = rows.discarded(["a"])

    mask = without.eligible({"price": {"<=": 2}}, contexts=4)

    assert mask is not None
    assert mask.tolist() == [[False, True, False]]


def test_all_arms_need_no_mask(rows: ArmRows) -> None:
    assert rows.eligible(None, contexts=4) is None
