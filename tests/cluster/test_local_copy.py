"""A shared log read as a file: up to date, after a restore, and while the database is away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from fcntl import LOCK_EX, flock
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import psycopg
import pytest
from shared_days import make_older

from fastbandit.errors import LogError, LogUnavailableError
from fastbandit.storage.events import DecisionMade, Event, TimePassed
from fastbandit.storage.local_copy import Copied, change_copy, copy_log, local_copy
from fastbandit.storage.log_schema import VERSION
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from lab.postgres_server import LittleServer


@pytest.fixture
def log(database: str) -> Iterator[PostgresLog]:
    with closing(PostgresLog(database)) as log:
        yield log


def decide(log: PostgresLog, *, count: int, seed: int) -> None:
    rng = Random(seed)
    for _ in range(count):
        id = f"{rng.getrandbits(64)}"
        log.append([DecisionMade(id, [rng.random()], ["x"], [1.0], 1, 0, 0, 1_000)])


def events_in(path: Path) -> list[Event]:
    with closing(SqliteLog(path, is_reader=True)) as copy:
        return copy.read(limit=10**6)


def test_a_copy_is_up_to_date_and_stays_so(log: PostgresLog, database: str, tmp_path: Path) -> None:
    notes: list[str] = []
    for number in range(3):
        decide(log, count=3, seed=number)

        path = local_copy(database, tmp_path, warn=notes.append)

        assert path == tmp_path / "copy" / "events.db"
        assert events_in(path) == log.read()
    assert notes == []


def test_a_copy_of_an_empty_log_is_empty(log: PostgresLog, database: str, tmp_path: Path) -> None:
    assert log.last == 0

    assert events_in(local_copy(database, tmp_path)) == []


def test_a_copy_of_few_seconds_says_what_it_lacks(
    log: PostgresLog, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.storage.local_copy.copy_log", in_pages_of_4)
    decide(log, count=10, seed=1)
    notes: list[str] = []

    counts = [
        len(events_in(local_copy(database, tmp_path, seconds=0, warn=notes.append)))
        for _ in range(3)
    ]

    assert counts == [4, 8, 10]
    assert notes == [f"The copy of the shared log is {n} events behind." for n in (6, 2)]


def in_pages_of_4(*given: Any, **named: Any) -> Copied:
    return copy_log(*given, **named, page=4)


def test_a_copy_of_another_log_is_made_anew(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    decide(log, count=5, seed=1)
    local_copy(database, tmp_path)
    begin_anew(database)
    with closing(PostgresLog(database)) as other:
        decide(other, count=9, seed=2)

        assert events_in(local_copy(database, tmp_path)) == other.read()

    assert {path.name for path in tmp_path.iterdir()} == {"copy", "copy.lock"}


def test_a_log_that_was_restored_to_a_moment_is_copied_anew(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    decide(log, count=5, seed=1)
    local_copy(database, tmp_path)
    begin_anew(database)
    with closing(PostgresLog(database)) as restored:
        restored.append([TimePassed()])

        assert events_in(local_copy(database, tmp_path)) == restored.read()


def test_a_copy_anew_leaves_the_old_one_until_it_is_whole(
    log: PostgresLog, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide(log, count=5, seed=1)
    before = log.read()
    local_copy(database, tmp_path)
    begin_anew(database)
    monkeypatch.setattr("fastbandit.storage.local_copy.copy_log", in_pages_of_4)
    notes: list[str] = []
    with closing(PostgresLog(database)) as other:
        decide(other, count=6, seed=2)

        assert events_in(local_copy(database, tmp_path, seconds=0, warn=notes.append)) == before
        assert events_in(local_copy(database, tmp_path, seconds=0, warn=notes.append)) == (
            other.read()
        )
    assert len(notes) == 1
    assert "2 events are to be copied anew" in notes[0]


def test_a_copy_that_is_upgraded_leaves_no_older_one(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    decide(log, count=5, seed=1)
    path = local_copy(database, tmp_path)
    make_older(path)

    assert events_in(local_copy(database, tmp_path)) == log.read()
    assert not [*path.parent.glob("*.version-*")]


def test_a_damaged_copy_is_made_anew(log: PostgresLog, database: str, tmp_path: Path) -> None:
    decide(log, count=5, seed=1)
    local_copy(database, tmp_path).write_bytes(b"something else" * 1000)

    assert events_in(local_copy(database, tmp_path)) == log.read()


def test_a_copy_of_a_newer_version_is_made_anew(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    decide(log, count=5, seed=1)
    make_newer(local_copy(database, tmp_path))

    assert events_in(local_copy(database, tmp_path)) == log.read()


def test_what_a_copying_left_that_was_broken_off_goes_with_the_next(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    decide(log, count=5, seed=1)
    copy = local_copy(database, tmp_path).parent
    shutil.copytree(copy, tmp_path / "copy.old")
    copy.rename(tmp_path / "copy.new")

    assert events_in(local_copy(database, tmp_path)) == log.read()
    assert {path.name for path in tmp_path.iterdir()} == {"copy", "copy.lock"}


@pytest.mark.parametrize("has_copy", [True, False])
def test_what_a_copying_left_that_was_broken_off_goes_where_something_is_forgotten(
    has_copy: bool, tmp_path: Path
) -> None:
    for name in ["copy.new", "copy.old", *["copy"] * has_copy]:
        (tmp_path / name).mkdir()
        SqliteLog(tmp_path / name / "events.db").close()
    changed: list[object] = []

    change_copy(tmp_path, changed.append)

    assert {path.name for path in tmp_path.iterdir()} == {"copy.lock", *["copy"] * has_copy}
    assert len(changed) == has_copy


def test_while_the_database_is_away_the_copy_says_its_age(
    log: PostgresLog, database: str, own_server: LittleServer, tmp_path: Path
) -> None:
    decide(log, count=5, seed=1)
    before = log.read()
    local_copy(database, tmp_path)
    an_hour_ago = (tmp_path / "copy" / "whole").stat().st_mtime - 3600
    os.utime(tmp_path / "copy" / "whole", (an_hour_ago, an_hour_ago))
    notes: list[str] = []
    own_server.stop()
    try:
        path = local_copy(database, tmp_path, warn=notes.append)

        with pytest.raises(LogUnavailableError):
            local_copy(database, tmp_path / "other")
    finally:
        own_server.start()

    assert events_in(path) == before
    assert notes[0].startswith("The database is unavailable: this is the copy of 20")
    assert notes[0].endswith("UTC, 60 minutes old.")


def test_two_at_once_both_get_all(log: PostgresLog, database: str, tmp_path: Path) -> None:
    decide(log, count=30, seed=1)
    found: list[int] = []

    def copy() -> None:
        found.append(len(events_in(local_copy(database, tmp_path))))

    threads = [Thread(target=copy) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [30, 30, 30]


def test_while_another_process_copies_a_fresh_copy_is_taken(
    log: PostgresLog, database: str, tmp_path: Path
) -> None:
    decide(log, count=5, seed=1)
    before = log.read()
    local_copy(database, tmp_path)
    decide(log, count=1, seed=2)
    notes: list[str] = []

    with (tmp_path / "copy.lock").open("a") as file:
        flock(file, LOCK_EX)
        path = local_copy(database, tmp_path, wait_seconds=0, warn=notes.append)
        with pytest.raises(LogError, match="Try again when it is done"):
            local_copy(database, tmp_path, wait_seconds=0, fresh_seconds=0)

    assert events_in(path) == before
    assert notes[0].startswith("Another process copies the shared log: this is the copy of 20")


def test_a_copy_leaves_room_on_the_disk(
    log: PostgresLog, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.storage.local_copy.copy_log", in_pages_of_4)
    decide(log, count=10, seed=1)
    with monkeypatch.context() as full:
        full.setattr("fastbandit.storage.local_copy._ROOM", 2**60)
        with pytest.raises(LogError, match="Make room"):
            local_copy(database, tmp_path)

    assert len(events_in(tmp_path / "copy" / "events.db")) == 4
    assert len(events_in(local_copy(database, tmp_path))) == 10


def test_a_folder_that_cannot_be_written_to_is_named(database: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(LogError, match="needs a folder that can be written to"):
        local_copy(database, tmp_path / "file")


def make_newer(path: Path) -> None:
    with closing(connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")


def begin_anew(url: str) -> None:
    """Leave a database without events, as one that was made again."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA fastbandit CASCADE")
