"""Logs in every form become the same rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.errors import (
    DataError,
    DuplicateArmError,
    InputError,
    LogError,
    SettingError,
    UnknownArmError,
)
from fastbandit.evaluation import evaluate, read_rounds
from fastbandit.evaluation.open_bandit import read_campaign
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.exports import export
from fastbandit.storage.sqlite_log import SqliteLog
from lab.estimators.open_bandit import policy_behind

HEAD = "x_0,x_1,arm,reward,propensity\n"
ROWS = "0.5,1.0,b,1,0.5\n1.5,2.0,a,0,0.25\n2.5,3.0,b,1,0.5\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def made(id: str, arm: str, **told: Any) -> DecisionMade:
    settings = {"seed": 1, "version": 2, "catalogue": 0, "wait": 10**9, **told}
    return DecisionMade(id, [0.5, 1.5], [arm], [0.1], **settings)


def exported(folder: Path) -> Path:
    """Write the log of a service as Parquet."""
    return export(folder, folder / "out.parquet", "parquet").file


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(tmp_path / "events.db")
    yield log
    log.close()


# -- tables


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

    assert found.contexts.tolist() == [[0.0, 1.0], [1.0, 0.0]]
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


def test_a_table_of_arms_tells_all_arms_and_their_features(tmp_path: Path) -> None:
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


def test_a_context_that_holds_the_reward_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", HEAD + ROWS)

    with pytest.raises(DataError, match="none may be the arm, the reward or the propensity"):
        read_rounds(path, context="reward")


def test_rewards_in_words_are_refused(tmp_path: Path) -> None:
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


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"in \.parquet, \.csv.*: got .*log\.xlsx\. Save or"):
        read_rounds(write(tmp_path / "log.xlsx", ""))


# -- a service


def test_the_log_of_a_service_is_read(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", "a", propensities=[0.25]), RewardCame("one", 2.0)])
    log.append([made("two", "b", propensities=[0.5]), RewardCame("two", 1.0)])

    found = read_rounds(tmp_path)

    assert found.contexts.tolist() == [[0.5, 1.5]] * 2
    assert found.rewards.tolist() == [2.0, 1.0]
    assert found.propensities.tolist() == [0.25, 0.5]
    assert list(found.ids or ()) == ["a", "b"]


@pytest.mark.parametrize("is_export", [False, True])
def test_what_cannot_be_used_is_left_out_and_said(
    log: SqliteLog, tmp_path: Path, is_export: bool
) -> None:
    log.append([made("one", "a", propensities=[0.25]), RewardCame("one", 2.0)])
    log.append([made("two", "b"), RewardCame("two", 1.0)])
    log.append([made("three", "b", propensities=[0.5], eligible=["b"]), RewardCame("three", 1.0)])
    log.append([made("four", "b", propensities=[0.5])])

    found = read_rounds(exported(tmp_path) if is_export else tmp_path)

    assert len(found) == 1
    assert sum("left out" in note for note in found.notes) == 3
    assert any("do not say how likely" in note for note in found.notes)


@pytest.mark.parametrize("is_export", [False, True])
def test_rewards_that_came_early_do_not_make_up_for_those_still_waited_for(
    log: SqliteLog, tmp_path: Path, is_export: bool
) -> None:
    for number in range(4):
        log.append([made(str(number), "a", propensities=[0.25])])
        if number != 2:
            log.append([RewardCame(str(number), 1.0)])

    found = read_rounds(exported(tmp_path) if is_export else tmp_path)

    assert len(found) == 2
    assert any("decisions that come with or after" in note for note in found.notes)


def test_an_export_with_slates_of_several_lengths_is_read_like_the_log(
    log: SqliteLog, tmp_path: Path
) -> None:
    for id, arms, told in (
        ("one", ["a"], [0.25]),
        ("two", ["b", "a"], [0.5, 0.1]),
        ("3", ["a"], None),
    ):
        terms: dict[str, Any] = {"seed": 1, "version": 2, "catalogue": 0, "wait": 10**9}
        decision = DecisionMade(id, [0.5, 1.5], arms, [0.1] * len(arms), **terms, propensities=told)
        log.append([decision, RewardCame(id, 1.0)])

    found, ours = read_rounds(exported(tmp_path)), read_rounds(tmp_path)

    assert found.propensities.tolist() == ours.propensities.tolist() == [0.25, 0.5]
    assert found.chosen.tolist() == ours.chosen.tolist() == [0, 1]
    assert any("do not say how likely" in note for note in found.notes)


def test_a_service_that_never_asked_for_propensities_says_what_to_do(
    log: SqliteLog, tmp_path: Path
) -> None:
    log.append([made("one", "a"), RewardCame("one", 1.0)])

    with pytest.raises(LogError, match=r"1 do not say how likely.*Select with propensity: true"):
        read_rounds(tmp_path)


def test_an_export_without_propensities_says_what_to_do(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", "a"), RewardCame("one", 1.0)])

    with pytest.raises(DataError, match=r"none in 1 rows\. Select with propensity: true"):
        read_rounds(exported(tmp_path))


@pytest.mark.parametrize("format", ["parquet", "dsjson"])
def test_an_export_is_read_like_the_log(log: SqliteLog, tmp_path: Path, format: str) -> None:
    log.append([made("one", "a", propensities=[0.25]), RewardCame("one", 2.0)])
    log.append([made("two", "b", propensities=[0.5]), RewardCame("two", 1.0)])
    out = tmp_path / f"out.{format}"
    export(tmp_path, out, format)

    found, ours = read_rounds(out), read_rounds(tmp_path)

    assert found.contexts.tolist() == ours.contexts.tolist()
    assert found.rewards.tolist() == ours.rewards.tolist()
    assert found.propensities.tolist() == ours.propensities.tolist()
    assert list(found.ids or ()) == list(ours.ids or ())


# -- DSJSON


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


def test_lines_without_any_label_are_refused(tmp_path: Path) -> None:
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


def test_lines_of_another_export_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", json.dumps({"arms": ["a"], "reward": 1.0}) + "\n")

    with pytest.raises(DataError, match="Export with --format dsjson or parquet"):
        read_rounds(path)


# -- Open Bandit


def open_bandit(folder: Path, policy: str, arms: list[int]) -> Path:
    home = folder / "obd" / policy / "men"
    home.mkdir(parents=True)
    items = "".join(f"{row},0.{row},a,b,{'c' if row else 'd'}\n" for row in range(2))
    features = ",".join(f"item_feature_{number}" for number in range(4))
    write(home / "item_context.csv", f"item_id,{features}\n{items}")
    users = ",".join(f"user_feature_{number}" for number in range(4))
    rows = "".join(
        f"{arm},{1 + place % 2},{place % 2},0.5,u,v,w,x\n" for place, arm in enumerate(arms)
    )
    write(home / "men.csv", f"item_id,position,click,propensity_score,{users}\n{rows}")
    return home


def test_an_open_bandit_folder_is_read_with_the_place_on_the_page(tmp_path: Path) -> None:
    found = read_rounds(open_bandit(tmp_path, "random", [0, 1, 1, 0]))

    assert found.arms == 2
    assert found.rewards.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert found.contexts[:, -2:].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_the_policy_behind_a_log_has_its_shares_at_each_place(tmp_path: Path) -> None:
    by = read_campaign(open_bandit(tmp_path, "random", [0, 1, 1, 0]))
    judged = read_campaign(open_bandit(tmp_path, "bts", [0, 1, 0, 1, 1, 1, 0, 1]))

    policy = policy_behind(judged, by)

    # at the first place 0 three times of four, at the second always 1
    assert policy.probability_of(np.zeros(4, dtype=int)) == pytest.approx([0.75, 0, 0.75, 0])
    assert evaluate(by.rounds, policy, estimators=["ips"]).rounds == 4
