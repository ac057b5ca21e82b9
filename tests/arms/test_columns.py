"""Columns of the arms: what they read, and which rows a predicate lets through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fastbandit.arms.columns import REMEMBERED, Columns
from fastbandit.errors import (
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

    for price in range(REMEMBERED):
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


def test_no_condition_holds_of_a_number_that_is_missing() -> None:
    read = columns({"price": [1.0, float("nan"), 2.0, 3.0]})

    assert read.mask({"price": {"<=": 2}}).tolist() == [True, False, True, False]
    assert read.row(1) == {"price": None}


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ([1, 2, 3, 4], InputError),
        ({3: [1, 2, 3, 4]}, InputError),
        ({"price": [1, 2]}, ShapeError),
        ({"price": [[1, 2, 3, 4]]}, ShapeError),
        ({"price": [1.0, None, 2.0, 3.0]}, InputError),
        ({"name": ["a", None, "b", "c"]}, InputError),
        ({"name": ["a", 3, "b", []]}, InputError),
        ({"day": np.array(["2020-01-01"] * 4, dtype="datetime64[D]")}, InputError),
    ],
)
def test_columns_that_cannot_be_compared_are_rejected(
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
