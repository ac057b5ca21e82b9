"""What a learner says of itself, and when another should lead."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from little_service import learn_all, little_config

from fastbandit.learning import learner_report
from fastbandit.learning.learner import Learner
from fastbandit.learning.learner_report import OTHER_LEADS, LearnerReport


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(learner_report, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def notes(state: str, **more: Any) -> dict[str, Any]:
    own = {"error": "", "seconds": 1.0, "lag_seconds": 0.0, "measured_at": None}
    return {"state": state, **own, **more}


def made_one(report: LearnerReport, clock: Clock, seconds: float) -> None:
    """Let a version take so many seconds, and begin the next."""
    report.write(notes("training"))
    clock.now += seconds
    report.write(notes("waiting"))
    report.write(notes("training", fresh=5))


@pytest.mark.parametrize(("took", "patience"), [(1.0, 300.0), (100.0, 500.0)])
def test_another_should_lead_once_a_training_makes_no_progress(
    tmp_path: Path, clock: Clock, took: float, patience: float
) -> None:
    report = LearnerReport(tmp_path)
    made_one(report, clock, took)

    clock.now += patience
    assert report.to_others() is not None
    clock.now += 1.0
    assert report.to_others() is None
    report.progressed()
    assert report.to_others() is not None


def test_each_step_of_a_version_is_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list[str]()
    monkeypatch.setattr(LearnerReport, "progressed", lambda report: steps.append("progress"))

    learn_all(Learner(little_config(tmp_path), reached=steps.append))

    assert steps[::2] == ["progress"] * (len(steps) // 2)
    assert "published" in steps[1::2]


def test_how_long_a_first_version_takes_is_not_known(tmp_path: Path, clock: Clock) -> None:
    report = LearnerReport(tmp_path)
    report.write(notes("training", seconds=None))

    clock.now += 1e6

    assert report.to_others() is not None


def test_after_a_failure_it_is_not_known_either(tmp_path: Path, clock: Clock) -> None:
    report = LearnerReport(tmp_path)
    made_one(report, clock, 1.0)
    clock.now += 1e6  # the lease is lost meanwhile
    report.write(notes("failed"))
    report.write(notes("training"))

    clock.now += 1e6

    assert report.to_others() is not None


def test_a_version_that_is_due_gets_later(tmp_path: Path, clock: Clock) -> None:
    report = LearnerReport(tmp_path)
    report.write(notes("training", lag_seconds=2.0, measured_at=clock.now))

    clock.now += 3.0

    told = report.to_others()
    assert told is not None
    assert (told["lag_seconds"], told["measured_at"]) == (5.0, clock.now)


def test_who_waited_for_the_lease_says_nothing_yet(tmp_path: Path) -> None:
    report = LearnerReport(tmp_path)
    assert report.to_others() == {}

    report.write(notes("waiting", error=OTHER_LEADS))

    assert report.to_others() == {}


def test_a_report_without_room_is_written_later(tmp_path: Path) -> None:
    report = LearnerReport(tmp_path / "missing")
    report.write(notes("waiting"))
    (tmp_path / "missing").mkdir()

    report.write(notes("waiting"))

    assert (tmp_path / "missing" / "learner.json").exists()
