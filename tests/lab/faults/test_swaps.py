"""A version is swapped under load without a failed request or a mixed answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import structs

from fastbandit.demo.synthetic import Synthetic
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.events import DecisionMade
from lab.faults import swaps as campaign
from lab.faults.load import Answers
from lab.faults.stage import Reply, Stage, set_stage
from lab.faults.swaps import (
    Alternation,
    SwapReport,
    failed,
    hot_swaps,
    mixed,
    swaps_command,
    two_bandits,
)

WHOLE = SwapReport(
    swaps=40,
    under_load=40,
    seed=0,
    arms=100,
    requests=1_000,
    failed=0,
    versions=41,
    unknown=0,
    checked=100,
    mixed=0,
    steady_p50_ms=1.0,
    steady_p99_ms=4.0,
    swapping_p50_ms=1.0,
    swapping_p99_ms=5.0,
    memory=[{"rss": 10, "anonymous": 5, "mappings": 3}],
    growth=0.01,
)


@pytest.fixture(scope="module")
def alternation(tmp_path_factory: pytest.TempPathFactory) -> Alternation:
    stage: Stage = set_stage(tmp_path_factory.mktemp("alternation"), Synthetic("h2", 8, 40), {})
    return Alternation(stage, two_bandits(stage))


def decided(alternation: Alternation, version: int) -> DecisionMade:
    context = alternation.stage.environment.contexts(0, 1)[0].tolist()
    chosen = alternation.bandit(version).select_one(context, seed=5)
    arms, scores = [chosen.arm], [chosen.score]
    return DecisionMade("a", context, arms, scores, 5, version, 0, 10)


def reply_of(made: DecisionMade) -> Reply:
    return Reply(200, "", {"decision": made.id, "arms": made.arms, "version": made.version})


@pytest.mark.slow
def test_swaps_fail_no_request_and_mix_no_versions() -> None:
    report = hot_swaps(3, arms=40, rate=50.0, every=0.7, sample=50)

    assert report.is_whole, report
    assert report.versions == 4
    assert report.checked >= 50
    assert len(report.memory) == 3


def test_alternating_versions_have_numbers_of_their_own(alternation: Alternation) -> None:
    snapshots = [alternation.publish() for _ in range(6)]

    assert [FrozenBandit.load(one.frozen).version for one in snapshots[-2:]] == [5, 6]
    assert alternation.numbers == set(range(7))
    assert len(alternation.stage.store.versions()) == 5


def test_two_bandits_decide_differently(alternation: Alternation) -> None:
    assert decided(alternation, 1).scores != decided(alternation, 2).scores


def test_what_its_version_decided_is_not_mixed(alternation: Alternation) -> None:
    made = decided(alternation, 1)

    assert mixed(alternation, [made], [made], [reply_of(made)]) == 0


def test_what_another_version_decided_is_mixed(alternation: Alternation) -> None:
    made = structs.replace(decided(alternation, 1), version=2)

    assert mixed(alternation, [made], [made], []) == 1


def test_an_answer_that_is_not_in_the_log_is_mixed(alternation: Alternation) -> None:
    made = decided(alternation, 1)
    answer = reply_of(structs.replace(made, version=2))

    assert mixed(alternation, [], [made], [answer]) == 1
    assert mixed(alternation, [], [], [reply_of(made)]) == 1


def test_refused_and_broken_requests_have_failed() -> None:
    statuses = {"200": 90, "503": 4, "0": 2}
    answers = Answers(1.0, 97, 0, statuses, 90.0, 1.0, 2.0, 3.0, 2)

    assert failed(answers) == 6


@pytest.mark.parametrize("change", [{"failed": 1}, {"unknown": 1}, {"mixed": 1}, {"versions": 2}])
def test_a_report_is_whole_only_without_faults(change: dict[str, Any]) -> None:
    assert WHOLE.is_whole
    assert not replace(WHOLE, **change).is_whole


@pytest.mark.parametrize("change", [{"growth": 0.03}, {"swapping_p99_ms": 6.1}, {"under_load": 39}])
def test_a_report_is_level_only_within_its_bounds(change: dict[str, Any]) -> None:
    assert WHOLE.is_level
    assert not replace(WHOLE, **change).is_level


def test_the_command_fails_where_requests_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(WHOLE, failed=2)
    monkeypatch.setattr(campaign, "hot_swaps", lambda *args, **settings: broken)

    done = CliRunner().invoke(swaps_command, ["--json"])

    assert done.exit_code == 1
    assert json.loads(done.stdout)["failed"] == 2
    assert json.loads(done.stdout)["slower"] == 1.25


def test_the_command_prints_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "hot_swaps", lambda *args, **settings: WHOLE)

    done = CliRunner().invoke(swaps_command, [])

    assert done.exit_code == 0
    assert "1,000 requests, 0 failed" in done.stdout
