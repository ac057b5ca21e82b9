"""Tables of named columns, whatever they came in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fastbandit.features.tables import Table, is_named, table_of

COLUMNS = {"x": [1.0, 2.0, 3.0], "y": ["a", "b", None]}


@pytest.fixture(params=[dict, pd.DataFrame, pl.DataFrame, pa.table, lambda c: pl.LazyFrame(c)])
def table(request: pytest.FixtureRequest) -> Table:
    return table_of(request.param(COLUMNS), what="rows")


def test_rows_are_taken_by_position(table: Table) -> None:
    taken = table.take([2, 0])

    assert (taken.rows, list(taken.values("x"))) == (2, [3.0, 1.0])


def test_columns_are_left_out(table: Table) -> None:
    assert table.without(["y"]).names == ["x"]


def test_some_rows_of_a_column_are_read(table: Table) -> None:
    assert list(table.values("x", slice(0, 3, 2))) == [1.0, 3.0]


def test_rows_are_dicts(table: Table) -> None:
    assert table.dicts()[:2] == [{"x": 1.0, "y": "a"}, {"x": 2.0, "y": "b"}]


def test_one_dict_of_values_is_one_row() -> None:
    assert table_of({"x": 1.0, "y": [1, 2]}, what="rows").dicts() == [{"x": 1.0, "y": [1, 2]}]


def test_dicts_of_times_keep_their_zone() -> None:
    frame = pd.DataFrame({"at": pd.to_datetime(["2024-07-01T12:00"]).tz_localize("Asia/Tokyo")})

    assert table_of(frame, what="rows").dicts() == [{"at": datetime(2024, 7, 1, 3, tzinfo=UTC)}]


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ({"x": 1}, True),
        ([{"x": 1}], True),
        (pd.DataFrame({"x": [1]}), True),
        (pd.DataFrame(), True),
        (pd.DataFrame([[1]]), False),
        (np.zeros((1, 1)), False),
        ([[1]], False),
        ([], False),
    ],
)
def test_what_has_names_is_known(raw: Any, wanted: bool) -> None:
    assert is_named(raw) is wanted
