"""Columns of files as strangers write them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import DataError, FastbanditError, SettingError
from fastbandit.evaluation import LoggedRounds, read_rounds
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Category

HEAD = "x_a,arm,reward,propensity\n"


def write(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def of_ids(folder: Path, *ids: str, **settings: Any) -> LoggedRounds:
    rows = "".join(f"{place},{id},0,0.5\n" for place, id in enumerate(ids))
    return read_rounds(write(folder, HEAD + rows), **settings)


def parquet(folder: Path, **columns: list[Any]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    size = len(next(iter(columns.values())))
    usual: dict[str, list[Any]] = {"x_a": [0.5], "arm": ["a"], "reward": [1.0], "propensity": [0.5]}
    told = {**{name: cells * size for name, cells in usual.items()}, **columns}
    write_table(pyarrow.table(told), folder / "log.parquet")
    return folder / "log.parquet"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)], "date"),
        ([["a"], ["a", "b"]], "set"),
        ([1.0, None, 3.0], "number"),
        ([True, None], "flag"),
        ([{"a": 1}, {"a": 2}], "mapping"),
    ],
)
def test_columns_that_are_not_all_numbers_are_read_by_a_schema(
    tmp_path: Path, cells: list[Any], kind: str
) -> None:
    found = read_rounds(parquet(tmp_path, x_a=cells))

    assert found.schema is not None
    assert found.schema.rows()[0][1].endswith(kind)
    assert found.contexts.shape == (len(cells), found.schema.dim)


def test_a_column_that_no_kind_reads_is_named(tmp_path: Path) -> None:
    with pytest.raises(FastbanditError, match="x_a"):
        read_rounds(parquet(tmp_path, x_a=[b"a", b"b"]))


def test_a_schema_gives_two_files_the_same_columns(tmp_path: Path) -> None:
    schema = Schema((Category("x_a", levels=("Oslo", "Rome")),))

    first = read_rounds(write(tmp_path, HEAD + "Oslo,a,0,0.5\nRome,a,0,0.5\n"), schema=schema)
    second = read_rounds(write(tmp_path, HEAD + "Rome,a,0,0.5\nBonn,a,0,0.5\n"), schema=schema)

    assert first.contexts.tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]
    assert second.contexts.tolist() == [[0, 0, 0, 1], [0, 1, 0, 0]]


def test_what_a_column_means_can_be_corrected(tmp_path: Path) -> None:
    found = read_rounds(
        write(tmp_path, HEAD + "1,a,0,0.5\n2,a,0,0.5\n"), schema={"x_a": "category"}
    )

    assert found.schema is not None
    assert found.schema["x_a"] == Category("x_a", levels=("1", "2"), note="as you said")


def test_the_kind_of_no_column_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"got 'city', and these are x_a\. Name one"):
        read_rounds(write(tmp_path, HEAD + "1,a,0,0.5\n"), schema={"city": "category"})


def test_truths_and_lists_of_numbers_are_contexts(tmp_path: Path) -> None:
    found = read_rounds(parquet(tmp_path, x_a=[True, False], x_b=[[1, 2], [3, 4]]))

    assert found.contexts.tolist() == [[1.0, 1.0, 2.0], [0.0, 3.0, 4.0]]


MISTAKES = {
    "a column twice": ("x_a,x_a,arm,reward,propensity\n1,2,a,0,1\n", "'x_a' stands twice in its"),
    "a header alone": (HEAD, r"at least one row: it has a header alone\. Write it"),
    "nothing": ("", r"a header and a row for each round: it is empty\. Write it"),
    "semicolons": (
        "x_a;arm;reward\n1;2;3\n",
        r"header is 'x_a;arm;reward', with semicolons\. Save",
    ),
    "a reward in words": (HEAD + "1,a,0,0.5\n1,a,no,0.5\n", "'reward': found 'no' in row 2"),
    "a reward that is missing": (HEAD + "1,a,0,0.5\n1,a,,0.5\n", r"got nan in row 2 of .*log\.csv"),
    "a propensity in percent": (HEAD + "1,a,0,50\n", r"got 50 in row 1 of .* Divide percentages"),
    "no column of the arm": ("x_a,reward\n1,0\n", r"with --arm \(arm= in Python\)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_table_that_cannot_be_used_says_why(tmp_path: Path, name: str) -> None:
    text, said = MISTAKES[name]

    with pytest.raises(FastbanditError, match=said):
        read_rounds(write(tmp_path, text))


def test_a_parquet_file_without_rows_is_rejected(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    columns = {name: pyarrow.array([], "float64") for name in HEAD.strip().split(",")}
    write_table(pyarrow.table(columns), tmp_path / "log.parquet")

    with pytest.raises(DataError, match="needs at least one row: it has a header alone"):
        read_rounds(tmp_path / "log.parquet")


def test_a_table_of_arms_without_rows_is_rejected(tmp_path: Path) -> None:
    arms = write(tmp_path, "arm,price\n", "arms.csv")

    with pytest.raises(DataError, match=r"arms\.csv needs at least one row"):
        of_ids(tmp_path, "a", arms=arms)
