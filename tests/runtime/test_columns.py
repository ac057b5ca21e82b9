"""Columns of the arms: what they read, and which rows a predicate lets through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fakes import vectors_of
from fastbandit.runtime.columns import KEPT, Columns
from little_frozen import fresh, frozen_bandit

from fastbandit import FrozenBandit
from fastbandit.errors import (
    EligibilityError,
    FastbanditError,
    InputError,
    SettingError,
    ShapeError,
)

TABLE: dict[str, list[Any]] = {
    "price": [5, 10, 15, 20],
    "weight": [0.1, 0.2, 0.3, 0.4],
    "language": ["en", "de", "en", "fr"],
    "adult": [False, True, False, True],
}
CONTEXT = np.ones(4, dtype=np.float32)


def columns(table: Any = TABLE) -> Columns:
    return Columns.of(table, rows=4)


def rows(predicate: dict[str, Any]) -> list[int]:
    return np.flatnonzero(columns().mask(predicate)).tolist()


# -- predicates


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"price": 10}, [1]),
        ({"price": {"==": 10}}, [1]),
        ({"price": {"not": 10}}, [0, 2, 3]),
        ({"price": {"<": 10}}, [0]),
        ({"price": {"<=": 10}}, [0, 1]),
        ({"price": {">": 10}}, [2, 3]),
        ({"price": {">=": 10, "<": 20}}, [1, 2]),
        ({"price": {"in": [5, 20, 99]}}, [0, 3]),
        ({"price": {"in": []}}, []),
        ({"price": {"not in": [5, 20]}}, [1, 2]),
        ({"weight": {"<=": 0.2}}, [0, 1]),
        ({"weight": {"in": [0.3]}}, [2]),
        ({"language": "en"}, [0, 2]),
        ({"language": {"not": "en"}}, [1, 3]),
        ({"language": {"in": ["de", "fr"]}}, [1, 3]),
        ({"language": {">=": "en"}}, [0, 2, 3]),
        ({"language": "nobody speaks it"}, []),
        ({"adult": False}, [0, 2]),
        ({"adult": {"not": False}}, [1, 3]),
        ({"adult": {"in": [True, False]}}, [0, 1, 2, 3]),
        ({"language": "en", "price": {"<": 10}, "adult": False}, [0]),
    ],
)
def test_a_predicate_lets_the_rows_through_on_which_all_conditions_hold(
    predicate: dict[str, Any], expected: list[int]
) -> None:
    assert rows(predicate) == expected


def test_numbers_are_compared_in_the_precision_of_their_column() -> None:
    narrow = columns({"weight": np.array(TABLE["weight"], dtype=np.float32)})

    assert narrow.mask({"weight": 0.1}).tolist() == [True, False, False, False]
    assert narrow.mask({"weight": {"in": [0.1]}}).tolist() == [True, False, False, False]


def test_values_of_numpy_are_as_good_as_plain_ones() -> None:
    assert rows({"price": {"<=": np.int64(10), "in": np.array([10, 20])}}) == [1]
    assert rows({"language": {"in": {"de", "fr"}}}) == [1, 3]


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ({"prise": 3}, "Did you mean 'price'?"),
        ({"price": {"notin": [3]}}, "Did you mean 'not in'?"),
        ({"price": "cheap"}, "holds numbers"),
        ({"price": True}, "holds numbers"),
        ({"price": float("nan")}, "holds numbers"),
        ({"price": [5, 10]}, "'in'"),
        ({"price": {"in": 5}}, "needs a list"),
        ({"language": 3}, "holds text"),
        ({"adult": 1}, "holds booleans"),
        ({"adult": {"<": True}}, "no order"),
    ],
)
def test_a_predicate_that_makes_no_sense_is_refused_with_the_nearest_that_does(
    predicate: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingError) as refusal:
        rows(predicate)

    assert said in str(refusal.value)


def test_a_predicate_that_is_no_plain_data_is_refused() -> None:
    with pytest.raises(InputError, match="plain data"):
        rows({"price": object()})


def test_equal_predicates_share_one_mask_that_nobody_can_change() -> None:
    some = columns()

    mask = some.mask({"price": {">": 5, "<": 20}, "adult": False})

    assert some.mask({"adult": False, "price": {"<": 20, ">": 5}}) is mask
    assert not mask.flags.writeable


def test_only_recent_masks_are_kept() -> None:
    some = columns()
    first = some.mask({"price": -1})

    for price in range(KEPT):
        some.mask({"price": price})

    assert some.mask({"price": -1}) is not first


# -- reading


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE).astype({"language": "category"}),
        pl.DataFrame(TABLE),
        {name: np.array(values) for name, values in TABLE.items()},
        {name: tuple(values) for name, values in TABLE.items()},
    ],
    ids=["pandas", "categories", "polars", "arrays", "tuples"],
)
def test_columns_are_read_from_frames_and_mappings(table: Any) -> None:
    read = columns(table)

    assert [column.kind for column in read.values()] == ["numbers", "numbers", "text", "booleans"]
    assert np.flatnonzero(read.mask({"language": "en", "price": {">": 5}})).tolist() == [2]


def test_the_caller_may_go_on_with_his_array() -> None:
    prices = np.array(TABLE["price"])
    read = columns({"price": prices})

    prices[:] = 0

    assert read.mask({"price": 20}).any()


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ([1, 2, 3, 4], InputError),
        ({3: [1, 2, 3, 4]}, InputError),
        ({"price": [1, 2]}, ShapeError),
        ({"price": [[1, 2, 3, 4]]}, ShapeError),
        ({"price": [1.0, None, 2.0, 3.0]}, InputError),
        ({"price": [1.0, float("nan"), 2.0, 3.0]}, InputError),
        ({"name": ["a", None, "b", "c"]}, InputError),
        ({"name": ["a", 3, "b", []]}, InputError),
        ({"day": np.array(["2020-01-01"] * 4, dtype="datetime64[D]")}, InputError),
    ],
)
def test_columns_that_cannot_be_compared_are_refused(
    table: Any, error: type[FastbanditError]
) -> None:
    with pytest.raises(error):
        columns(table)


def test_more_rows_bring_their_own_categories() -> None:
    grown = columns().added(
        {"price": [7.5], "weight": [1], "language": ["it"], "adult": [True]}, rows=1
    )

    assert grown.mask({"language": "it"}).tolist() == [False] * 4 + [True]
    assert grown.mask({"language": "en"}).tolist() == [True, False, True, False, False]
    assert grown.mask({"price": {"<": 10}}).tolist() == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (None, "none for price, weight, language, adult"),
        ({"price": [1], "weight": [1], "language": ["en"]}, "none for adult"),
        ({**{name: values[:1] for name, values in TABLE.items()}, "colour": ["red"]}, "colour"),
        ({**{name: values[:1] for name, values in TABLE.items()}, "price": ["red"]}, "numbers"),
    ],
)
def test_more_rows_need_the_same_columns(more: Any, said: str) -> None:
    with pytest.raises(FastbanditError, match=said):
        columns().added(more, rows=1)


def test_columns_are_the_same_once_written_and_read() -> None:
    some = columns()

    again = Columns.restored(some.notes(), some.arrays(), rows=4)

    assert again.mask({"language": "en", "price": 15}).tolist() == [False, False, True, False]


# -- a frozen bandit with columns


@pytest.fixture(scope="module")
def frozen(little_training: None) -> FrozenBandit:
    return frozen_bandit(arms=vectors_of(3000, 3, seed=1))


@pytest.fixture
def priced(frozen: FrozenBandit) -> FrozenBandit:
    """A bandit of 3,000 arms whose price is their row, with the arms of a fresh start."""
    bandit = fresh(frozen)
    bandit.set_columns({"price": np.arange(3000), "even": np.arange(3000) % 2 == 0})
    return bandit


@pytest.mark.parametrize("limit", [1, 100, 2500])
def test_decisions_keep_to_a_predicate(priced: FrozenBandit, limit: int) -> None:
    predicate = {"price": {"<": limit}}

    many = priced.select(np.tile(CONTEXT, (50, 1)), eligible=predicate).rows
    ones = [priced.select_one(CONTEXT, seed=seed, eligible=predicate).row for seed in range(50)]

    assert many.max() < limit
    assert max(ones) < limit


def test_a_predicate_is_the_mask_of_its_rows(priced: FrozenBandit) -> None:
    contexts, seeds = vectors_of(40, 4), np.arange(40, dtype=np.uint64)

    by_predicate = priced.select(contexts, eligible={"even": True}, seeds=seeds, k=3)
    by_mask = priced.select(contexts, eligible=np.arange(3000) % 2 == 0, seeds=seeds, k=3)

    np.testing.assert_array_equal(by_predicate.rows, by_mask.rows)


def test_each_context_may_have_a_predicate_of_its_own(priced: FrozenBandit) -> None:
    decision = priced.select(vectors_of(2, 4), eligible=[{"price": 7}, {"price": {"in": [9]}}])

    assert decision.arms == [7, 9]


def test_predicates_for_another_number_of_contexts_are_refused(priced: FrozenBandit) -> None:
    with pytest.raises(ShapeError, match="one predicate for each"):
        priced.select(vectors_of(3, 4), eligible=[{"price": 7}, {"price": 9}])


def test_a_removed_arm_stays_out_whatever_the_predicate(priced: FrozenBandit) -> None:
    assert priced.select_one(CONTEXT, eligible={"price": {"<": 2}, "even": True}).arm == 0

    priced.discard_arms([0])

    assert priced.select_one(CONTEXT, eligible={"price": {"<": 2}}).arm == 1
    with pytest.raises(EligibilityError):
        priced.select_one(CONTEXT, eligible={"price": 0})


def test_a_new_arm_is_found_by_its_columns(priced: FrozenBandit) -> None:
    priced.add_arms(
        vectors_of(2, 3), ids=["a", "b"], columns={"price": [-1, -2], "even": [False, False]}
    )

    assert priced.select_one(CONTEXT, eligible={"price": -2}).arm == "b"


def test_a_new_arm_without_its_columns_changes_nothing(priced: FrozenBandit) -> None:
    with pytest.raises(InputError, match="price, even"):
        priced.add_arms(vectors_of(1, 3))

    assert len(priced) == 3000


def test_columns_stay_when_arms_move_into_cells(priced: FrozenBandit) -> None:
    priced.discard_arms(range(10))
    priced.add_arms(vectors_of(1, 3), columns={"price": [-5], "even": [False]})

    priced.index()

    assert priced.select_one(CONTEXT, eligible={"price": {"<": 0}}).row == 3000
    assert priced.select_one(CONTEXT, eligible={"price": {"<": 11}, "even": True}).row == 10


def test_columns_for_other_rows_leave_those_there_were(priced: FrozenBandit) -> None:
    with pytest.raises(ShapeError, match="3000 rows"):
        priced.set_columns({"price": [1, 2, 3]})

    assert priced.select_one(CONTEXT, eligible={"price": 4}).arm == 4


def test_a_predicate_needs_columns(frozen: FrozenBandit) -> None:
    with pytest.raises(SettingError, match="set_columns"):
        frozen.select_one(CONTEXT, eligible={"price": 4})
    with pytest.raises(SettingError, match="set_columns"):
        frozen.add_arms(vectors_of(1, 3), columns={"price": [4]})
