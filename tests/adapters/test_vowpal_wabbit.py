"""Logs in DSJSON come back as contexts, arms, rewards and propensities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastbandit import Bandit
from fastbandit.adapters.vowpal_wabbit import NO_LABEL, NO_LEARNING, SLOTS, read_dsjson
from fastbandit.errors import DataError, InputError
from fastbandit.events import Arm, ArmsChanged, DecisionMade, RewardCame
from fastbandit.storage.exports import export
from fastbandit.storage.sqlite_log import SqliteLog


def line(**changes: Any) -> str:
    """Give a line with namespaces, as the documentation of Vowpal Wabbit shows them."""
    told = {
        "_label_cost": -1,
        "_label_probability": 0.5,
        "_label_Action": 2,
        "_labelIndex": 1,
        "Timestamp": "2021-07-29T10:00:00.999Z",
        "Version": "1",
        "EventId": "one",
        "a": [2, 1],
        "c": {
            "User": {"age": 30, "city": "Paris", "member": True},
            "hour": 7,
            "_multi": [{"Item": {"price": 2.5}}, {"Item": {"price": 1.5, "kind": "new"}}],
        },
        "p": [0.5, 0.5],
        "VWState": {"m": "N/A"},
    }
    return json.dumps({**told, **changes})


def test_namespaces_become_columns() -> None:
    log = read_dsjson([line()])

    assert log.columns == ("User.age", "User.city=Paris", "User.member", "hour")
    assert log.contexts.tolist() == [[30, 1, 1, 7]]
    assert log.feature_columns == ("Item.kind=new", "Item.price")
    assert log.features.tolist() == [[0, 2.5], [1, 1.5]]


def test_a_cost_is_a_reward_of_the_other_sign() -> None:
    log = read_dsjson([line(_label_cost=0.25)])

    assert (log.rewards.tolist(), log.propensities.tolist()) == ([-0.25], [0.5])


def test_the_label_names_the_arm() -> None:
    log = read_dsjson([line()])

    assert log.arms == [log.ids[1]]
    assert log.eligible == [log.ids]


def test_later_logs_can_have_the_columns_of_an_earlier_one() -> None:
    first = read_dsjson([line()])
    other = {"User": {"age": 40, "city": "Rome"}, "_multi": [{"_tag": "a"}, {"_tag": "b"}]}

    log = read_dsjson([line(c=other)], columns=first.columns)

    assert log.contexts.tolist() == [[40, 0, 0, 0]]
    assert log.arms == ["b"]


def test_numbers_in_a_row_keep_their_order() -> None:
    row = list(range(12))
    log = read_dsjson([line(c={"x": row, "_multi": [{"_tag": "7"}, {"_tag": "8"}]})], id_of=int)

    assert log.contexts.tolist() == [row]
    assert (log.arms, log.features.shape) == ([8], (2, 0))


def test_lines_without_an_outcome_are_counted_and_left_out() -> None:
    dangling = json.dumps({"RewardValue": 1, "EventId": "one"})
    slots = line(_outcomes=[], c={"_multi": [], "_slots": []})

    log = read_dsjson([dangling, line(_skipLearn=True), slots, b" \n", line()])

    assert len(log) == 1
    assert log.left_out == {NO_LABEL: 1, NO_LEARNING: 1, SLOTS: 1}


def test_a_probability_of_0_is_refused_with_its_line() -> None:
    with pytest.raises(InputError, match=r"probability 0\.0 in line 2"):
        read_dsjson([line(), line(_label_probability=0)])


@pytest.mark.parametrize(
    ("bad", "why"), [("no json", "in line 1"), (line(_labelIndex=5), "action 6 of 2")]
)
def test_a_line_that_cannot_be_read_is_named(bad: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        read_dsjson([bad])


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a file that can be read"):
        read_dsjson(tmp_path / "none.dsjson")


def test_an_export_is_read_back(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "events.db")
    log.append([ArmsChanged(put=[Arm("a", [1.0, 2.0]), Arm("b", [3.0, 4.0])])])
    for number, arm in enumerate("abb"):
        made = DecisionMade(
            f"{number}",
            [0.5, float(number)],
            [arm],
            [0.1],
            propensities=[0.25],
            eligible=["a", "b"],
            seed=1,
            version=1,
            catalogue=1,
            wait=10,
            otherwise=0.0,
        )
        log.append([made, RewardCame(f"{number}", 0.5 * number)])
    export(tmp_path, tmp_path / "out.dsjson", "dsjson")
    log.close()

    read = read_dsjson(tmp_path / "out.dsjson")

    assert read.contexts.tolist() == [[0.5, 0], [0.5, 1], [0.5, 2]]
    assert (read.arms, read.rewards.tolist()) == (list("abb"), [0, 0.5, 1])
    assert read.propensities.tolist() == [0.25] * 3
    assert dict(zip(read.ids, read.features.tolist(), strict=True)) == {"a": [1, 2], "b": [3, 4]}
    assert [sorted(ids) for ids in read.eligible] == [["a", "b"]] * 3


@pytest.mark.usefixtures("little_training")
def test_a_bandit_learns_from_a_log() -> None:
    log = read_dsjson([line(EventId=str(number)) for number in range(20)])
    bandit = Bandit(arms=log.features, ids=log.ids, context=len(log.columns), search="exhaustive")

    bandit.update(contexts=log.contexts, arms=log.arms, rewards=log.rewards)

    assert bandit.version == 1


def test_vowpal_wabbit_reads_the_same_label() -> None:
    library = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    workspace = library.Workspace("--cb_explore_adf --dsjson --quiet")

    examples = workspace.parse(line())
    labels = [example.get_label(library.LabelType.CONTEXTUAL_BANDIT) for example in examples]
    costs = [[cost.cost, cost.probability] for label in labels for cost in label.costs]
    workspace.finish_example(examples)
    workspace.finish()

    log = read_dsjson([line()])
    assert [-log.rewards[0], log.propensities[0]] in costs
