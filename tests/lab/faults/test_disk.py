"""A service whose disk takes nothing acknowledges nothing, says so, and recovers."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lab.faults import disk as campaign
from lab.faults import small_disk as disks
from lab.faults.disk import DiskReport, DiskTrial, LearnerTrial, disk_command, disk_trials
from lab.faults.small_disk import (
    NotPermittedError,
    fill,
    make_room,
    set_immutable,
    small_disk,
    why_not_immutable,
)

TRIAL = DiskTrial("full", "a small disk", acknowledged=9, refused=3, reason="the disk is full")
LEARNER = LearnerTrial(error="Make room there.", versions=1, recovery_seconds=1.0)
WHOLE = DiskReport([TRIAL], LEARNER)


def forbid(*command: str) -> None:
    raise NotPermittedError(f"`{command[0]}` is not permitted here: no rights")


@pytest.fixture
def disk(tmp_path: Path) -> Any:
    try:
        with small_disk(tmp_path / "disk", megabytes=1):
            yield tmp_path / "disk"
    except NotPermittedError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_a_disk_that_takes_nothing_loses_nothing() -> None:
    report = disk_trials(arms=20, seconds=0.9)

    assert report.is_whole, report
    full, read_only = report.service
    assert full.refused > 0
    assert read_only.skipped or read_only.refused > 0


@pytest.mark.slow
def test_a_limit_on_files_stands_for_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "_run", forbid)

    report = disk_trials(arms=20, seconds=0.9)

    full, read_only = report.service
    assert "a limit on the size of files" in full.means
    assert full.refused > 0
    assert full.is_whole, full
    assert read_only.skipped == "`chattr` is not permitted here: no rights"
    assert report.learner.skipped == "`mount` is not permitted here: no rights"


def test_a_full_disk_takes_nothing_until_there_is_room(disk: Path) -> None:
    fill(disk)
    with pytest.raises(OSError, match="No space left"):
        (disk / "more").write_bytes(bytes(10_000))

    make_room(disk)
    (disk / "more").write_bytes(bytes(10_000))


def test_an_immutable_file_takes_nothing_even_if_it_is_open(tmp_path: Path) -> None:
    if reason := why_not_immutable(tmp_path):
        pytest.skip(reason)
    path = tmp_path / "one"
    with path.open("wb", buffering=0) as file:
        set_immutable([path, tmp_path / "none"], True)
        with pytest.raises(PermissionError):
            file.write(b"x")
        set_immutable([path], False)
        file.write(b"x")

    assert path.read_bytes() == b"x"


def test_a_program_that_is_not_there_is_not_permitted() -> None:
    with pytest.raises(NotPermittedError, match="fastbandit-none, which is not there"):
        disks._run("fastbandit-none")


@pytest.mark.parametrize(
    "change",
    [
        {"unlogged": 1},
        {"logged": 1},
        {"unclear": 1},
        {"lost": 1},
        {"refused": 0},
        {"reason": "something failed"},
    ],
)
def test_a_trial_is_whole_only_without_faults(change: dict[str, Any]) -> None:
    assert WHOLE.is_whole
    assert not replace(WHOLE, service=[replace(TRIAL, **change)]).is_whole


@pytest.mark.parametrize("change", [{"half": 1}, {"versions": 0}, {"error": "It failed."}])
def test_a_learner_passes_only_without_faults(change: dict[str, Any]) -> None:
    assert not replace(WHOLE, learner=replace(LEARNER, **change)).is_whole


def test_the_command_fails_where_an_answer_was_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = replace(WHOLE, service=[replace(TRIAL, unlogged=1)])
    monkeypatch.setattr(campaign, "disk_trials", lambda **settings: lost)

    done = CliRunner().invoke(disk_command, ["--json"])

    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert {name: said[name] for name in asdict(lost)} == asdict(lost)


def test_the_command_says_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    skipped = DiskReport([DiskTrial("read-only", skipped="No rights.")], LearnerTrial("No."))
    monkeypatch.setattr(campaign, "disk_trials", lambda **settings: skipped)

    done = CliRunner().invoke(disk_command, [])

    assert done.exit_code == 0
    assert "disk read-only: left out. No rights." in done.stdout
