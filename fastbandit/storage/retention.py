"""Old days leave a log in SQLite while its service writes on, into an archive if wanted.

Only whole days go, whose events no version needs any more and none of whose decisions waits for
rewards; the last event stays, since numbers go on from it. A day is archived first and then deleted
in small transactions, beside those of the service: a run that ends half-way is finished by the
next. Changes of the arms stay.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from fastbandit.errors import LogError
from fastbandit.files.locks import locking
from fastbandit.progress import Progress, silent
from fastbandit.storage import sqlite_sql as sql
from fastbandit.storage.archive import Archive
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.log_input import text_of
from fastbandit.storage.log_schema import VERSION, version_of
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import all_rows, connect
from fastbandit.storage.sqlite_log import clock_of, look_again
from fastbandit.storage.standing_requests import DELETION_FILE, asked_in, withdraw

DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOME = "WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT 1000"
_LEAST, _MOST = 20, 500  # rows or pages that a transaction changes
_PAGES, _LONG = 30, 0.003  # pages that it writes, and seconds: appends wait for it
_LONG_WAL = 500  # pages
_REST = 8.0  # times as long as something took, nothing is done
_INCREMENTAL = 2
_READ = {"decisions": sql.ARCHIVED_DECISION, "rewards": sql.REWARD, "ticks": sql.TICK}
_NEXT = "SELECT seq, at FROM {} WHERE seq >= ? ORDER BY seq LIMIT 1"
_PENDING = "SELECT min(seq) FROM decisions WHERE seq > ? AND seq <= ? AND until >= ?"


@dataclass(frozen=True)
class Left:
    """What left a log: events by kind, days, and what learning loses with them.

    `interactions` are those that are not learned again; none where the days were archived. `why`
    says what holds back days that are old enough, if any are. `compact` says whether the file got
    smaller by itself.
    """

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_READ, 0))
    days: tuple[str, ...] = ()
    archived: bool = False
    interactions: int = 0
    why: str = ""
    compact: bool = True


@contextmanager
def changing(data_dir: Path, log: Path) -> Iterator[apsw.Connection]:
    """Open a log to change what is in it, beside a service that appends; one at a time does."""
    if not log.exists():
        raise LogError(
            f"A data folder needs a log named {log.name}: found none in {data_dir}. Name the "
            f"folder that the service writes to."
        )
    try:
        with locking(data_dir / "retain.lock"), closing(connect(log)) as connection:
            connection.set_busy_handler(look_again)
            found = version_of(connection, log)
            if found != VERSION:
                raise LogError(
                    f"Changing a log needs one of version {VERSION}: {log} has version {found}. "
                    f"Start the service once, which upgrades it."
                )
            connection.execute("PRAGMA synchronous = FULL; PRAGMA secure_delete = ON").fetchall()
            yield connection
    except apsw.Error as error:
        raise LogError(
            f"The event log needs a file that can be written to: {log} cannot "
            f"({type(error).__name__}: {error}). Make room on the disk, or try again."
        ) from error


def retain(
    data_dir: Path,
    log: Path,
    *,
    days: int,
    is_archived: bool,
    now: int | None = None,
    progress: Progress = silent,
) -> Left:
    """Let the days leave that ended so many days ago by the clock of the log; return what left.

    At most a ninth of the time is worked. Appends wait for no sync of what is deleted, and their
    own finds little of it: what a power cut undoes is deleted again.
    """
    archive, left = Archive(data_dir / "archive"), Left(archived=is_archived)
    with changing(data_dir, log) as connection:
        connection.execute("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0").fetchall()
        archive.remove_drafts()
        now = clock_of(connection)() if now is None else now
        first = _first(connection)
        wanted = last_before(connection, (now // DAY - days) * DAY)
        learned = learned_by(SnapshotStore(data_dir / "snapshots"), is_archived=is_archived)
        limit, why = _limit(connection, wanted, learned, now=now)
        while first is not None and first[0] <= limit:
            day = first[1] // DAY
            last = last_before(connection, (day + 1) * DAY)
            if last > limit:
                break
            name, bounds = name_of_day(day), (first[0], last)
            progress(0, 2, f"Archiving {name}")
            if is_archived and name not in archive.days():
                archive.write_day(name, bounds, partial(_rows, connection, last))
            progress(1, 2, f"Deleting {name}")
            if not is_archived:  # first: what is lost is not learned, wherever this ends
                gone = HistoryFiles(data_dir / "history").remove(until=last)
                left = replace(left, interactions=left.interactions + gone)
            for table, count in _delete(connection, last).items():
                left.counts[table] += count
            left = replace(left, days=(*left.days, name))
            first = _first(connection)
        is_held = first is not None and first[0] <= wanted
        if left.days:
            _delete_lists(connection)
        return replace(left, why=why if is_held else "", compact=_compact(connection))


def delete_asked(data_dir: Path, log: Path, *, now: int | None = None) -> dict[str, int]:
    """Delete what a client asked to delete, if anything, as far as rewards are final and learned.

    The rest goes the next time. Return how many events of each kind went; what was learned stays.
    """
    path, archive = data_dir / DELETION_FILE, Archive(data_dir / "archive")
    if (asked := asked_in(path)) is None:
        return {}
    with changing(data_dir, log) as connection:
        archive.remove_drafts()
        archive.remove_until(asked["seq"])
        learned = learned_by(SnapshotStore(data_dir / "snapshots"), is_archived=True)
        now = clock_of(connection)() if now is None else now
        limit, _ = _limit(connection, asked["seq"], learned, now=now)
        counts = _delete(connection, limit)
        _delete_lists(connection)
        _compact(connection)
    if limit == asked["seq"]:
        withdraw(path, asked)
    return counts


def name_of_day(day: int) -> str:
    """Return the name of a day, counted from 1970."""
    return f"{_EPOCH + timedelta(days=day):%Y-%m-%d}"


def learned_by(store: SnapshotStore, *, is_archived: bool) -> int:
    """Return up to which number no version needs an event; older ones find them in an archive."""
    current = store.current()
    kept = [*filter(None, [current])] if is_archived else store.list()
    return min((one.cut.since for one in kept), default=0)


def _limit(connection: apsw.Connection, wanted: int, learned: int, *, now: int) -> tuple[int, str]:
    """Return up to which number events may leave, at most `wanted`, and what holds back more."""
    last = last_in(connection)
    limit, why = min((wanted, ""), (last - 1, "it holds the last event"))
    limit, why = min((limit, why), (learned, f"versions have learned up to event {learned:,}"))
    pending = _number(connection, _PENDING, 0, limit, now)
    return (pending - 1, f"decision {pending:,} waits for rewards") if pending else (limit, why)


def last_in(connection: apsw.Connection) -> int:
    """Return the number of the last event of a log, 0 where there is none."""
    tables = (*_READ, "changes")
    return max(_number(connection, f"SELECT max(seq) FROM {table}") for table in tables)


def _first(connection: apsw.Connection) -> tuple[int, int] | None:
    """Return the number and the time of the first event that may leave."""
    found = [row for table in _READ for row in all_rows(connection, _NEXT.format(table), 0)]
    return min(found, default=None)


def last_before(connection: apsw.Connection, at: int) -> int:
    """Return the number of the last event before a time; times never go back."""
    low, high = 0, max(_number(connection, f"SELECT max(seq) FROM {table}") for table in _READ)
    while low < high:
        middle = (low + high + 1) // 2
        rows = [row for table in _READ for row in all_rows(connection, _NEXT.format(table), middle)]
        seq, found = min(rows)
        low, high = (seq, high) if found < at else (low, middle - 1)
    return low


def _rows(connection: apsw.Connection, last: int, table: str) -> Iterator[Any]:
    """Yield the events of a kind up to a number; none is read during rests."""
    after, began = 0, time.monotonic()
    while rows := all_rows(connection, f"{_READ[table]} {_SOME}", after, last):
        yield from rows
        after = rows[-1][-2]
        _rest(began)
        began = time.monotonic()


class _Pace:
    """Changes a log in small transactions, whose pages go into the file at once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection, self._size = connection, _LEAST

    @contextmanager
    def transaction(self) -> Iterator[int]:
        """Yield how much to change in a transaction, and rest after it."""
        began = time.monotonic()
        with self._connection:
            yield self._size
        pages, _ = self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, reset=True)
        is_large = pages > _PAGES or time.monotonic() - began > _LONG
        size = self._size // 2 if is_large else self._size * 5 // 4
        self._size = min(max(size, _LEAST), _MOST)
        _checkpoint(self._connection)
        _rest(began)


def _checkpoint(connection: apsw.Connection) -> None:
    """Move what is in the write-ahead log into the file, unless the service does so just now.

    The next write begins it anew if nothing was appended meanwhile; where it is long, the last of
    it is moved while nothing can be.
    """
    with suppress(apsw.BusyError):
        if connection.wal_checkpoint()[0] > _LONG_WAL:
            connection.set_busy_handler(None)  # who cannot append waits for nobody else
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    connection.set_busy_handler(look_again)


def _rest(began: float) -> None:
    time.sleep(_REST * (time.monotonic() - began))


def _delete(connection: apsw.Connection, last: int) -> dict[str, int]:
    """Delete events up to a number, a few at a time; return how many of each kind."""
    counts, pace = dict.fromkeys(_READ, 0), _Pace(connection)
    while (first := _first(connection)) is not None and first[0] <= last:
        with pace.transaction() as size:
            for table in _READ:
                upto = min(last, first[0] + size - 1)
                connection.execute(f"DELETE FROM {table} WHERE seq <= ?", (upto,))
                counts[table] += connection.changes()
    return counts


def _delete_lists(connection: apsw.Connection) -> None:
    """Delete the lists of eligible arms that no decision has any more, a few at a time."""
    pace, hashes = _Pace(connection), [row[0] for row in all_rows(connection, sql.UNUSED_LISTS)]
    while hashes:
        with pace.transaction() as size:
            some, hashes = hashes[:size], hashes[size:]
            connection.execute(sql.DELETE_LISTS, (text_of(some),))


def _compact(connection: apsw.Connection) -> bool:
    """Return free pages to the disk, a few at a time; return whether the file can do that."""
    if _number(connection, "PRAGMA auto_vacuum") != _INCREMENTAL:
        return False
    pace = _Pace(connection)
    while _number(connection, "PRAGMA freelist_count"):
        with pace.transaction() as size:
            connection.execute(f"PRAGMA incremental_vacuum({size})").fetchall()
    return True


def _number(connection: apsw.Connection, query: str, *values: Any) -> int:
    found = all_rows(connection, query, *values)
    return int(found[0][0] or 0) if found else 0
