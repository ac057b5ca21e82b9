"""A service starts only with its own log, marks its last event, and tells of steps of the clock."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fastbandit.errors import LogError
from fastbandit.serving.log_watch import LogWatch
from fastbandit.settings.service import Config
from fastbandit.storage.log_clock import LogClock, Machine
from fastbandit.storage.log_match import MARK
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import Caller, begin, run


def remove_log(folder: Path) -> None:
    for path in folder.glob("events.*"):
        path.unlink()


async def select_once(ask: Caller) -> int:
    """Select, and return the number of the last event."""
    await ask.select()
    return ask.service.last_event


def learn_up_to(config: Config, seq: int) -> None:
    """Write down that the current version learned up to an event, as a learner would."""
    folder = Path(config.server.data_dir)
    log, store = (
        SqliteLog(folder / "events.db", is_reader=True),
        SnapshotStore(folder / "snapshots"),
    )
    current, (event,) = store.current(), log.read(after=seq - 1, limit=1)
    assert current is not None
    cut = type(current.cut)(seq, event.at, seq)
    store.move_cut(current, cut)
    store.name_log(log.identity)
    log.close()


def test_it_marks_the_last_event_when_it_stops(tmp_path: Path) -> None:
    config = begin(tmp_path)
    run(config, select_once)

    log = SqliteLog(tmp_path / "events.db", is_reader=True)
    assert json.loads((tmp_path / MARK).read_bytes()) == {"log": log.identity, "last": 1}
    log.close()


def test_it_starts_again_with_its_own_log(tmp_path: Path) -> None:
    config = begin(tmp_path)
    run(config, select_once)
    learn_up_to(config, 1)

    assert run(config, select_once) == 2  # after the one that was there


def test_it_does_not_start_where_its_log_is_gone(tmp_path: Path) -> None:
    config = begin(tmp_path)
    run(config, select_once)
    learn_up_to(config, 1)
    remove_log(tmp_path)

    with pytest.raises(LogError, match="--accept-log"):
        run(config, select_once)


def test_with_a_folder_of_its_own_it_starts_anew(tmp_path: Path) -> None:
    config = begin(tmp_path)
    run(config, select_once)
    remove_log(tmp_path)
    shutil.rmtree(tmp_path / "snapshots")

    assert run(begin(tmp_path), select_once) == 1
    log = SqliteLog(tmp_path / "events.db", is_reader=True)
    assert json.loads((tmp_path / MARK).read_bytes()) == {"log": log.identity, "last": 1}
    log.close()


def test_a_step_of_the_clock_is_a_problem_and_a_metric(tmp_path: Path) -> None:
    off = [0]
    machine = Machine(wall=lambda: 10**15 + off[0], run=lambda: 0)
    watch = LogWatch(tmp_path, is_shared=False)
    watch.clock = clock = LogClock(machine)
    clock()
    steady = {"clock_skew_seconds": 0.0, "clock_steps": 0.0}
    assert (watch.problems(), watch.gauges()) == ([], steady)
    off[0] = 3_600_000_000
    clock()

    (problem,) = watch.problems()
    assert problem.name == "clock"
    assert "stepped 1 times, and is 3600 s ahead" in problem.detail
    assert watch.gauges() == {"clock_skew_seconds": 3600.0, "clock_steps": 1}


def test_a_shared_log_is_not_marked(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "events.db")
    LogWatch(tmp_path, is_shared=True).mark(log, is_last=True)
    log.close()

    assert not (tmp_path / MARK).exists()
