"""What a learner says of itself beside a service."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fastbandit.errors import FastbanditError, SettingError
from fastbandit.serving.learner_process import (
    LearnerProcess,
    check_startup,
    environment_of,
    keep_retaining,
)
from fastbandit.serving.metrics import Metrics
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from fastbandit.storage.data_folder import CHECKPOINTS
from tests.serving.little_service import config_in


def says(folder: Path, state: str, error: str = "") -> None:
    (folder / "learner.json").write_text(json.dumps({"state": state, "error": error}))


def test_what_an_earlier_learner_said_is_forgotten(tmp_path: Path) -> None:
    says(tmp_path, "failed", "Mended by now.")
    command = [sys.executable, "-c", "input()"]
    learner = LearnerProcess(config_in(tmp_path), command, metrics=Metrics())

    async def story() -> dict[str, Any]:
        task = asyncio.create_task(learner.keep_running())
        while learner.is_down:
            await asyncio.sleep(0.01)
        task.cancel()
        await learner.stop()
        return learner.state()

    assert asyncio.run(story()) == {}


def test_who_stops_retention_waits_until_its_process_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, start = list[asyncio.subprocess.Process](), asyncio.create_subprocess_exec

    async def sleeper(*command: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE))
        return started[0]

    async def story() -> None:
        task = asyncio.create_task(keep_retaining(config_in(tmp_path)))
        while not started:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert started[0].returncode is not None

    monkeypatch.setattr("asyncio.create_subprocess_exec", sleeper)
    asyncio.run(story())


_REPORTS = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(sys.argv[2])"


@pytest.mark.parametrize(
    ("code", "state", "pauses"),
    [
        (_REPORTS, "training", [1.0, 2.0, 2.0, 2.0]),
        (_REPORTS, "failed", [1.0, 2.0, 4.0, 8.0]),
        ("pass", "", [1.0, 2.0, 4.0, 8.0]),
    ],
)
def test_one_that_worked_is_soon_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, state: str, pauses: list[float]
) -> None:
    report = [str(tmp_path / "learner.json"), json.dumps({"state": state})]
    command = [sys.executable, "-c", code, *report]
    learner, slept = LearnerProcess(config_in(tmp_path), command, metrics=Metrics()), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == len(pauses):
            raise asyncio.CancelledError

    monkeypatch.setattr("fastbandit.serving.learner_process.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(learner.keep_running())

    assert slept == pauses


@pytest.mark.parametrize(("silent", "is_told"), [(1.0, False), (50.0, True)])
def test_a_long_training_is_late_once_it_stands_still(
    tmp_path: Path, silent: float, is_told: bool
) -> None:
    learner = LearnerProcess(config_in(tmp_path), None, metrics=Metrics())
    report = {"state": "training", "seconds": 600.0, "lag_seconds": 40.0}
    (tmp_path / "learner.json").write_text(json.dumps(report))
    checkpoint = tmp_path / CHECKPOINTS / "0"
    checkpoint.mkdir(parents=True)
    written = time.time() - silent
    os.utime(checkpoint, (written, written))

    found = learner.problems([])

    assert [one.name for one in found] == ["learner behind"] * is_told
    assert all("stands still" in one.detail for one in found)


# -- what a first snapshot cannot be made of is noticed before the service listens


def test_a_preset_needs_to_be_a_file_that_exists(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"found none at missing\.toml"):
        check_startup(config_in(tmp_path, select__preset="missing.toml"))


def test_a_file_of_arms_needs_to_exist(tmp_path: Path) -> None:
    with pytest.raises(FastbanditError, match=r"gone\.csv"):
        check_startup(config_in(tmp_path, arms__file=str(tmp_path / "gone.csv")))


def test_where_there_is_a_snapshot_neither_is_needed(config: Config) -> None:
    folder = Path(config.server.data_dir)

    check_startup(config_in(folder, select__preset="missing.toml", arms__file="gone.csv"))


def test_a_child_reads_the_same_config(tmp_path: Path) -> None:
    weighed = {"reward__kind": "real", "reward__weights": {"quality": 1.0, "cost": -0.5}}
    named = {"context__features": 0, "context__names": ("age, in years", "city")}
    config = config_in(tmp_path, **weighed, **named)

    assert read_config(None, environ=environment_of(config), overrides={}) == config
