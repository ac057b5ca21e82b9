"""Logs of actions are read from folders, with what cannot be read counted and named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fastbandit.adapters.action_logs import (
    DAMAGED,
    REPEATED,
    context_of,
    features_of,
    read_action_log,
)
from fastbandit.adapters.dsjson_lines import NO_LABEL, NO_LEARNING
from fastbandit.errors import DataError
from fastbandit.serving.personalizer.rank import read_rank


def line(event: str, **changes: Any) -> str:
    """Give a line as Personalizer exports it."""
    known = {
        "_label_cost": -1.0,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"EventId": event, "v": 1.0}],
        "Timestamp": "2024-05-01T10:00:00.1230000Z",
        "Version": "1",
        "EventId": event,
        "a": [2, 1],
        "c": {
            "FromUrl": [{"user": {"age": 30}}, {"hour": 7}],
            "_multi": [
                {"_tag": "a", "i": {"constant": 1, "id": "a"}, "j": [{"topic": "sea"}]},
                {"_tag": "b", "i": {"constant": 1, "id": "b"}, "j": [{"topic": "sky"}, {"n": 2}]},
            ],
        },
        "p": [0.8, 0.2],
        "pdrop": 0.0,
    }
    return json.dumps({**known, **changes})


def test_a_line_of_personalizer_is_read_as_clients_sent_it(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(line("one"))

    log = read_action_log(path)

    assert log.contexts == [{"user": {"age": 30}, "hour": 7}]
    assert (log.ids, log.features) == (["b", "a"], [{"topic": "sky", "n": 2}, {"topic": "sea"}])
    assert log.offered == [(1, 0)]
    assert (log.taken.tolist(), log.chosen.tolist()) == ([1], [0])
    assert (log.rewards.tolist(), log.propensities.tolist()) == ([1.0], [0.8])
    assert log.explored.tolist() == [0.4]


def test_folders_by_date_are_read_in_order_gzipped_or_not(tmp_path: Path) -> None:
    for day, event in (("02", "second"), ("01", "first")):
        folder = tmp_path / "2024" / "05" / day
        folder.mkdir(parents=True)
        (folder / "log.json.gz").write_bytes(
            gzip.compress(line(event, Timestamp=f"2024-05-{day}").encode())
        )
    (tmp_path / "notes.md").write_text("no log")

    log = read_action_log(tmp_path)

    assert log.times == ["2024-05-01", "2024-05-02"]
    assert log.files == 2


def test_bad_lines_are_counted_and_named_and_the_others_read(tmp_path: Path) -> None:
    lines = [
        line("good"),
        "{bad",
        line("nan", _label_probability=0.0),
        line("none", _label_cost=None, _label_probability=None),
        line("skipped", _skipLearn=True),
        line("good"),
        line("far", _labelIndex=7),
    ]
    (tmp_path / "log.json").write_text("\n".join(lines))
    (tmp_path / "torn.json.gz").write_bytes(gzip.compress(b"{}" * 99)[:-9])

    log = read_action_log(tmp_path)

    assert len(log) == 1
    assert log.left_out == {DAMAGED: 4, NO_LABEL: 1, NO_LEARNING: 1, REPEATED: 1}
    assert [f"line {n} of" in said for n, said in zip((2, 3, 7), log.damaged, strict=False)] == [
        True
    ] * 3
    assert "torn.json.gz" in log.damaged[3]


def test_text_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "log.vw"
    path.write_text("\nshared |U age:3\n|A a\n0:-1:0.5 |A b\n\nshared |U age:4\n0:0:0.5 |A a\n|A b")

    log = read_action_log(path)

    assert log.contexts == [{"U": {"age": 3.0}}, {"U": {"age": 4.0}}]
    assert log.rewards.tolist() == [1.0, 0.0]
    assert log.taken.tolist() == [1, 0]
    assert len(log.ids) == 2


def test_an_id_may_be_a_feature(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    actions = [{"_tag": "x", "Item": {"sku": "s1"}}, {"_tag": "y", "Item": {"sku": "s2"}}]
    path.write_text(line("one", c={"_multi": actions}))

    assert read_action_log(path).ids == ["y", "x"]
    assert read_action_log(path, id_name="sku").ids == ["s2", "s1"]


def test_an_action_that_is_offered_twice_is_one(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(line("one", c={"_multi": [{"_tag": "x"}, {"_tag": "x"}, {"_tag": "y"}]}))

    log = read_action_log(path)

    assert log.offered == [(0, 1)]
    assert log.propensities.tolist() == [1.0]


def test_rewards_without_an_outcome_tell_the_default(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text("\n".join([line("one"), line("two", o=[], _label_cost=-0.25)]))

    assert read_action_log(path).unrewarded == (0.25,)


def test_of_a_feature_that_was_sent_twice_the_last_counts_as_where_it_is_served() -> None:
    sent: list[dict[str, Any]] = [{"x": 1, "user": {"a": 1}}, {"x": 2, "user": {"a": 3, "b": 4}}]
    ranked = {"id": "one", "features": sent}
    (arm,) = read_rank(json.dumps({"actions": [ranked]}).encode(), {}).arms

    assert context_of({"FromUrl": sent}) == {"x": 2, "user": {"a": 3, "b": 4}}
    assert features_of({"i": {"constant": 1, "id": "one"}, "j": sent}) == arm.features


def test_our_own_export_is_unwrapped() -> None:
    assert context_of({"context": {"city": "Rome"}}) == {"city": "Rome"}
    arm = {"_tag": "7", "arm": {"id": "7"}, "features": {"price": 2}}
    assert features_of(arm) == {"price": 2}
    assert features_of({"_tag": "7", "arm": {"id": "7"}}) == {}


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found none in"):
        read_action_log(tmp_path)
    (tmp_path / "log.json").write_text("{bad")
    with pytest.raises(DataError, match="it has none"):
        read_action_log(tmp_path)
