"""An event log in one SQLite file: only appended to, by one writer, synced at each append.

All rows of an append go to SQLite as one JSON text. So it writes them within one statement,
without Python's lock, and other threads go on deciding meanwhile. SQL judges rewards as well, in
the transaction that stores them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw
from msgspec import MsgspecError

from fastbandit.errors import FastbanditError, InputError, LogError
from fastbandit.storage import sqlite_sql as sql
from fastbandit.storage.column_marks import (
    DROPPED,
    FORGOTTEN,
    NOTHING,
    SECRET_COLUMNS,
    Marks,
    SecretNames,
)
from fastbandit.storage.event_rows import (
    Find,
    apart,
    split,
    to_change,
    to_decisions,
    to_events,
    to_tick,
)
from fastbandit.storage.events import (
    ArmsChanged,
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    TimePassed,
    numbered,
)
from fastbandit.storage.log_clock import Anchor, LogClock
from fastbandit.storage.log_input import check_events, text_of
from fastbandit.storage.log_schema import open_for_reading, prepare, version_of
from fastbandit.storage.sqlite_files import all_rows as _rows
from fastbandit.storage.sqlite_files import connect, is_damage

OLDEST_SQLITE = 3051003  # earlier ones can lose a page of the write-ahead log
_DAMAGED = (MsgspecError, TypeError, ValueError)
_MEND = "Make room on the disk, or let it be written to; nothing that was acknowledged is lost."
_PAGES = 250  # to be written into the file, for which an append waits
_TRIES = 20_000
_CANNOT = ("cannot", _MEND)

_E = TypeVar("_E", DecisionMade, RewardCame, ArmsChanged, TimePassed)


class SqliteLog:
    """Remembers events in the file `path`; with `is_reader` it cannot write.

    Threads that use one log wait for each other.
    `clock` returns the time in microseconds; None stands for one that no step of the machine's
    clock can stop or rush. `reached` is called at each step of an upgrade of the file, and
    `pragmas` are settings of SQLite to try in place of ours, such as "wal_autocheckpoint = 9".
    `secret` are columns that the log is to remember as such.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        is_reader: bool = False,
        clock: Callable[[], int] | None = None,
        reached: Callable[[str], None] = lambda step: None,
        pragmas: Sequence[str] = (),
        secret: SecretNames = NOTHING,
    ) -> None:
        self._secret = secret
        self._path, self._is_reader, self.clock = Path(path), is_reader, clock or LogClock()
        self._reached, self._pragmas, self._last, self._at = reached, pragmas, 0, 0
        self._identity = ""
        self._anchor: Anchor | None = None
        self._connection: apsw.Connection | None = None
        self._one_at_a_time = threading.RLock()
        self._lock: apsw.Connection | None = None
        check_sqlite()
        with self._reporting("opened"):
            self._opened()

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        check_events(events)
        with self._reporting("written to"):
            connection = self._opened()  # after an error, only the file knows the last number
            at = max(self._at, self.clock())
            self._save_anchor(connection)
            following = numbered(events, last=self._last, at=at, before=self._at)
            found = self._write(connection, following)
            outcomes = [found.get(it.seq) or Outcome(it.seq, "written") for it in following]
            last = max([self._last, *(one.seq for one in outcomes)])
            if last > self._last:  # unless there were only repeated decisions
                self._last, self._at = last, at
        return outcomes

    def _write(self, connection: apsw.Connection, events: list[Event]) -> dict[int, Outcome]:
        """Write numbered events; return the outcomes of rewards and of repeated decisions."""
        decisions = _of_kind(DecisionMade, events)
        if len(decisions) == len(events):  # one statement is a transaction of its own
            return _write_decisions(connection, decisions)
        with connection:
            found = _write_decisions(connection, decisions)
            _write_the_rest(connection, events)
            text = text_of(_of_kind(RewardCame, events))
            judged = _rows(connection, sql.INSERT_REWARDS, text)
        return found | {seq: Outcome(seq, status) for seq, status in judged}

    def copy(self, events: Sequence[Event]) -> None:
        """Write events of another log with their own numbers, times and statuses, all or none."""
        with self._reporting("written to"), self._opened() as connection:
            _write_decisions(connection, _of_kind(DecisionMade, events))
            connection.execute(sql.COPY_REWARDS, (text_of(_of_kind(RewardCame, events)),))
            _write_the_rest(connection, events)
        if events:
            self._last, self._at = events[-1].seq, events[-1].at

    def decision(self, id: str) -> DecisionMade | None:
        with self._reporting("read"):
            return next(iter(self._decisions(" WHERE id = ?", id)), None)

    def _decisions(self, bounds: str, *values: Any) -> list[DecisionMade]:
        connection = self._opened()
        return to_decisions(_rows(connection, sql.DECISION + bounds, *values), found_in(connection))

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        with self._reporting("read"), self._opened() as connection:
            kinds = [_rows(connection, select + sql.SOME, after, limit) for select in sql.KINDS]
            events = to_events(kinds, limit, found_in(connection))
        return events

    def changes(self, *, after: int = 0) -> list[ArmsChanged]:
        """Return the changes of the arms that come after a number."""
        with self._reporting("read"):
            rows = self._opened().execute(sql.CHANGE + " WHERE seq > ? ORDER BY seq", (after,))
            return [to_change(row) for row in rows]

    def offers(self, *, after: int, until: int) -> list[DecisionMade]:
        """Return the decisions after a number and up to another that had arms of their own."""
        bounds = " WHERE offered IS NOT NULL AND seq > ? AND seq <= ? ORDER BY seq"
        with self._reporting("read"):
            return self._decisions(bounds, after, until)

    def outages(self, *, after: int = 0) -> list[TimePassed]:
        """Return the ends of outages that come after a number."""
        with self._reporting("read"):
            return [*map(to_tick, _rows(self._opened(), sql.OUTAGES, after))]

    def last_change(self) -> int:
        """Return the number of the last change of the arms, 0 where there was none."""
        with self._reporting("read"):
            ((last,),) = _rows(self._opened(), sql.LAST_CHANGE)
        return int(last)

    @property
    def last(self) -> int:
        return self._end()[0]

    @property
    def last_at(self) -> int:
        """The time of the last event, 0 where there is none."""
        return self._end()[1]

    def _end(self) -> tuple[int, int]:
        """Return the number and the time of the last event: others write what a reader reads."""
        if self._is_reader:
            with self._reporting("read"):
                ((self._last, self._at),) = _rows(self._opened(), sql.LAST)
        return self._last, self._at

    @property
    def identity(self) -> str:
        """What tells this log from all others, "" where it is too old to have that."""
        return self._identity

    def secret(self) -> SecretNames:
        """Return the columns that are not to be shown."""
        with self._reporting("read"):
            return SecretNames.read(_rows(self._opened(), SECRET_COLUMNS))

    def marks(self) -> Marks:
        """Return what learners and copies of this log have to follow."""
        with self._reporting("read"):
            connection = self._opened()
            forgotten = frozenset(seq for (seq,) in _rows(connection, FORGOTTEN))
            return Marks(0, forgotten, dict(_rows(connection, DROPPED)))

    def close(self) -> None:
        with self._one_at_a_time, ExitStack() as closing:  # the connection first
            held = (self._lock, self._connection)
            self._lock = self._connection = None
            for one in filter(None, held):
                closing.callback(one.close)

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            if not self._is_reader:
                self._lock = _lock_out_others(self._path)
            self._connection = self._connect()
            ((self._last, self._at),) = _rows(self._connection, sql.LAST)
            ((self._identity,),) = _rows(self._connection, sql.IDENTITY)
            if not self._is_reader and isinstance(self.clock, LogClock):
                self._anchor = _stored_anchor(self._connection)
                self.clock.resumed(self._anchor, last_at=self._at)
                self._save_anchor(self._connection)
        return self._connection

    def _save_anchor(self, connection: apsw.Connection) -> None:
        """Store how time goes on, where that changed: at another boot, or a step of the clock."""
        if isinstance(self.clock, LogClock) and self.clock.anchor != self._anchor:
            self._anchor = self.clock.anchor
            connection.execute(sql.SAVE_ANCHOR, self._anchor)

    def _connect(self) -> apsw.Connection:
        connection = connect(self._path, is_reader=self._is_reader)
        try:
            connection.set_busy_timeout(5_000)
            is_new = not version_of(connection, self._path)  # raises where it cannot be used
            if self._is_reader:
                open_for_reading(connection, self._path)
            else:
                if is_new:  # pages of days that left go back to the disk
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                _make_durable(connection, self._path)
                for pragma in self._pragmas:
                    connection.execute(f"PRAGMA {pragma}")
                prepare(connection, self._path, reached=self._reached)
                if self._secret.rows:
                    connection.executemany(sql.INSERT_SECRET, self._secret.rows)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _reporting(self, done: str) -> Iterator[None]:
        """Turn what SQLite says of a file into our error; after any, open the file anew."""
        try:
            with self._one_at_a_time:
                yield
        except InputError:
            raise
        except BaseException as error:
            with suppress(apsw.Error):
                self.close()
            is_damaged = isinstance(error, _DAMAGED) or is_damage(error)
            if isinstance(error, FastbanditError) or not isinstance(error, (*_DAMAGED, apsw.Error)):
                raise
            said, fix = ("is damaged", "Restore a backup of it.") if is_damaged else _CANNOT
            raise LogError(
                f"The event log needs a file that can be {done}: {self._path} {said} "
                f"({type(error).__name__}: {error}). {fix}"
            ) from error


def _stored_anchor(connection: apsw.Connection) -> Anchor | None:
    """Return how the time of a log goes on, None where that was never stored."""
    return next((Anchor(*row) for row in _rows(connection, sql.ANCHOR)), None)


def clock_of(connection: apsw.Connection) -> LogClock:
    """Return the clock of a log that others write."""
    clock = LogClock()
    clock.resumed(_stored_anchor(connection), last_at=0)
    return clock


def check_sqlite() -> None:
    """Raise where SQLite is of a version that may lose what it acknowledged."""
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        raise LogError(
            f"The event log needs SQLite 3.51.3 or newer: got {apsw.sqlite_lib_version()}. Run: "
            f"pip install -U apsw"
        )


def _lock_out_others(path: Path) -> apsw.Connection:
    """Become the one writer of a log, by a lock that ends with the process at the latest."""
    lock = apsw.Connection(f"{path}-lock")
    try:
        lock.execute("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE").fetchall()
    except apsw.BusyError as error:
        lock.close()
        raise LogError(
            f"An event log needs to have one writer: {path} is written by another process, or "
            f"was not closed. Stop that one, or name another data folder."
        ) from error
    return lock


def _make_durable(connection: apsw.Connection, path: Path) -> None:
    """Have each commit synced before it returns."""
    ((mode,),) = _rows(connection, "PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise LogError(
            f"The event log needs a disk with shared memory for SQLite's write-ahead log: {path} "
            f"has the mode {mode!r}. Name a data folder on a local disk."
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.set_wal_hook(_committed)
    connection.set_busy_handler(look_again)
    connection.execute("PRAGMA secure_delete = FAST")  # no page keeps what moved to another
    connection.execute("PRAGMA fullfsync = ON")  # macOS keeps what fsync wrote in the drive's cache


def look_again(tries: int) -> bool:
    """Wait a moment for whoever else writes to a log: such transactions are short."""
    time.sleep(0.0002)
    return tries < _TRIES


def _committed(connection: apsw.Connection, name: str, pages: int) -> int:
    """Write pages into the file after enough of one's own: who changes a log sees to theirs."""
    written = apsw.SQLITE_DBSTATUS_CACHE_WRITE
    if min(pages, connection.status(written)[0]) >= _PAGES:
        connection.status(written, reset=True)
        with suppress(apsw.Error):  # what was committed is
            connection.wal_checkpoint(name)
    return apsw.SQLITE_OK


def _write_decisions(
    connection: apsw.Connection, decisions: list[DecisionMade]
) -> dict[int, Outcome]:
    if not decisions:
        return {}
    short, hashes, lists = split(decisions)
    short, offered = apart(short)
    text = text_of(short)
    with connection if lists else nullcontext():
        for found in lists.items():
            connection.execute(sql.INSERT_LIST, found)
        more = (text_of(hashes) if lists else None, offered)
        connection.execute(sql.INSERT_DECISIONS, (text, *more))
    if connection.changes() == len(decisions):
        return {}
    first: dict[str, int] = dict(_rows(connection, sql.FIRST_OF, text))
    again = (made for made in decisions if first[made.id] != made.seq)
    return {made.seq: Outcome(first[made.id], "repeated") for made in again}


def found_in(connection: apsw.Connection) -> Find:
    """Return what finds lists of eligible arms in a log."""
    return lambda hashes: _rows(connection, sql.LISTS, text_of(hashes))


def _write_the_rest(connection: apsw.Connection, events: Sequence[Event]) -> None:
    for change in _of_kind(ArmsChanged, events):
        upserted, discarded = text_of(change.upserted), text_of(change.discarded)
        connection.execute(sql.INSERT_CHANGE, (change.seq, change.at, upserted, discarded))
    for tick in _of_kind(TimePassed, events):
        connection.execute(sql.INSERT_TICK, (tick.seq, tick.at, tick.outage))


def _of_kind(kind: type[_E], events: Sequence[Event]) -> list[_E]:
    return [event for event in events if isinstance(event, kind)]
