"""Contexts are found in Parquet files, read in any order, and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from little_files import CONTEXTS, write_files

from fastbandit.cluster.contexts import (
    Columns,
    RowReader,
    Source,
    find_columns,
    find_sources,
    parts_of,
    read_contexts,
)
from fastbandit.errors import DataError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path / "contexts")


def source(*columns: str, rows: int = 10, first: int = 0) -> Source:
    return Source("file:///a.parquet", 1, "", (rows,), columns, first)


def test_files_are_found_in_the_order_of_their_names(files: Path) -> None:
    sources = find_sources(str(files))

    assert [(one.name[-9:], one.rows, one.first) for one in sources] == [
        ("0.parquet", 45, 0),
        ("1.parquet", 45, 45),
    ]
    assert sources[0].groups == (13, 13, 13, 6)


def test_rows_are_read_in_any_order(files: Path) -> None:
    sources = find_sources(str(files))
    reader = RowReader(Columns(("x_1",)))

    for file, first, count in ((0, 20, 10), (0, 30, 15), (0, 5, 3), (1, 40, 5), (0, 44, 1)):
        found = reader.read(sources[file], first, count).column("x_1").to_pylist()
        start = 45 * file + first
        assert found == CONTEXTS[start : start + count, 1].tolist()


# -- columns


@pytest.mark.parametrize(
    ("columns", "wanted", "features"),
    [
        (("context", "x_0"), Columns(), ("context",)),
        (("x_0", "user", "x_1"), Columns(keep=("user",)), ("x_0", "x_1")),
        (("x_0", "x_1", "x_2"), Columns(("x_2", "x_0")), ("x_2", "x_0")),
        (("x_0", "x_1", "x_2"), Columns(("x_1", "x_*")), ("x_1", "x_0", "x_2")),
        (("x_0", "x_1"), Columns(("x_*",), keep=("x_1",)), ("x_0",)),
        (("a[1]", "a1"), Columns(("a[1]",)), ("a[1]",)),
    ],
)
def test_columns_are_named_or_have_the_usual_names(
    columns: tuple[str, ...], wanted: Columns, features: tuple[str, ...]
) -> None:
    found = find_columns([source(*columns)], Dense(2), wanted)

    assert found == Columns(features, None, wanted.keep)


@pytest.mark.parametrize(
    ("kind", "wanted", "message"),
    [
        (Ids(9), Columns(("a", "b")), "ids and need one column: got a, b"),
        (FeaturesAndIds(Dense(1), Ids(9)), Columns(("a",)), "need features and an id"),
        (Dense(1), Columns(("c",)), "needs a column 'c': it has a, b"),
    ],
)
def test_columns_that_are_missing_are_named(kind: Any, wanted: Columns, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_columns([source("a", "b")], kind, wanted)


def test_all_files_need_the_columns_of_the_first() -> None:
    with pytest.raises(DataError, match="needs a column 'x_1'"):
        find_columns([source("x_0", "x_1"), source("x_0")], Dense(2), Columns())


# -- values


def read(table: Any, columns: Columns, kind: Any) -> Any:
    return read_contexts(table, columns, kind, where="a.parquet", first=100)


def test_features_and_ids_are_read_together() -> None:
    table = pyarrow.table({"x": [0.5, 1.5], "user": [3, 4]})

    features, ids = read(table, Columns(("x",), "user"), FeaturesAndIds(Dense(1), Ids(9)))

    assert features.tolist() == [[0.5], [1.5]]
    assert ids.tolist() == [3, 4]


def test_lists_are_as_many_columns() -> None:
    table = pyarrow.table({"context": [[1.0, 2.0], [3.0, 4.0]], "more": [5, 6]})

    found = read(table, Columns(("context", "more")), Dense(3))

    assert found.dtype == np.float32
    assert found.tolist() == [[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b"], "holds string"),
        ([1.0, float("inf")], "row 101 of a.parquet has inf in the column 'x'"),
        ([[1.0], None], "row 101 of a.parquet has no list"),
        ([[1.0], [1.0, 2.0]], "row 101 of a.parquet has 2 numbers"),
        ([[1.0, 2.0], [1.0, 2.0]], "need 1 numbers each: the columns x of a.parquet hold 2"),
    ],
)
def test_values_that_are_no_context_are_named_with_their_row(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(pyarrow.table({"x": values}), Columns(("x",)), Dense(1))


@pytest.mark.parametrize(
    ("values", "message"), [([1, None], "none in row 101"), (["a", "b"], "holds string")]
)
def test_ids_need_whole_numbers(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(pyarrow.table({"user": values}), Columns(ids="user"), Ids(9))


def test_parts_never_span_two_files() -> None:
    sources = [source("x", rows=5), source("x", rows=4, first=5)]

    parts = parts_of(sources, 3)

    assert [(part.row, part.first, part.rows) for part in parts] == [
        (0, 0, 3),
        (3, 3, 2),
        (5, 0, 3),
        (8, 3, 1),
    ]
    assert parts[3].name == "part-000003.parquet"
