"""Tables as strangers write them: nothing is merged, dropped or turned into flags unseen."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastbandit.errors import DataError, FastbanditError, SettingError
from fastbandit.evaluation import LoggedRounds, read_rounds

HEAD = "x_a,arm,reward,propensity\n"


def write(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def of_ids(folder: Path, *ids: str, **settings: Any) -> LoggedRounds:
    rows = "".join(f"{place},{id},0,0.5\n" for place, id in enumerate(ids))
    return read_rounds(write(folder, HEAD + rows), **settings)


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


# -- ids


@pytest.mark.parametrize(
    "ids",
    [
        [str(2**63 + place) for place in range(5)],
        [str(10**30 + place) for place in range(5)],
        ["7", "07", "007"],
        ["1e5", "100000", "1E5"],
        ["-0", "0", "+0"],
    ],
)
def test_ids_that_a_number_would_merge_stay_texts(tmp_path: Path, ids: list[str]) -> None:
    assert sorted(map(str, of_ids(tmp_path, *ids).ids or ())) == sorted(ids)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("01-+.eE_ x", min_size=1), min_size=1, max_size=6, unique=True))
def test_as_many_arms_are_read_as_ids_are_written(ids: list[str]) -> None:
    with TemporaryDirectory() as folder:
        found = of_ids(Path(folder), *ids)

    assert sorted(map(str, found.ids or ())) == sorted(ids)


def test_ids_that_are_all_whole_numbers_are_numbers(tmp_path: Path) -> None:
    assert list(of_ids(tmp_path, "-3", "0", str(2**63 - 1)).ids or ()) == [-3, 0, 2**63 - 1]


def test_text_ids_are_the_text_of_the_file(tmp_path: Path) -> None:
    found = of_ids(tmp_path, "01", "1", "1.0", is_text=True)

    assert list(found.ids or ()) == ["01", "1", "1.0"]


def test_the_log_and_the_table_of_arms_agree_on_the_kind_of_ids(tmp_path: Path) -> None:
    arms = write(tmp_path, "arm,price\n7,1\nx7,2\n", "arms.csv")

    assert list(of_ids(tmp_path, "7", arms=arms).ids or ()) == ["7", "x7"]


def test_an_arm_without_an_id_is_named_by_its_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"every row of the column 'arm': row 2 has none \(1 such"):
        of_ids(tmp_path, "a", "", "b")


@pytest.mark.parametrize("ids", [["a", None], [1, None]])
def test_a_null_for_an_arm_is_named_by_its_row(tmp_path: Path, ids: list[Any]) -> None:
    with pytest.raises(DataError, match="in every row of the column 'arm': row 2 has none"):
        read_rounds(parquet(tmp_path, arm=ids))


# -- columns of the context


def test_a_slip_among_numbers_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'x_a': 4 of 5 values are numbers, and row 3 is 'abc'"):
        of_contexts(tmp_path, "1", "2", "abc", "4", "5")


def test_numbers_that_are_written_as_texts_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'x_a': 2 of 2 values are numbers, and all are written as"):
        read_rounds(parquet(tmp_path, x_a=["1", "2"]))


def test_a_text_that_differs_in_nearly_every_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'x_a' has 30 in 30 rows, such as 'v0'.*--levels"):
        of_contexts(tmp_path, *(f"v{place}" for place in range(30)))


def test_too_many_levels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"at most 100 different texts .* has 101 in 404 rows"):
        of_contexts(tmp_path, *(f"v{place % 101}" for place in range(404)))


def test_an_empty_cell_among_numbers_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="every row of the column 'x_a': row 2 has none"):
        of_contexts(tmp_path, "1", "", "3")


@pytest.mark.parametrize("value", ["1e300", "-1e39"])
def test_a_number_too_large_is_named_as_it_came(tmp_path: Path, value: str) -> None:
    with pytest.raises(DataError, match=r"'x_a': row 2 has -?1e\+(300|39) \(1 such\)"):
        of_contexts(tmp_path, "1", value)


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


# -- levels


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


def test_levels_of_no_column_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"got 'city', and these are x_a\. Name one"):
        of_contexts(tmp_path, "1", levels={"city": ["Oslo"]})


@pytest.mark.parametrize("told", ["Oslo", []])
def test_levels_that_are_no_list_are_refused(tmp_path: Path, told: Any) -> None:
    with pytest.raises(SettingError, match=r"list of its texts: got .* for 'x_a'"):
        of_contexts(tmp_path, "Oslo", levels={"x_a": told})


def test_a_reward_that_is_a_number_in_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="numbers in the column 'reward': found '1' in row 1"):
        read_rounds(parquet(tmp_path, reward=["1", "0"]))


# -- files


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


def test_a_parquet_file_without_rows_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    columns = {name: pyarrow.array([], "float64") for name in HEAD.strip().split(",")}
    write_table(pyarrow.table(columns), tmp_path / "log.parquet")

    with pytest.raises(DataError, match="needs at least one row: it has a header alone"):
        read_rounds(tmp_path / "log.parquet")


def test_a_table_of_arms_without_rows_is_refused(tmp_path: Path) -> None:
    arms = write(tmp_path, "arm,price\n", "arms.csv")

    with pytest.raises(DataError, match=r"arms\.csv needs at least one row"):
        of_ids(tmp_path, "a", arms=arms)
