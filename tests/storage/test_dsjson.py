"""Decisions as lines for Vowpal Wabbit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from little_exports import lines, made
from msgspec import structs

from fastbandit.storage.events import Arm, ArmsChanged, RewardCame
from fastbandit.storage.exports import export
from fastbandit.storage.sqlite_log import SqliteLog


def test_a_line_of_dsjson_labels_the_first_arm(log: SqliteLog, tmp_path: Path) -> None:
    log.append([ArmsChanged(upserted=[Arm("a", [1.0, 2.0]), Arm("b", [3.0, 4.0])])])
    log.append([made("one", catalogue=1, propensities=[0.25], eligible=["b", "a", "c"])])
    log.append([ArmsChanged(upserted=[Arm("a", [9.0, 9.0])]), RewardCame("one", 0.5)])

    assert lines(tmp_path, "dsjson") == [
        {
            "_label_cost": -0.5,
            "_label_probability": 0.25,
            "_label_Action": 1,
            "_labelIndex": 0,
            "Timestamp": "2026-01-01T00:00:00Z",
            "Version": "1",
            "EventId": "one",
            "a": [1, 2, 3],
            "c": {
                "context": [0.5, 1.5],
                "_multi": [
                    {"_tag": "a", "arm": {"id": "a"}, "features": [1.0, 2.0]},
                    {"_tag": "b", "arm": {"id": "b"}, "features": [3.0, 4.0]},
                    {"_tag": "c", "arm": {"id": "c"}},
                ],
            },
            "p": [0.25, 0.375, 0.375],
            "VWState": {"m": "2"},
        }
    ]


def test_what_was_chosen_without_exploring_was_certain(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one", ("a", "b"), explored=False), RewardCame("one", 1.0)])

    (line,) = lines(tmp_path, "dsjson")
    assert (line["_label_probability"], line["p"]) == (1.0, [1.0, 0.0])


def test_what_a_baseline_chose_is_certain_only_where_it_says_so(
    log: SqliteLog, tmp_path: Path
) -> None:
    beside: dict[str, Any] = {"explored": False, "decided_by": "baseline", "other": "b"}
    log.append([made("one", **beside), made("two", propensities=[0.5], **beside)])
    log.append([RewardCame("one", 1.0), RewardCame("two", 1.0)])

    (line,) = lines(tmp_path, "dsjson")
    assert (line["EventId"], line["_label_probability"]) == ("two", 0.5)


def test_dsjson_says_which_decisions_it_leaves_out(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("waits", propensities=[0.5]), made("unsure"), made("sure", explored=False)])
    log.append([RewardCame("unsure", 1.0), RewardCame("sure", 1.0)])

    found = export(tmp_path, tmp_path / "out", "dsjson")

    assert found.rows == 1
    assert found.left_out == {"no reward yet": 1, "no propensity": 1}


def vowpal_wabbit() -> Any:
    """Import Vowpal Wabbit, also from where it was put aside for comparisons."""
    if importlib.util.find_spec("vowpalwabbit") is None:
        pytest.skip("vowpalwabbit is not installed: pip install 'fastbandit[peers]'")
    return pytest.importorskip("vowpalwabbit")


def test_vowpal_wabbit_learns_from_the_lines(log: SqliteLog, tmp_path: Path) -> None:
    library = vowpal_wabbit()
    log.append([ArmsChanged(upserted=[Arm("good", [1.0, 0.0]), Arm("bad", [0.0, 1.0])])])
    for number in range(100):
        arm = ("good", "bad")[number % 2]
        found = {"catalogue": 1, "propensities": [0.5], "eligible": ["good", "bad"]}
        log.append([made(f"{number}", (arm,), **found)])
        log.append([RewardCame(f"{number}", float(arm == "good"))])
    export(tmp_path, tmp_path / "out", "dsjson")
    learner = library.Workspace("--cb_explore_adf --dsjson --quiet --epsilon 0.1")

    for line in (tmp_path / "out").read_text().splitlines():
        examples = learner.parse(line)
        learner.learn(examples)
        learner.finish_example(examples)

    examples = learner.parse((tmp_path / "out").read_text().splitlines()[1])
    tags = [example.get_tag() for example in examples[1:]]
    likely = dict(zip(tags, learner.predict(examples), strict=True))
    learner.finish_example(examples)
    learner.finish()
    assert likely["good"] > 0.9 > likely["bad"]


def test_values_by_name_are_features_without_gaps(log: SqliteLog, tmp_path: Path) -> None:
    context = {"age": 31, "country": None, "likes": ["jazz", "rock"]}
    log.append([ArmsChanged(upserted=[Arm("a", {"price": 3, "genre": None})])])
    one = made("one", catalogue=1, propensities=[0.25])
    log.append([structs.replace(one, context=context), RewardCame("one", 0.5)])

    (line,) = lines(tmp_path, "dsjson")

    assert line["c"]["context"] == {"age": 31, "likes": {"jazz": True, "rock": True}}
    assert line["c"]["_multi"][0]["features"] == {"price": 3}
