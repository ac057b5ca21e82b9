"""A user's own log is read from Parquet or CSV, and every mistake in it is named."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastbandit.baselines import RandomBandit
from fastbandit.errors import DataError, SettingError
from lab.experiments.datasets import load
from lab.experiments.environment import Tabled
from lab.experiments.logged import LoggedData
from lab.experiments.replay import replay

ROWS: dict[str, list[Any]] = {
    "x_age": [31.5, 40.0, 22.0, 58.0],
    "x_sex": ["f", "m", "f", "d"],
    "spare": [1, 2, 3, 4],
    "arm": ["10", "9", "10", "9"],
    "reward": [1, 0, 0, 1],
    "chance": [0.25, 0.5, 0.5, 0.5],
}
ARMS = {"arm": ["9", "10", "11"], "price": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]}


def write(path: Path, rows: dict[str, list[Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(rows), path)
        return path
    lines = [",".join(rows), *(",".join(map(str, r)) for r in zip(*rows.values(), strict=True))]
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def log_from(path: Path, **options: Any) -> LoggedData:
    log = load("table", path=path, **({"context": "x_*"} | options))
    assert isinstance(log, LoggedData)
    return log


@pytest.mark.parametrize("file", ["log.parquet", "log.csv", "log.csv.gz"])
def test_the_same_table_is_read_from_any_kind_of_file(tmp_path: Path, file: str) -> None:
    log = log_from(write(tmp_path / file, ROWS), propensity="chance")

    ages, flags = [31.5, 40.0, 22.0, 58.0], [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert np.array_equal(log.contexts.dense, np.column_stack([ages, flags]))
    assert log.ids == ["9", "10"]
    assert log.chosen.tolist() == [1, 0, 1, 0]
    assert log.rewards.tolist() == [1, 0, 0, 1]
    assert log.propensities is not None
    assert log.propensities.tolist() == [0.25, 0.5, 0.5, 0.5]
    assert (log.reward, log.arms, log.context.dim) == ("binary", None, 4)  # type: ignore[attr-defined]


def test_rewards_other_than_zero_and_one_are_real(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", ROWS | {"reward": [0, 1, 0.5, 2]})

    assert log_from(path).reward == "real"


def test_true_and_false_are_rewards_too(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", ROWS | {"reward": [True, False, False, True]})

    assert log_from(path).rewards.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("ids", [[2**60 + 1, 7, 2**60 + 1, 7], ["007", "7", "007", "7"]])
def test_ids_of_arms_are_read_to_the_letter(tmp_path: Path, ids: list[Any]) -> None:
    log = log_from(write(tmp_path / "log.parquet", ROWS | {"arm": ids}))

    assert log.ids is not None
    assert set(log.ids) == {str(id) for id in ids}


def test_arms_may_have_features_and_may_never_have_been_taken(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", ARMS)

    log = log_from(write(tmp_path / "log.parquet", ROWS), arms=arms)

    assert log.ids == ["9", "10", "11"]
    assert log.chosen.tolist() == [1, 0, 1, 0]
    assert np.array_equal(log.arms, [[1, 0, 1], [2, 1, 0], [3, 0, 1]])


def test_a_log_without_propensities_says_that_it_is_taken_to_be_uniform(tmp_path: Path) -> None:
    log = log_from(write(tmp_path / "log.csv", ROWS))

    assert log.propensities is None
    assert "no propensities: every arm is taken to be equally likely" in log.notes


def test_a_path_may_lie_below_the_data_folder(tmp_path: Path) -> None:
    write(tmp_path / "log.csv", ROWS)

    assert len(load("table", data=tmp_path, path="log.csv", context=["x_age"]).chosen) == 4  # type: ignore[attr-defined]


def test_a_log_can_be_replayed_or_simulated(tmp_path: Path) -> None:
    many = {column: values * 20 for column, values in ROWS.items()}
    path = write(tmp_path / "log.csv", many)
    log = log_from(path)

    replayed = replay(log, RandomBandit(ids=log.ids, reward="binary"), batch=10)
    environment = load("table", path=path, context="x_*", mode="simulator")

    assert 0 < replayed.matches < 80
    assert isinstance(environment, Tabled)
    assert (environment.rounds, environment.size, len(environment.instances)) == (80, 2, 4)


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({"context": "y_*"}, "y_*"),
        ({"arm": "item"}, "item"),
        ({"reward": "click"}, "click"),
        ({"propensity": "p"}, "p"),
    ],
)
@pytest.mark.parametrize("file", ["log.parquet", "log.csv"])
def test_a_missing_column_is_named_with_those_there_are(
    tmp_path: Path, file: str, options: dict[str, str], column: str
) -> None:
    path = write(tmp_path / file, ROWS)

    with pytest.raises(DataError) as caught:
        log_from(path, **options)

    assert f"{path} needs a column {column!r}: found x_age, x_sex, spare, arm" in str(caught.value)


@pytest.mark.parametrize("file", ["log.parquet", "log.csv"])
def test_a_context_never_holds_the_arm_its_reward_or_its_propensity(
    tmp_path: Path, file: str
) -> None:
    path = write(tmp_path / file, ROWS)

    every, some = (log_from(path, context=c, propensity="chance") for c in ("*", ["x_*", "spare"]))

    assert np.array_equal(every.contexts.dense, some.contexts.dense)
    assert every.rewards.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("context", ["reward", ["arm", "rew*"]])
def test_a_context_of_nothing_but_the_reward_and_the_arm_is_refused(
    tmp_path: Path, context: str | list[str]
) -> None:
    with pytest.raises(SettingError, match="needs columns other than arm, reward: got"):
        log_from(write(tmp_path / "log.csv", ROWS), context=context)


def test_too_many_texts_in_a_column_are_to_be_hashed(tmp_path: Path) -> None:
    many = {c: v * 65 for c, v in ROWS.items()} | {"x_sex": [f"level {n}" for n in range(260)]}

    with pytest.raises(DataError, match=r"'x_sex' has 260\. Hash them"):
        log_from(write(tmp_path / "log.csv", many))


@pytest.mark.parametrize("file", ["log.parquet", "log.csv"])
def test_a_number_that_is_missing_is_named(tmp_path: Path, file: str) -> None:
    hole: Any = None if file == "log.parquet" else ""
    path = write(tmp_path / file, ROWS | {"x_age": [1.0, 2.0, hole, 4.0]})

    with pytest.raises(DataError, match="column 'x_age': row 3 has none"):
        log_from(path)


def test_a_reward_that_is_text_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", ROWS | {"reward": [1, "yes", 0, 0]})

    with pytest.raises(DataError, match="numbers in the column 'reward': found 'yes'"):
        log_from(path)


def test_a_row_without_an_arm_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", ROWS | {"arm": ["1", "", "2", "1"]})

    with pytest.raises(DataError, match="an arm in every row of the column 'arm'"):
        log_from(path)


def test_an_arm_without_features_is_refused(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", {"arm": ["9", "11"], "price": [1.0, 2.0]})

    with pytest.raises(DataError, match="has '10', which is not in it"):
        log_from(write(tmp_path / "log.csv", ROWS), arms=arms)


def test_an_arm_that_is_described_twice_is_refused(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", {"arm": ["9", "9"], "price": [1.0, 2.0]})

    with pytest.raises(DataError, match="found '9' twice"):
        log_from(write(tmp_path / "log.csv", ROWS), arms=arms)


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"nothing of the kind")

    with pytest.raises(DataError, match="whole Parquet file"):
        log_from(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"found neither nowhere\.csv nor"):
        load("table", data=tmp_path, path="nowhere.csv", context="x")


def test_a_path_and_a_context_are_needed(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="needs a path and the columns of the context"):
        load("table", context="x")


def test_a_mode_is_one_of_two(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="replay, simulator: got 'relive'"):
        log_from(write(tmp_path / "log.csv", ROWS), mode="relive")
