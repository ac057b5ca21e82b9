"""A log that is not the one of the snapshots is refused, or accepted when somebody says so."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fastbandit.errors import LogError
from fastbandit.files.manifest import write_arrays
from fastbandit.storage.events import TimePassed
from fastbandit.storage.log_match import MARK, accept_log, check_log, write_mark
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(tmp_path / "events.db")
    for _ in range(5):
        log.append([TimePassed()])
    yield log
    log.close()


def publish(store: SnapshotStore, log: SqliteLog, *, seq: int, at: int | None = None) -> None:
    """Publish a version that learned up to an event of a log."""
    if at is None:
        at = log.read(after=seq - 1, limit=1)[0].at if seq else 0
    with store.drafting() as draft:
        for part, kind in (("bandit", "bandit"), ("frozen", "frozen bandit")):
            write_arrays(draft / part, {"one": np.ones(1)}, {}, kind=kind, format=1)
        store.name_log(log.identity)
        store.publish(draft, {}, version=3, parent=None, cut=Cut(seq, at, seq, 7))


def another(tmp_path: Path, count: int) -> SqliteLog:
    """Return another log in another folder, with so many events."""
    (tmp_path / "other").mkdir()
    log = SqliteLog(tmp_path / "other" / "events.db")
    for _ in range(count):
        log.append([TimePassed()])
    return log


def test_a_log_is_the_one_that_a_version_learned_from(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path
) -> None:
    check_log(log, store, tmp_path)
    publish(store, log, seq=5)
    check_log(log, store, tmp_path)


@pytest.mark.parametrize("count", [0, 3, 9])
def test_an_empty_or_foreign_log_is_refused(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path, count: int
) -> None:
    publish(store, log, seq=5)
    other = another(tmp_path, count)

    with pytest.raises(LogError, match=r"of the log \w{8}, and this is .*--accept-log"):
        check_log(other, store, tmp_path)
    other.close()


def test_an_older_log_is_refused(store: SnapshotStore, log: SqliteLog, tmp_path: Path) -> None:
    publish(store, log, seq=6, at=log.last_at)

    with pytest.raises(LogError, match="learned up to event 6, and the log ends at event 5"):
        check_log(log, store, tmp_path)


def test_a_log_with_another_past_is_refused(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path
) -> None:
    publish(store, log, seq=4, at=123)

    with pytest.raises(LogError, match="that event of the log is of another time"):
        check_log(log, store, tmp_path)


def test_where_nothing_of_a_log_was_learned_any_will_do(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path
) -> None:
    other = another(tmp_path, 0)

    publish(store, log, seq=0)
    check_log(other, store, tmp_path)
    other.close()


def test_a_log_that_lost_its_write_ahead_log_is_noticed(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path
) -> None:
    write_mark(log, tmp_path)
    lost = tmp_path / "copy" / "events.db"
    lost.parent.mkdir()
    lost.write_bytes((tmp_path / "events.db").read_bytes())  # without events.db-wal
    (lost.parent / MARK).write_bytes((tmp_path / MARK).read_bytes())

    shorter = SqliteLog(lost)
    assert shorter.identity == log.identity
    with pytest.raises(LogError, match="it had 5 events when it was last served, and has 0"):
        check_log(shorter, store, lost.parent)
    shorter.close()


def test_a_log_that_is_gone_is_noticed_before_anything_of_it_was_learned(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path
) -> None:
    publish(store, log, seq=0)
    write_mark(log, tmp_path)
    other = another(tmp_path, 2)

    with pytest.raises(LogError, match="it had 5 events when it was last served, and has 0"):
        check_log(other, store, tmp_path)
    assert accept_log(other, store, tmp_path) is not None
    check_log(other, store, tmp_path)
    other.close()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"log": "another", "last": 99}'])
def test_a_mark_that_says_nothing_of_this_log_is_passed_over(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / MARK).write_bytes(content)

    check_log(log, store, tmp_path)


def test_a_foreign_log_that_is_accepted_is_learned_from_its_beginning(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    publish(store, log, seq=5)
    other = another(tmp_path, 2)

    with caplog.at_level(logging.WARNING):
        assert accept_log(other, store, tmp_path) is not None
    current = store.current()
    assert current is not None
    assert (current.cut, store.log) == (Cut(0, 0, 0, 7), other.identity)
    assert "another log was accepted" in caplog.text
    check_log(other, store, tmp_path)
    assert accept_log(other, store, tmp_path) is None
    other.close()


def test_a_log_that_lost_events_is_accepted_from_its_end_on(
    store: SnapshotStore, log: SqliteLog, tmp_path: Path
) -> None:
    publish(store, log, seq=9, at=log.last_at)

    accept_log(log, store, tmp_path)

    current = store.current()
    assert current is not None
    assert current.cut == Cut(5, log.last_at, 5, 7)
    check_log(log, store, tmp_path)
