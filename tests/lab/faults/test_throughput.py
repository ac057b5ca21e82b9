"""The campaign on throughput measures a service and a bare handler side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lab.faults import throughput as campaign
from lab.faults.stage import Stage
from lab.faults.throughput import (
    Measured,
    ThroughputReport,
    added_time,
    throughput,
    throughput_command,
    trained_stage,
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    home: Path = tmp_path_factory.mktemp("stage")
    return trained_stage(home, 30, {}, rounds=40)


def measured(per_second: float, p99_ms: float, *, failed: int = 0) -> Measured:
    return Measured("8 connections", per_second, 1.0, p99_ms, 20_000.0, 1.0, failed)


def report(*loads: Measured, added_us: float = 50.0) -> ThroughputReport:
    return ThroughputReport(10, 1.0, loads, 30.0, added_us)


def test_a_stage_has_learned_from_as_many_rewards_as_asked_for(stage: Stage) -> None:
    snapshot = stage.store.current()
    assert snapshot is not None
    assert (snapshot.version, snapshot.cut.interactions) == (1, 40)


def test_the_route_adds_time_to_a_choice(stage: Stage) -> None:
    choose_us, added_us = added_time(stage, runs=2, count=5)
    assert choose_us > 0
    assert added_us > 0


@pytest.mark.slow
def test_a_service_is_measured_beside_a_bare_handler() -> None:
    found = throughput(30, seconds=0.2, rounds=1, settings={})
    assert [one.name for one in found.loads][:1] == ["8 connections"]
    assert all(one.per_second > 0 and one.bare_per_second > 0 for one in found.loads)
    assert all(one.failed == 0 for one in found.loads)


def test_the_best_load_is_the_largest_that_is_quick_enough() -> None:
    found = report(measured(5_500, 9.0), measured(9_000, 40.0), measured(6_000, 14.0))
    assert found.best.per_second == 6_000
    assert found.is_enough
    assert found.best.ratio == pytest.approx(0.3)


@pytest.mark.parametrize(
    "found",
    [
        report(measured(4_000, 9.0)),
        report(measured(9_000, 16.0)),
        report(measured(9_000, 9.0), added_us=101.0),
        report(measured(9_000, 9.0, failed=1)),
    ],
)
def test_a_bar_that_is_missed_is_noticed(found: ThroughputReport) -> None:
    assert not found.is_enough


@pytest.mark.parametrize(("per_second", "status"), [(6_000.0, 0), (100.0, 1)])
def test_the_command_ends_with_1_where_a_bar_is_missed(
    per_second: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = report(measured(per_second, 9.0))
    monkeypatch.setattr(campaign, "throughput", lambda *_, **__: found)
    done = CliRunner().invoke(throughput_command, ["--json"])
    assert done.exit_code == status
    assert json.loads(done.output)["loads"][0]["per_second"] == per_second
    assert "decisions/s" in CliRunner().invoke(throughput_command, []).output
