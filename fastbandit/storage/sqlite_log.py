"""An event log in one SQLite file: only appended to, by one writer, synced at each append.

All rows of an append go to SQLite as one JSON text. So it writes them within one statement,
without Python's lock, and other threads go on deciding meanwhile. What a reward is worth is
told by SQL as well, in the transaction that keeps it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import apsw
from msgspec import MsgspecError, json, structs

from fastbandit.errors import FastbanditError, InputError, LogError
from fastbandit.storage.events import (
    REWARD_STATUSES,
    WHO,
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    TimePassed,
)
from fastbandit.storage.log_input import check_events, text_of
from fastbandit.storage.log_schema import check_version, prepare

OLDEST_SQLITE = 3051003  # earlier ones can lose a page of the write-ahead log
_DAMAGED = (apsw.CorruptError, apsw.NotADBError, MsgspecError, TypeError, ValueError)

_INSERT_DECISIONS = """
INSERT INTO decisions (
    seq, at, id, context, arms, scores, seed, version, catalogue, until, otherwise, sums,
    explored, floor, propensities, eligible, degraded, decided_by, other
)
SELECT value ->> 17, value ->> 18, value ->> 0, value -> 1, value -> 2, value -> 3, value ->> 4,
    value ->> 5, value ->> 6, (value ->> 18) + (value ->> 7), value ->> 8, value ->> 9,
    value ->> 10, value ->> 11, nullif(value -> 12, 'null'), nullif(value -> 13, 'null'),
    value ->> 14, value ->> 15, nullif(value -> 16, 'null')
FROM jsonb_each(?1) WHERE true
ON CONFLICT (id) DO NOTHING
"""
_FIRST_OF = """
SELECT decisions.id, decisions.seq FROM json_each(?1) JOIN decisions ON decisions.id = value ->> 0
"""
_INSERT_REWARDS = """
WITH came AS (
    SELECT value ->> 5 AS seq, value ->> 6 AS at, value ->> 0 AS decision, value ->> 1 AS value,
        nullif(value -> 2, 'null') AS arm, value ->> 3 AS part
    FROM jsonb_each(?1)
), met AS (
    SELECT came.seq, came.at, came.decision, came.value, came.part, d.until, d.sums, d.arms,
        d.id IS NOT NULL AS is_known, coalesce(came.arm, d.arms -> 0) AS arm
    FROM came LEFT JOIN decisions d ON d.id = came.decision AND d.seq < came.seq
), judged AS (
    SELECT met.*, CASE WHEN met.sums THEN (
        SELECT earlier.value FROM rewards earlier
        WHERE earlier.decision = met.decision AND earlier.arm = met.arm
            AND earlier.part = met.part AND earlier.status = 'counted'
    ) ELSE (
        SELECT earlier.value FROM rewards earlier
        WHERE earlier.decision = met.decision AND earlier.arm = met.arm
            AND earlier.status = 'counted'
    ) END AS counted
    FROM met
)
INSERT INTO rewards (seq, at, decision, arm, part, value, status)
SELECT seq, at, decision, arm, part, value, CASE
    WHEN NOT is_known THEN 'unknown'
    WHEN NOT EXISTS (
        SELECT 1 FROM json_each(judged.arms) one WHERE json_quote(one.value) = judged.arm
    ) THEN 'unknown arm'
    WHEN counted = value THEN 'duplicate'
    WHEN counted IS NOT NULL THEN 'conflicting'
    WHEN at > until THEN 'late'
    ELSE 'counted' END
FROM judged
RETURNING seq, status
"""
_INSERT_CHANGE = "INSERT INTO changes (seq, at, put, taken) VALUES (?, ?, ?, ?)"
_INSERT_TICK = "INSERT INTO ticks (seq, at) VALUES (?, ?)"
_LAST = """
SELECT coalesce(max(seq), 0), coalesce(max(at), 0) FROM (
    SELECT * FROM (SELECT seq, at FROM decisions ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM rewards ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM changes ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM ticks ORDER BY seq DESC LIMIT 1)
)
"""
_DECISION = """
SELECT id, context, arms, scores, seed, version, catalogue, until - at, otherwise, sums,
    explored, floor, propensities, eligible, degraded, decided_by, other, seq, at
FROM decisions
"""
_REWARD = "SELECT decision, value, arm, part, status, seq, at FROM rewards"
_CHANGE = "SELECT put, taken, seq, at FROM changes"
_TICK = "SELECT seq, at FROM ticks"
_LAST_CHANGE = "SELECT coalesce(max(seq), 0) FROM changes"
_SOME = " WHERE seq > ? ORDER BY seq LIMIT ?"
_E = TypeVar("_E", DecisionMade, RewardCame, ArmsChanged, TimePassed)


def now() -> int:
    """Give the time in microseconds since 1970."""
    return time.time_ns() // 1000


class SqliteLog:
    """Remembers events in the file `path`; with `is_reader` it cannot write.

    A log is used by one thread at a time: give each thread one of its own to read with.
    `clock` gives the time in microseconds. `reached` is told each step of an upgrade of the
    file, `vfs` names the SQLite file system to write through, and `pragmas` are settings of
    SQLite to try in place of ours, such as "wal_autocheckpoint = 9".
    """

    def __init__(
        self,
        path: str | Path,
        *,
        is_reader: bool = False,
        clock: Callable[[], int] = now,
        reached: Callable[[str], None] = lambda step: None,
        vfs: str | None = None,
        pragmas: Sequence[str] = (),
    ) -> None:
        self._path, self._is_reader, self._clock, self._vfs = Path(path), is_reader, clock, vfs
        self._reached, self._pragmas, self._last, self._at = reached, pragmas, 0, 0
        self._connection: apsw.Connection | None = None
        self._turn: apsw.Connection | None = None
        check_sqlite()
        with self._reporting("opened"):
            self._opened()

    # -- writing

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events in their order, all or none: on return they outlive a power cut."""
        check_events(events)
        with self._reporting("written to"):
            connection = self._opened()  # after an error, only the file knows the last number
            at = max(self._at, self._clock())
            numbered: list[Event] = [
                structs.replace(event, seq=seq, at=at)
                for seq, event in enumerate(events, start=self._last + 1)
            ]
            found = self._write(connection, numbered)
            outcomes = [found.get(it.seq) or Outcome(it.seq, "written") for it in numbered]
            last = max([self._last, *(one.seq for one in outcomes)])
            if last > self._last:  # unless there were only repeated decisions
                self._last, self._at = last, at
        return outcomes

    def _write(self, connection: apsw.Connection, events: list[Event]) -> dict[int, Outcome]:
        """Write numbered events; tell what became of rewards and of repeated decisions."""
        decisions = _of(DecisionMade, events)
        if len(decisions) == len(events):  # one statement is a transaction of its own
            return self._write_decisions(connection, decisions)
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = self._write_decisions(connection, decisions)
            found |= _write_rewards(connection, _of(RewardCame, events))
            for change in _of(ArmsChanged, events):
                put, taken = text_of(change.put), text_of(change.taken)
                connection.execute(_INSERT_CHANGE, (change.seq, change.at, put, taken))
            for tick in _of(TimePassed, events):
                connection.execute(_INSERT_TICK, (tick.seq, tick.at))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return found

    def _write_decisions(
        self, connection: apsw.Connection, decisions: list[DecisionMade]
    ) -> dict[int, Outcome]:
        if not decisions:
            return {}
        text = text_of(decisions)
        connection.execute(_INSERT_DECISIONS, (text,))
        if connection.changes() == len(decisions):
            return {}
        first: dict[str, int] = dict(_rows(connection, _FIRST_OF, text))
        return {
            made.seq: Outcome(first[made.id], "repeated")
            for made in decisions
            if first[made.id] != made.seq
        }

    # -- reading

    def decision(self, id: str) -> DecisionMade | None:
        """Give the decision of an id."""
        with self._reporting("read"):
            rows = _rows(self._opened(), _DECISION + " WHERE id = ?", id)
            return _to_decision(rows[0]) if rows else None

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Give the events that come after a number, in their order, at most so many."""
        with self._reporting("read"), self._opened() as connection:
            kinds: list[list[Event]] = [
                [to_event(row) for row in connection.execute(sql + _SOME, (after, limit))]
                for sql, to_event in _KINDS
            ]
        return list(islice(merge(*kinds, key=lambda event: event.seq), limit))

    def changes(self, *, after: int = 0) -> list[ArmsChanged]:
        """Give the changes of the arms that come after a number."""
        with self._reporting("read"):
            rows = self._opened().execute(_CHANGE + " WHERE seq > ? ORDER BY seq", (after,))
            return [_to_change(row) for row in rows]

    def last_change(self) -> int:
        """Give the number of the last change of the arms, 0 where there was none."""
        with self._reporting("read"):
            ((last,),) = _rows(self._opened(), _LAST_CHANGE)
        return int(last)

    @property
    def last(self) -> int:
        """The number of the last event, 0 where there is none."""
        if self._is_reader:
            with self._reporting("read"):
                self._last, self._at = _find_last(self._opened())
        return self._last

    @property
    def last_at(self) -> int:
        """The time of the last event that this log has seen, 0 where there is none."""
        return self._at

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        turn, self._turn = self._turn, None
        try:
            if connection is not None:
                connection.close()
        finally:
            if turn is not None:
                turn.close()

    # -- the file

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            if not self._is_reader:
                self._turn = _take_turn(self._path)
            self._connection = self._connect()
            self._last, self._at = _find_last(self._connection)
        return self._connection

    def _connect(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY
        if not self._is_reader:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(str(self._path), flags=flags, vfs=self._vfs)
        try:
            connection.set_busy_timeout(5_000)
            check_version(connection, self._path, is_reader=self._is_reader)
            if not self._is_reader:
                _make_durable(connection, self._path)
                for pragma in self._pragmas:
                    connection.execute(f"PRAGMA {pragma}")
                prepare(connection, self._path, reached=self._reached)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _reporting(self, done: str) -> Iterator[None]:
        """Turn what SQLite says of a file into our error; after any, open the file anew."""
        try:
            yield
        except InputError:
            raise
        except BaseException as error:
            with suppress(apsw.Error):
                self.close()
            if isinstance(error, FastbanditError):
                raise
            if isinstance(error, _DAMAGED):
                raise LogError(
                    f"The event log needs a file that can be {done}: {self._path} is damaged "
                    f"({type(error).__name__}: {error}). Restore a backup of it."
                ) from error
            if isinstance(error, apsw.Error):
                raise LogError(
                    f"The event log needs a file that can be {done}: {self._path} cannot "
                    f"({type(error).__name__}: {error}). Make room on the disk, or let it be "
                    f"written to; nothing that was acknowledged is lost."
                ) from error
            raise


def check_sqlite() -> None:
    """Raise where SQLite is of a version that may lose what it acknowledged."""
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        raise LogError(
            f"The event log needs SQLite 3.51.3 or newer: got {apsw.sqlite_lib_version()}. Run: "
            f"pip install -U apsw"
        )


def _take_turn(path: Path) -> apsw.Connection:
    """Become the one writer of a log, by a lock that ends with the process at the latest."""
    turn = apsw.Connection(f"{path}-lock")
    try:
        turn.execute("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE").fetchall()
    except apsw.BusyError as error:
        turn.close()
        raise LogError(
            f"An event log needs to have one writer: {path} is written by another process, or "
            f"was not closed. Stop that one, or name another data folder."
        ) from error
    return turn


def _make_durable(connection: apsw.Connection, path: Path) -> None:
    """Have each commit synced before it returns."""
    ((mode,),) = _rows(connection, "PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise LogError(
            f"The event log needs a disk with shared memory for SQLite's write-ahead log: {path} "
            f"gives the mode {mode!r}. Name a data folder on a local disk."
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS keeps what fsync wrote in the drive's cache


def _find_last(connection: apsw.Connection) -> tuple[int, int]:
    ((last, at),) = _rows(connection, _LAST)
    return last, at


def _write_rewards(connection: apsw.Connection, rewards: list[RewardCame]) -> dict[int, Outcome]:
    """Write rewards, those of one decision one after the other: each must see the one before."""
    rounds: list[list[RewardCame]] = []
    earlier: Counter[str] = Counter()
    for came in rewards:
        if earlier[came.decision] == len(rounds):
            rounds.append([])
        rounds[earlier[came.decision]].append(came)
        earlier[came.decision] += 1
    judged = chain.from_iterable(
        _rows(connection, _INSERT_REWARDS, text_of(some)) for some in rounds
    )
    return {seq: Outcome(seq, status) for seq, status in judged}


def _rows(connection: apsw.Connection, sql: str, *values: Any) -> list[Any]:
    return connection.execute(sql, values).fetchall()


def _of(kind: type[_E], events: Sequence[Event]) -> list[_E]:
    return [event for event in events if isinstance(event, kind)]


def _to_decision(row: Sequence[Any]) -> DecisionMade:
    id, context, arms, scores, seed, version, catalogue, wait, otherwise, *rest = row
    sums, explored, epsilon, propensities, eligible, degraded, who, other, seq, at = rest
    return DecisionMade(
        id=id,
        context=json.decode(context, type=list[float]),
        arms=json.decode(arms),
        scores=json.decode(scores, type=list[float]),
        seed=seed,
        version=version,
        catalogue=catalogue,
        wait=wait,
        otherwise=otherwise,
        sums=bool(sums),
        explored=bool(explored),
        epsilon=epsilon,
        propensities=None if propensities is None else json.decode(propensities),
        eligible=None if eligible is None else json.decode(eligible),
        degraded=bool(degraded),
        decided_by=WHO[WHO.index(who)],
        other=None if other is None else json.decode(other),
        seq=seq,
        at=at,
    )


def _to_reward(row: Sequence[Any]) -> RewardCame:
    decision, value, arm, part, status, seq, at = row
    named = None if arm is None else json.decode(arm)
    known = REWARD_STATUSES[REWARD_STATUSES.index(status)]
    return RewardCame(decision, value, named, part, known, seq, at)


def _to_change(row: Sequence[Any]) -> ArmsChanged:
    put, taken, seq, at = row
    return ArmsChanged(json.decode(put, type=list[Arm]), json.decode(taken), seq, at)


def _to_tick(row: Sequence[Any]) -> TimePassed:
    return TimePassed(*row)


_KINDS: tuple[tuple[str, Callable[[Sequence[Any]], Event]], ...] = (
    (_DECISION, _to_decision),
    (_REWARD, _to_reward),
    (_CHANGE, _to_change),
    (_TICK, _to_tick),
)
