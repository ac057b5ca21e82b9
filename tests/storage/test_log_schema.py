"""Upgrades of a log: interrupted anywhere they complete later, and strangers' files are left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest
from little_events import EVENTS

from fastbandit.errors import LogError
from fastbandit.storage.events import Event, RewardCame
from fastbandit.storage.joined_rows import Bounds, joined_rows
from fastbandit.storage.log_reader import one_moment_of
from fastbandit.storage.log_schema import STEPS, VERSION
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import Clock
from lab.faults.volatile_disk import VolatileDisk, leave

VERSION_1 = (Path(__file__).parent / "log_version_1.sql").read_text(encoding="utf-8")
VERSION_3 = VERSION_1 + "".join(STEPS[1:3]) + "PRAGMA user_version = 3;"
OPEN_AND_DIE = """
import os, signal, sys
from fastbandit.storage.sqlite_log import SqliteLog

def reached(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

SqliteLog(sys.argv[1], reached=reached)
"""


@pytest.fixture(autouse=True)
def no_disk_of_ours() -> Iterator[None]:
    yield
    leave()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


def write(path: Path, sql: str) -> Path:
    connection = apsw.Connection(str(path))
    connection.execute(sql).fetchall()
    connection.close()
    return path


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    rows: list[tuple[object, ...]] = connection.execute(sql).fetchall()
    connection.close()
    return rows


def upgraded(path: Path) -> tuple[list[Event], list[tuple[object, ...]]]:
    """Open a log; return its events and its tables."""
    log = SqliteLog(path, clock=Clock(2000))
    events = log.read()
    log.append([RewardCame("a", 1.0, 7)])
    assert log.read(after=6) == [RewardCame("a", 1.0, 7, "", "duplicate", 7, 2000)]
    log.close()
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]
    assert ask(path, "PRAGMA user_version") == [(VERSION,)]
    return events, ask(path, "SELECT type, name, sql FROM sqlite_schema ORDER BY name")


def steps_of(path: Path) -> list[str]:
    steps: list[str] = []
    SqliteLog(path, reached=steps.append).close()
    return steps


# -- upgrades


def test_a_log_of_version_1_is_read_as_it_was_written(path: Path) -> None:
    events, tables = upgraded(write(path, VERSION_1))

    SqliteLog(path.with_name("new.db")).close()
    schema = "SELECT name FROM sqlite_schema ORDER BY name"
    assert events == EVENTS
    assert [(name,) for _, name, _ in tables] == ask(path.with_name("new.db"), schema)


def test_the_old_log_is_kept_whole_beside_the_new(path: Path) -> None:
    write(path, VERSION_1)
    upgraded(path)

    copy = path.with_name("events.db.version-1")
    assert ask(copy, "PRAGMA integrity_check") == [("ok",)]
    assert ask(copy, "PRAGMA user_version") == [(1,)]
    assert upgraded(copy)[0] == EVENTS


def test_an_upgrade_that_is_killed_at_any_step_completes_later(tmp_path: Path) -> None:
    wanted = upgraded(write(tmp_path / "wanted.db", VERSION_1))
    steps = steps_of(write(tmp_path / "steps.db", VERSION_1))
    numbers = range(2, VERSION + 1)
    each = [f"{when} step {number}" for number in numbers for when in ("before", "within", "after")]
    assert steps == ["copied", "copy named", *each]
    for step in steps:
        path = write(tmp_path / f"{step}.db", VERSION_1)
        kill_at(step, path)

        assert upgraded(path) == wanted, step
        assert ask(path.with_name(f"{path.name}.version-1"), "PRAGMA user_version") == [(1,)]


def test_a_new_log_that_is_killed_at_any_step_is_made_later(tmp_path: Path) -> None:
    steps = steps_of(tmp_path / "wanted.db")
    wanted = ask(tmp_path / "wanted.db", "SELECT sql FROM sqlite_schema ORDER BY name")
    for step in steps:
        path = tmp_path / f"{step}.db"
        kill_at(step, path)

        SqliteLog(path).close()
        assert ask(path, "SELECT sql FROM sqlite_schema ORDER BY name") == wanted, step


def kill_at(step: str, path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", OPEN_AND_DIE, str(path), step], cwd=os.getcwd())
    assert done.returncode == -signal.SIGKILL


def test_an_upgrade_outlives_a_power_cut_at_any_step(
    tmp_path: Path, numbers: np.random.Generator
) -> None:
    for step in range(1, 100):
        folder = tmp_path / f"{step}"
        folder.mkdir()
        write(folder / "events.db", VERSION_1)
        disk = VolatileDisk(folder, steps_left=step)
        try:
            SqliteLog(folder / "events.db").close()
        except (LogError, apsw.Error):
            assert not disk.has_power
        is_last = disk.has_power
        disk.cut(folder / "after", rng=numbers)
        disk.close()

        assert upgraded(folder / "after" / "events.db")[0] == EVENTS, step
        if is_last:
            break
    assert step > 10


# -- files of others


def test_a_log_of_a_newer_version_is_refused(path: Path) -> None:
    write(path, VERSION_1 + f"PRAGMA user_version = {VERSION + 1};")

    with pytest.raises(LogError, match=f"has version {VERSION + 1}. Install a newer fastbandit"):
        SqliteLog(path)


def test_a_log_of_a_newer_version_is_left_as_it_is(path: Path) -> None:
    write(path, VERSION_1 + f"PRAGMA user_version = {VERSION + 1};")
    before = path.read_bytes()

    with pytest.raises(LogError):
        SqliteLog(path)

    assert path.read_bytes() == before
    assert not list(path.parent.glob("*version*"))


@pytest.mark.parametrize("is_reader", [True, False])
def test_a_log_of_the_last_version_is_read_as_it_was_written(path: Path, is_reader: bool) -> None:
    log = SqliteLog(write(path, VERSION_3), is_reader=is_reader)

    assert log.read() == EVENTS
    assert log.changes() == [EVENTS[0]]
    log.close()
    assert ask(path, "PRAGMA user_version") == [(3 if is_reader else VERSION,)]


def test_rows_of_a_log_of_the_last_version_can_be_joined(path: Path) -> None:
    write(path, VERSION_3)

    with one_moment_of(path) as log:
        for _ in range(2):
            ((row,),) = joined_rows(log, Bounds())
            assert (row.default_reward, row.epsilon, row.adds_up) == (0.0, 0.1, False)


def test_a_reader_of_an_older_log_asks_for_the_upgrade(path: Path) -> None:
    write(path, VERSION_1)

    with pytest.raises(LogError, match="start the service"):
        SqliteLog(path, is_reader=True)


def test_a_database_of_others_is_refused_and_left_as_it_is(path: Path) -> None:
    write(path, "CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine');")
    before = path.read_bytes()

    with pytest.raises(LogError, match="some other SQLite database"):
        SqliteLog(path)

    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("a list of things to do\n" * 100)

    with pytest.raises(LogError, match="damaged"):
        SqliteLog(path)

    assert path.read_text().startswith("a list of things to do")
