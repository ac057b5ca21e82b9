"""Logs in DSJSON come back as contexts, arms, rewards and propensities."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fastbandit import Bandit
from fastbandit.adapters.dsjson_lines import NO_ACTIONS, NO_CONTEXT, NO_LABEL, NO_LEARNING, SLOTS
from fastbandit.adapters.vowpal_wabbit import read_dsjson
from fastbandit.errors import DataError, InputError
from fastbandit.evaluation import read_rounds
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, RewardCame
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

    waiting = line(_label_cost=None, _label_probability=None)
    amount = line(c={"User": {"age": 3}})
    bad = [dangling, line(_skipLearn=True), slots, b" \n", waiting, amount]

    log = read_dsjson([*bad, line()])

    assert len(log) == 1
    assert log.left_out == dict.fromkeys([NO_CONTEXT, NO_LEARNING, SLOTS, NO_LABEL, NO_ACTIONS], 1)


def test_an_id_in_a_namespace_names_the_arm_and_is_no_feature() -> None:
    actions = [{"Item": {"id": "tea", "price": 2}}, {"Item": {"id": 7, "price": 3}}]

    log = read_dsjson([line(c={"hour": 7, "_multi": actions})])

    assert (log.ids, log.arms) == (["tea", "7"], ["7"])
    assert (log.feature_columns, log.features.tolist()) == (("Item.price",), [[2], [3]])


def test_an_arm_that_is_offered_twice_is_as_likely_as_both_places() -> None:
    actions = [{"_tag": "a", "i": {"x": 2}}, {"_tag": "b"}, {"_tag": "a"}]

    log = read_dsjson([line(c={"_multi": actions}, _labelIndex=2, a=[3, 1, 2], p=[0.5, 0.3, 0.2])])

    assert (log.ids, log.arms, log.propensities.tolist()) == (["a", "b"], ["a"], [0.8])
    assert log.features.tolist() == [[2], [0]]


def test_tokens_of_a_text_are_flags() -> None:
    log = read_dsjson([line(c={"Title": {"_text": "red red fox"}, "_multi": [{}, {"_tag": "a"}]})])

    assert (log.columns, log.contexts.tolist()) == (("Title.fox", "Title.red"), [[1, 1]])


def test_a_zero_keeps_its_column() -> None:
    log = read_dsjson([line(c={"x": [0, 0.0], "_multi": [{"_tag": "a"}, {"_tag": "b"}]})])

    assert log.columns == ("x.0", "x.1")


def test_a_gzipped_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson.gz"
    path.write_bytes(gzip.compress(line().encode()))

    assert len(read_dsjson(path)) == 1


def test_a_probability_of_0_is_rejected_with_its_line() -> None:
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


def exported(folder: Path, arms: Any) -> None:
    """Write a log of three decisions, and export it as out.dsjson."""
    log = SqliteLog(folder / "events.db")
    first, second = dict.fromkeys(arms)
    log.append([ArmsChanged(upserted=[Arm(first, [1.0, 2.0]), Arm(second, [3.0, 4.0])])])
    for number, arm in enumerate(arms):
        made = DecisionMade(
            f"{number}",
            [0.5, float(number)],
            [arm],
            [0.1],
            propensities=[0.25],
            eligible=[first, second],
            seed=1,
            version=1,
            catalogue=1,
            wait=10,
            default_reward=0.0,
        )
        log.append([made, RewardCame(f"{number}", 0.5 * number)])
    export(folder, folder / "out.dsjson", "dsjson")
    log.close()


def test_an_export_is_read_back(tmp_path: Path) -> None:
    exported(tmp_path, "abb")

    read = read_dsjson(tmp_path / "out.dsjson")

    assert read.contexts.tolist() == [[0.5, 0], [0.5, 1], [0.5, 2]]
    assert (read.arms, read.rewards.tolist()) == (list("abb"), [0, 0.5, 1])
    assert read.propensities.tolist() == [0.25] * 3
    assert dict(zip(read.ids, read.features.tolist(), strict=True)) == {"a": [1, 2], "b": [3, 4]}
    assert [sorted(ids) for ids in read.eligible] == [["a", "b"]] * 3


@pytest.mark.parametrize(("arms", "kind"), [("abb", str), ([7, 8, 8], int)])
def test_an_evaluation_reads_an_export_as_it_is_read_here(
    tmp_path: Path, arms: Any, kind: type
) -> None:
    exported(tmp_path, arms)

    ours, theirs = read_dsjson(tmp_path / "out.dsjson"), read_rounds(tmp_path / "out.dsjson")

    assert (theirs.contexts == ours.contexts).all()
    assert (theirs.rewards == ours.rewards).all()
    assert (theirs.propensities == ours.propensities).all()
    assert (theirs.vectors == ours.features).all()
    assert list(theirs.ids or ()) == [kind(id) for id in ours.ids]
    assert [theirs.ids[row] for row in theirs.chosen] == list(arms)


@pytest.mark.usefixtures("little_training")
def test_a_bandit_learns_from_a_log() -> None:
    log = read_dsjson([line(EventId=str(number)) for number in range(20)])
    bandit = Bandit(arms=log.features, ids=log.ids, context=len(log.columns), search="exhaustive")

    bandit.update(contexts=log.contexts, arms=log.arms, rewards=log.rewards)

    assert bandit.version == 1


def labels_found(library: Any, lines: list[str]) -> list[list[float]]:
    """Let Vowpal Wabbit read lines; give the cost and the probability of each label it finds."""
    workspace = library.Workspace("--cb_explore_adf --dsjson --quiet")
    found = []
    for text in lines:
        examples = workspace.parse(text)
        labels = [one.get_label(library.LabelType.CONTEXTUAL_BANDIT) for one in examples]
        found += [[cost.cost, cost.probability] for label in labels for cost in label.costs]
        workspace.finish_example(examples)
    workspace.finish()
    return [pair for pair in found if pair[1] > 0]  # the shared example has none


def test_vowpal_wabbit_finds_the_same_labels() -> None:
    library = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    changed = line(_label_cost=0.5, _label_probability=0.25, _labelIndex=0, _label_Action=1)
    unlabelled = {key: value for key, value in json.loads(line()).items() if "label" not in key}
    lines = [line(), json.dumps(unlabelled), changed]

    log = read_dsjson(lines)

    pairs = [[-reward, p] for reward, p in zip(log.rewards, log.propensities, strict=True)]
    assert pairs == labels_found(library, lines)
