"""Tables as strangers write them: nothing is merged, dropped or turned into flags unseen."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastbandit.errors import DataError
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


def test_a_reward_that_is_a_number_in_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="numbers in the column 'reward': found '1' in row 1"):
        read_rounds(parquet(tmp_path, reward=["1", "0"]))
