"""Logs in every form become the same rounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastbandit.errors import (
    DataError,
    DuplicateArmError,
    InputError,
    UnknownArmError,
)
from fastbandit.evaluation import read_rounds
from fastbandit.storage.sqlite_log import SqliteLog

HEAD = "x_0,x_1,arm,reward,propensity\n"
ROWS = "0.5,1.0,b,1,0.5\n1.5,2.0,a,0,0.25\n2.5,3.0,b,1,0.5\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(tmp_path / "events.db")
    yield log
    log.close()


def test_a_csv_file_is_read_by_the_usual_names(tmp_path: Path) -> None:
    found = read_rounds(write(tmp_path / "log.csv", HEAD + ROWS))

    assert found.contexts.tolist() == [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]
    assert list(found.ids or ()) == ["a", "b"]
    assert found.chosen.tolist() == [1, 0, 1]
    assert found.rewards.tolist() == [1.0, 0.0, 1.0]
    assert found.propensities.tolist() == [0.5, 0.25, 0.5]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", "who,item,money,chance\nold,7,2.5,0.5\nnew,8,0.5,1.0\n")

    found = read_rounds(path, context="who", arm="item", reward="money", propensity="chance")

    assert found.contexts.tolist() == [[0, 0, 0, 1], [0, 0, 1, 0]]  # none, others, new, old
    assert list(found.ids or ()) == [7, 8]


def test_ids_can_be_taken_as_text(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", HEAD + "0,0,7,1,0.5\n")

    assert list(read_rounds(path, is_text=True).ids or ()) == ["7"]


def test_a_parquet_file_is_read_like_a_csv_file(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    columns = {
        "x_0": [0.5, 1.5, 2.5],
        "x_1": [1.0, 2.0, 3.0],
        "arm": ["b", "a", "b"],
        "reward": [1, 0, 1],
        "propensity": [0.5, 0.25, 0.5],
    }
    write_table(pyarrow.table(columns), tmp_path / "log.parquet")

    ours = read_rounds(tmp_path / "log.parquet")
    theirs = read_rounds(write(tmp_path / "log.csv", HEAD + ROWS))

    assert (ours.contexts == theirs.contexts).all()
    assert ours.chosen.tolist() == theirs.chosen.tolist()
    assert list(ours.ids or ()) == list(theirs.ids or ())


def test_a_table_of_arms_has_all_arms_and_their_features(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", "arm,price\nc,3\nb,2\na,1\n")

    found = read_rounds(write(tmp_path / "log.csv", HEAD + ROWS), arms=arms)

    assert found.arms == 3
    assert found.chosen.tolist() == [1, 2, 1]
    assert found.vectors.tolist() == [[3.0], [2.0], [1.0]]


def test_an_arm_that_is_not_in_the_table_is_named(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", "arm,price\nb,2\n")

    with pytest.raises(UnknownArmError, match="the log has 'a', which is not in it"):
        read_rounds(write(tmp_path / "log.csv", HEAD + ROWS), arms=arms)


def test_an_arm_that_stands_twice_in_the_table_is_named(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", "arm,price\nb,2\nb,3\n")

    with pytest.raises(DuplicateArmError, match="'b' twice in the column 'arm'"):
        read_rounds(write(tmp_path / "log.csv", HEAD + ROWS), arms=arms)


def test_a_table_without_propensities_says_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", "x_0,arm,reward\n1,a,0\n")

    with pytest.raises(
        DataError, match=r"column of propensities.*found x_0, arm, reward.*1 / arms"
    ):
        read_rounds(path)


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", HEAD + ROWS)

    with pytest.raises(DataError, match=r"needs a column 'clicks': found x_0.*reward="):
        read_rounds(path, reward="clicks")


def test_a_context_that_holds_the_reward_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", HEAD + ROWS)

    with pytest.raises(DataError, match="none may be the arm, the reward or the propensity"):
        read_rounds(path, context="reward")


def test_rewards_as_text_are_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", HEAD + "0,0,a,bought,0.5\n")

    with pytest.raises(DataError, match="numbers in the column 'reward': found 'bought'"):
        read_rounds(path)


def test_a_reward_that_is_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", HEAD + "0,0,a,,0.5\n")

    with pytest.raises(InputError, match="rewards need to be finite: got nan in row 1 of"):
        read_rounds(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"found no .*gone\.csv"):
        read_rounds(tmp_path / "gone.csv")


def test_a_file_of_another_kind_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"in \.parquet, \.csv.*: got .*log\.xlsx\. Save or"):
        read_rounds(write(tmp_path / "log.xlsx", ""))
