"""Columns of files as strangers write them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import DataError, FastbanditError
from fastbandit.evaluation import LoggedRounds, read_rounds

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
        ([datetime(2026, 1, 1, tzinfo=UTC)], "timestamp"),
        ([{"a": 1}], "struct"),
        ([[["a"]]], "list"),
        ([["a"]], "lists of texts"),
        ([b"a"], "binary"),
    ],
)
def test_a_column_of_another_type_is_named_with_it(
    tmp_path: Path, cells: list[Any], kind: str
) -> None:
    with pytest.raises(DataError, match=rf"in the column 'x_a': .*{kind}.*leave it out"):
        read_rounds(parquet(tmp_path, x_a=cells))


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
