"""Nothing that was acknowledged is lost when a service or its learner is killed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pytest
from click.testing import CliRunner

from fastbandit.demo.synthetic import Synthetic
from fastbandit.learning.learner import Learner
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.sqlite_log import SqliteLog
from lab.faults import kills as campaign
from lab.faults.consistency import (
    history_faults,
    lineage_faults,
    lost_decisions,
    lost_rewards,
)
from lab.faults.kills import KillReport, kill_rounds, kills_command
from lab.faults.stage import Stage, set_stage

ASKED = {"a": {"context": [1.0]}}
ANSWERS = {"a": {"arms": [3], "scores": [0.5], "version": 1, "catalogue": 0}}
MADE = DecisionMade("a", [1.0], [3], [0.5], 7, 1, 0, 1_000, seq=1, at=1)
WHOLE = KillReport(
    rounds=3,
    seed=0,
    kills={"service": 3},
    restarts=4,
    slowest_restart_seconds=1.0,
    decisions=10,
    rewards=9,
    broken=2,
    asked_again=1,
    lost_decisions=0,
    lost_rewards=0,
    other_answers=0,
    odd_answers=0,
    orphans=0,
    versions=2,
    learned=9,
    faults=[],
    minutes=0.5,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A stage whose learner has made two versions of what a log holds."""
    home = tmp_path_factory.mktemp("trained")
    stage = set_stage(home, Synthetic("h2", 1, 20), {"learn.fresh": 10, "learn.held_out": 0.0})
    log = SqliteLog(stage.data / "events.db")
    for number in range(20):
        made = DecisionMade(f"d{number}", [1.0], [number], [0.0], 7, 0, 0, 10**9)
        log.append([made, RewardCame(f"d{number}", number / 20, number)])
    log.close()
    learner = Learner(stage.config)
    assert [learner.step().did, learner.step().did] == ["published", "published"]
    return stage


@pytest.mark.slow
def test_kills_lose_nothing() -> None:
    report = kill_rounds(3, seed=2, arms=50, visitors=2)

    assert report.is_whole, report
    assert sum(report.kills.values()) == 3
    assert report.decisions > 0
    assert report.rewards > 0


@pytest.mark.slow
def test_kills_of_workers_and_their_writer_lose_nothing() -> None:
    report = kill_rounds(6, seed=3, arms=50, visitors=2, workers=2)

    assert report.is_whole, report
    assert {"worker", "writer"} <= set(report.kills)
    assert report.decisions > 0
    assert report.rewards > 0


def test_versions_are_counted_by_the_minute() -> None:
    assert replace(WHOLE, versions=7, minutes=3.0).versions_per_minute == 2.0


def test_a_decision_that_the_log_holds_is_not_lost() -> None:
    assert lost_decisions(ASKED, ANSWERS, [MADE]) == 0


@pytest.mark.parametrize(
    "answer", [{"arms": [4]}, {"scores": [0.25]}, {"version": 2}, {"catalogue": 1}]
)
def test_a_decision_that_the_log_holds_differently_is_lost(answer: dict[str, Any]) -> None:
    assert lost_decisions(ASKED, {"a": {**ANSWERS["a"], **answer}}, [MADE]) == 1


def test_a_decision_that_the_log_holds_twice_or_not_at_all_is_lost() -> None:
    assert lost_decisions(ASKED, ANSWERS, [MADE, MADE]) == 1
    assert lost_decisions(ASKED, ANSWERS, []) == 1


def test_a_reward_needs_to_be_there_as_often_as_it_was_acknowledged() -> None:
    came = RewardCame("a", 1.0, 3, status="counted", seq=2, at=2)

    assert lost_rewards(Counter({("a", 1.0, "counted"): 1}), [MADE, came]) == 0
    assert lost_rewards(Counter({("a", 1.0, "counted"): 2}), [MADE, came]) == 1
    assert lost_rewards(Counter({("a", 1.0, "late"): 1}), [MADE, came]) == 1


def test_a_lineage_that_follows_the_log_has_no_faults(trained: Stage) -> None:
    snapshots = trained.store.list()

    assert [one.cut.interactions for one in snapshots] == [0, 10, 20]
    assert lineage_faults(snapshots, trained.events()) == []
    assert history_faults(snapshots[-1], trained.events()) == []


def test_what_was_learned_twice_is_a_fault(trained: Stage) -> None:
    first, second, third = trained.store.list()
    again = replace(third, cut=replace(third.cut, interactions=30))

    assert lineage_faults([first, second, again], trained.events()) == [
        "version 2 does not add what it learned to its parent",
        "version 2 looked at other interactions than were ready",
    ]


def test_a_version_that_does_not_come_after_its_parent_is_a_fault(trained: Stage) -> None:
    first, second, third = trained.store.list()
    stuck = replace(third, cut=replace(third.cut, seq=second.cut.seq))

    faults = lineage_faults([first, second, stuck], trained.events())

    assert faults[0] == "version 2 does not come after its parent"


def test_a_history_of_other_interactions_is_a_fault(trained: Stage) -> None:
    last, events = trained.store.list()[-1], trained.events()

    assert history_faults(last, events[2:] + events[:2]) != []
    assert history_faults(replace(last, cut=replace(last.cut, interactions=5)), events) != []


@pytest.mark.parametrize(
    "change",
    [
        {"lost_decisions": 1},
        {"lost_rewards": 1},
        {"other_answers": 1},
        {"odd_answers": 1},
        {"orphans": 1},
        {"faults": ["one"]},
        {"versions": 1},
    ],
)
def test_a_report_is_whole_only_without_faults(change: dict[str, Any]) -> None:
    assert WHOLE.is_whole
    assert not replace(WHOLE, **change).is_whole


@pytest.mark.parametrize("change", [{"slowest_restart_seconds": 2.5}, {"minutes": 10.0}])
def test_the_command_fails_where_restarts_are_slow_or_versions_rare(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, float]
) -> None:
    slow = replace(WHOLE, **change)
    monkeypatch.setattr(campaign, "kill_rounds", lambda *args, **settings: slow)

    done = CliRunner().invoke(kills_command, ["--json"])

    assert done.exit_code == 1
    rate = 1 / slow.minutes
    said, wanted = json.loads(done.stdout), {**asdict(slow), "versions_per_minute": rate}
    assert {name: said[name] for name in wanted} == wanted


def test_the_command_prints_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "kill_rounds", lambda *args, **settings: WHOLE)

    done = CliRunner().invoke(kills_command, [])

    assert done.exit_code == 0
    assert "10 acknowledged decisions, 0 lost" in done.stdout
