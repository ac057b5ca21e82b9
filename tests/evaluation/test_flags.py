"""Texts become flags, and numbers with slips do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import DataError, SettingError
from fastbandit.evaluation import LoggedRounds, read_rounds

HEAD = "x_a,arm,reward,propensity\n"


def write(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def of_contexts(folder: Path, *values: str, **settings: Any) -> LoggedRounds:
    rows = "".join(f"{value},a,0,0.5\n" for value in values)
    return read_rounds(write(folder, HEAD + rows), **settings)


def parquet(folder: Path, **columns: list[Any]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    size = len(next(iter(columns.values())))
    usual: dict[str, list[Any]] = {"x_a": [0.5], "arm": ["a"], "reward": [1.0], "propensity": [0.5]}
    told = {**{name: cells * size for name, cells in usual.items()}, **columns}
    write_table(pyarrow.table(told), folder / "log.parquet")
    return folder / "log.parquet"


def test_a_slip_among_numbers_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'x_a': 4 of 5 values are numbers, and row 3 is 'abc'"):
        of_contexts(tmp_path, "1", "2", "abc", "4", "5")


def test_numbers_that_are_written_as_texts_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'x_a': 2 of 2 values are numbers, and all are written as"):
        read_rounds(parquet(tmp_path, x_a=["1", "2"]))


def test_a_text_that_differs_in_nearly_every_row_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'x_a' has 30 in 30 rows, such as 'v0'.*--levels"):
        of_contexts(tmp_path, *(f"v{place}" for place in range(30)))


def test_too_many_levels_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"at most 100 different texts .* has 101 in 404 rows"):
        of_contexts(tmp_path, *(f"v{place % 101}" for place in range(404)))


def test_an_empty_cell_among_numbers_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="every row of the column 'x_a': row 2 has none"):
        of_contexts(tmp_path, "1", "", "3")


@pytest.mark.parametrize("value", ["1e300", "-1e39"])
def test_a_number_too_large_is_named_as_it_came(tmp_path: Path, value: str) -> None:
    with pytest.raises(DataError, match=r"'x_a': row 2 has -?1e\+(300|39) \(1 such\)"):
        of_contexts(tmp_path, "1", value)


def test_flags_are_named_in_a_note(tmp_path: Path) -> None:
    found = of_contexts(tmp_path, "Rome", "Oslo")

    assert found.levels == {"x_a": ("Oslo", "Rome")}
    assert "texts of x_a are flags: x_a=Oslo, x_a=Rome" in found.notes


def test_levels_give_two_files_the_same_columns(tmp_path: Path) -> None:
    levels = {"x_a": ["Oslo", "Rome", "Wien"]}

    first = of_contexts(tmp_path, "Oslo", "Rome", levels=levels)
    second = of_contexts(tmp_path, "Rome", "Wien", levels=levels)

    assert first.contexts.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert second.contexts.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_a_text_that_is_no_level_has_no_flag_and_is_counted(tmp_path: Path) -> None:
    found = of_contexts(tmp_path, "Oslo", "Bonn", levels={"x_a": ["Oslo"]})

    assert found.contexts.tolist() == [[1], [0]]
    assert any("1 row has a text of x_a that is none of its levels" in n for n in found.notes)


def test_levels_may_be_written_as_numbers(tmp_path: Path) -> None:
    found = of_contexts(tmp_path, "010", "10", levels={"x_a": ["10", "010"]})

    assert found.contexts.tolist() == [[0, 1], [1, 0]]


def test_levels_of_no_column_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"got 'city', and these are x_a\. Name one"):
        of_contexts(tmp_path, "1", levels={"city": ["Oslo"]})


@pytest.mark.parametrize("told", ["Oslo", []])
def test_levels_that_are_no_list_are_rejected(tmp_path: Path, told: Any) -> None:
    with pytest.raises(SettingError, match=r"list of its texts: got .* for 'x_a'"):
        of_contexts(tmp_path, "Oslo", levels={"x_a": told})
