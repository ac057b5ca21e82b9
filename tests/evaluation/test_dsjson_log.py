"""Lines of DSJSON become rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastbandit import Schema
from fastbandit.errors import (
    DataError,
    SettingError,
)
from fastbandit.evaluation import read_rounds
from fastbandit.storage.sqlite_log import SqliteLog


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(tmp_path / "events.db")
    yield log
    log.close()


def line(**changes: Any) -> str:
    told = {
        "_label_cost": -1.0,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "a": [2, 1],
        "c": {
            "GUser": {"id": "a", "age": 30},
            "_multi": [{"TAction": {"id": "sports"}}, {"TAction": {"id": "politics"}}],
        },
        "p": [0.8, 0.2],
        **changes,
    }
    return json.dumps(told) + "\n"


def test_lines_of_vowpal_wabbit_are_read(tmp_path: Path) -> None:
    other = line(_label_cost=0.0, _labelIndex=0, _label_Action=1, _label_probability=0.2)

    found = read_rounds(write(tmp_path / "log.dsjson", line() + other))

    assert list(found.ids or ()) == ["sports", "politics"]
    assert found.chosen.tolist() == [1, 0]
    assert found.rewards.tolist() == [1.0, 0.0]
    assert found.propensities.tolist() == [0.8, 0.2]
    assert found.contexts.tolist() == [[30.0, 1.0], [30.0, 1.0]]


def test_lines_hold_no_contexts_by_name(tmp_path: Path) -> None:
    schema = Schema.infer([{"age": 1}, {"age": 2}])

    with pytest.raises(DataError, match=r"schema needs contexts by name: .* is DSJSON"):
        read_rounds(write(tmp_path / "log.dsjson", line()), schema=schema)


def test_late_rewards_between_the_lines_are_left_out(tmp_path: Path) -> None:
    late = json.dumps({"EventId": "1", "RewardValue": 1.0}) + "\n"

    found = read_rounds(write(tmp_path / "log.json", line() + late))

    assert len(found) == 1
    assert found.notes == ("lines with no context are left out (1)",)


def test_lines_without_a_label_are_left_out_and_said(tmp_path: Path) -> None:
    waiting = line(_label_cost=None, _label_probability=None)

    found = read_rounds(write(tmp_path / "log.json", line() + waiting))

    assert len(found) == 1
    assert found.notes == (
        "lines with no label are left out (1)",
        "where no label means that nothing was earned, write a cost of 0 instead",
    )


def test_lines_without_any_label_are_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "log.json", line(_label_cost=None, _label_probability=None))

    with pytest.raises(DataError, match=r"it has none \(1 have no label\)\. Export"):
        read_rounds(path)


def test_the_columns_of_lines_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.dsjson", line())

    assert read_rounds(path, context=["GUser.age"]).contexts.tolist() == [[30.0]]
    with pytest.raises(DataError, match=r"no line has any of age\. Name them as"):
        read_rounds(path, context=["age"])


def test_lines_may_have_a_table_of_all_arms(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", "id,price\nweather,3\npolitics,2\nsports,1\n")

    found = read_rounds(write(tmp_path / "log.dsjson", line()), arms=arms)

    assert (found.arms, found.chosen.tolist()) == (3, [1])
    assert found.vectors.tolist() == [[3.0], [2.0], [1.0]]


def test_a_column_of_lines_cannot_be_another(tmp_path: Path) -> None:
    with pytest.raises(
        SettingError, match=r"--reward .* needs a table, .* got 'cost' for .*Leave it"
    ):
        read_rounds(write(tmp_path / "log.dsjson", line()), reward="cost")


def test_a_line_without_a_probability_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.dsjson", line() + line(_label_probability=None))

    with pytest.raises(DataError, match=r"'_label_probability': got None in line 2 of .*log"):
        read_rounds(path)


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.dsjson", line() + "{oops\n")

    with pytest.raises(DataError, match=r"got b'\{oops.* in line 2 of .*log"):
        read_rounds(path)


def test_a_label_beyond_the_actions_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.dsjson", line(_labelIndex=5))

    with pytest.raises(DataError, match="got _labelIndex 5 in line 1"):
        read_rounds(path)


def test_lines_of_another_export_are_recognised(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", json.dumps({"arms": ["a"], "reward": 1.0}) + "\n")

    with pytest.raises(DataError, match="Export with --format dsjson or parquet"):
        read_rounds(path)
