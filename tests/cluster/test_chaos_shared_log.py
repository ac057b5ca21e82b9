"""A shared log and store at their worst, in short: nothing is lost, stuck or learned wrongly."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastbandit.storage.events import DecisionMade, RewardCame, TimePassed
from lab.faults import shared_log as campaign
from lab.faults.damaged import Damaged, damaged_versions
from lab.faults.report import tables
from lab.faults.shared_log import (
    OUTAGES,
    Large,
    Outage,
    SharedLogReport,
    _wrong_labels,
    large_requests,
    outage_of,
    shared_log_command,
)

WHOLE = SharedLogReport(
    [Outage("away", 100, 50, 0, 0, 0, 0, 0, 0, 0.5)],
    Large(5.0, {"select: 200": 2}, 1.0, 100, 0, 10.0, 20.0, 0),
    [Damaged(1, "flipped", 2.0, 3.0, True)],
)


@pytest.mark.parametrize("name", OUTAGES)
def test_an_outage_loses_nothing_and_makes_no_reward_late(name: str) -> None:
    outage = outage_of(name, 10.0, deciders=2, visitors=2)

    assert outage.is_whole, outage
    assert outage.degraded > 0


def test_large_requests_leave_nothing_stuck() -> None:
    large = large_requests(5.0, arms=20_000, every=1.0)

    assert large.stuck == 0, large
    assert "select: 200" in large.large, large


def test_empty_machines_start_with_the_newest_version_that_is_whole() -> None:
    found = damaged_versions(2, newest_only=True)

    assert [one.how for one in found] == ["flipped", "deleted"]
    assert all(one.is_said for one in found), found


def test_a_label_that_is_not_the_reward_is_wrong() -> None:
    made = DecisionMade("a", [1.0], [3], [0.5], 7, 1, 0, 10, seq=1, at=1)
    came = RewardCame("a", 1.0, 3, status="counted", seq=3, at=101)
    within, ended = TimePassed(2, 100), TimePassed(2, 100, outage=99)

    assert _wrong_labels({"a": 1.0}, [made, ended, came]) == 0
    assert _wrong_labels({"a": 1.0}, [made, within, came]) == 1


@pytest.mark.parametrize("lost", [0, 1])
def test_the_command_ends_with_1_where_a_bar_is_missed(
    monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    report = replace(WHOLE, outages=[replace(WHOLE.outages[0], lost_decisions=lost)])
    monkeypatch.setattr(campaign, "try_shared_log", lambda *args, **options: report)

    printed = CliRunner().invoke(shared_log_command, ["--json"])
    shown = CliRunner().invoke(shared_log_command)

    assert (printed.exit_code, shown.exit_code) == (lost, lost)
    assert json.loads(printed.output)["outages"][0]["lost_decisions"] == lost
    assert f"{lost} lost" in shown.output


def test_the_report_has_a_row_for_each_bar(tmp_path: Path) -> None:
    (tmp_path / "shared-log.json").write_text(json.dumps(asdict(WHOLE)))

    table = tables(tmp_path)

    assert "database: away: 0 failed selects" in table
    assert "20.0 / 10.0 ms = 2.00" in table
    assert "decider 2.0 s, trainer 3.0 s" in table
