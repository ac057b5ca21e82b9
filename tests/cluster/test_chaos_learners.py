"""When the learner that works is killed, the other one goes on from where it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lab.faults import trainers as campaign
from lab.faults.report import tables
from lab.faults.trainers import TrainerReport, kill_trainers, trainers_command

WHOLE = TrainerReport(
    times=2,
    seed=0,
    lease_seconds=[0.5, 1.5],
    publish_seconds=[2.0, 3.0],
    waited=2,
    together=0,
    versions=5,
    missing=0,
    learned=400,
    faults=[],
)


def test_another_learner_takes_over_from_one_that_was_killed() -> None:
    report = kill_trainers(1, arms=50)

    assert report.is_whole, report
    assert report.is_prompt, report


@pytest.mark.parametrize(
    "change", [{"waited": 1}, {"together": 1}, {"missing": 1}, {"faults": ["one"]}, {"versions": 2}]
)
def test_a_report_is_whole_only_without_faults(change: dict[str, Any]) -> None:
    assert WHOLE.is_whole
    assert not replace(WHOLE, **change).is_whole


@pytest.mark.parametrize(
    ("change", "status"), [({}, 0), ({"missing": 1}, 1), ({"publish_seconds": [30.5]}, 1)]
)
def test_the_command_fails_where_nobody_takes_over_in_time(
    change: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = replace(WHOLE, **change)
    monkeypatch.setattr(campaign, "kill_trainers", lambda times, **options: report)

    shown = CliRunner().invoke(trainers_command, [])
    told = CliRunner().invoke(trainers_command, ["--json"])
    (tmp_path / "trainers.json").write_text(told.output)

    assert shown.exit_code == told.exit_code == status
    assert "2 kills of the trainer that worked" in shown.output
    assert ("**missed**" in tables(tmp_path)) == bool(status)
