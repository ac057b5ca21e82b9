"""A service that learns from late rewards is compared with a plain loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastbandit.storage.events import RewardCame
from fastbandit.storage.sqlite_log import SqliteLog
from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.faults import delayed as campaign
from lab.faults.delayed import DelayedReport, SeedResult, Visits, compare, learning_command


def report(*services: float) -> DelayedReport:
    results = [SeedResult(n, share, 0.5, 2, 3) for n, share in enumerate(services)]
    return DelayedReport(10, Visits(), tuple(results))


@pytest.mark.slow
def test_a_service_learns_from_late_rewards_in_any_order(tmp_path: Path) -> None:
    environment, visits = SyntheticRounds("h2", 3, 50), Visits(rounds=80, fresh=30, latest=20)
    found = compare(environment, tmp_path, visits, seed=4, preset="little")
    assert found.versions == 2
    assert found.out_of_order > 0
    assert 0 < found.service <= 1
    log = SqliteLog(tmp_path / "data" / "events.db", is_reader=True)
    rewards = [event for event in log.read() if isinstance(event, RewardCame)]
    log.close()
    assert {event.status for event in rewards} == {"counted"}


@pytest.mark.slow
def test_without_delay_both_choose_the_same_until_the_end(tmp_path: Path) -> None:
    environment, visits = SyntheticRounds("h2", 3, 50), Visits(rounds=60, fresh=30, latest=0)
    found = compare(environment, tmp_path, visits, seed=4, preset="little")
    assert found.service == pytest.approx(found.in_process)


@pytest.mark.parametrize(("services", "is_close"), [((0.49, 0.49), True), ((0.5, 0.4), False)])
def test_a_service_may_earn_a_little_less(services: tuple[float, ...], is_close: bool) -> None:
    assert report(*services).is_close == is_close


@pytest.mark.parametrize(("share", "status"), [(0.5, 0), (0.3, 1)])
def test_the_command_ends_with_1_where_the_service_earns_too_little(
    share: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "delayed_learning", lambda **_: report(share))
    shown = CliRunner().invoke(learning_command, ["--json"])
    assert (shown.exit_code, json.loads(shown.output)["ratio"]) == (status, share / 0.5)
    assert "seed 0" in CliRunner().invoke(learning_command, []).output
