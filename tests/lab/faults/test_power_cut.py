"""Power cuts lose nothing that was acknowledged; and would, if it were not synced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.storage.events import TimePassed
from fastbandit.storage.sqlite_log import SqliteLog
from lab.faults.power_cut import power_cut_command, power_cuts
from lab.faults.volatile_disk import VolatileDisk, leave


@pytest.fixture(autouse=True)
def no_disk_of_ours() -> Iterator[None]:
    yield
    leave()


def test_power_cuts_lose_nothing_and_damage_nothing() -> None:
    report = power_cuts(60, seed=1)

    assert report.is_whole, report
    assert report.acknowledged > 1_000
    moments = {"opening", "appending", "checkpointing", "closing", "at rest"}
    assert report.phases.keys() == moments


def test_without_syncing_each_append_cuts_lose_events() -> None:
    report = power_cuts(60, seed=1, synchronous="NORMAL")

    assert report.lost > 10
    assert report.corrupt == 0


def test_without_syncing_at_all_cuts_damage_files() -> None:
    assert power_cuts(60, seed=1, synchronous="OFF").corrupt > 5


def test_the_same_seed_cuts_at_the_same_moments() -> None:
    assert power_cuts(10, seed=3).phases == power_cuts(10, seed=3).phases


def test_a_file_whose_folder_was_not_synced_may_vanish(
    tmp_path: Path, numbers: np.random.Generator
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    disk = VolatileDisk(home, steps_left=3)
    with pytest.raises(OSError, match="power"):
        SqliteLog(home / "events.db")
    for cut in range(20):
        disk.cut(tmp_path / f"{cut}", rng=numbers)
    disk.close()

    found = {(tmp_path / f"{cut}" / "events.db").exists() for cut in range(20)}
    assert found == {True, False}


def test_what_was_synced_is_found_after_every_cut(
    tmp_path: Path, numbers: np.random.Generator
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    disk = VolatileDisk(home)
    log = SqliteLog(home / "events.db")
    log.append([TimePassed()])
    log.close()
    disk.cut(tmp_path / "after", rng=numbers)
    disk.close()

    found = SqliteLog(tmp_path / "after" / "events.db")
    assert found.last == 1
    found.close()


def test_the_command_prints_what_was_found() -> None:
    done = CliRunner().invoke(power_cut_command, ["--cuts", "5", "--json"])
    assert done.exit_code == 0
    assert json.loads(done.output)["cuts"] == 5

    lost = CliRunner().invoke(power_cut_command, ["--cuts", "40", "--synchronous", "NORMAL"])
    assert lost.exit_code == 1
    assert "acknowledged events looked for" in lost.output
