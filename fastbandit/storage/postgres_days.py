"""Partitions of a log in PostgreSQL, a day each: made ahead, and dropped when they are old.

An event whose day has no partition lies in one for the rest, so none is ever rejected. A day is
dropped bit by bit: what is known of its decisions in small transactions, then its partitions, where
nobody reads them. Whatever is interrupted, or waits for a reader, is done by the next call.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from fastbandit.errors import InputError
from fastbandit.storage.postgres_connection import Connection, psycopg, rows, sql, taking_its_time

DAY = 86_400_000_000
"""The microseconds of a day."""
_AHEAD = 2
_KINDS = ("decisions", "rewards")
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE = "SET LOCAL lock_timeout = '200ms'"  # all appends wait behind us meanwhile
_TRIES, _PAUSE_SECONDS = 5, 1.0
_SOME = sql.SQL("SELECT seq, id FROM {} WHERE seq > {} AND seq <= {} AND at < {} ORDER BY seq {}")
_AT_ONCE = sql.SQL("LIMIT 5000")
_FORGET = "DELETE FROM counted WHERE decision = ANY(%s)", "DELETE FROM terms WHERE id = ANY(%s)"
_OLDEST = "SELECT at FROM decisions ORDER BY seq LIMIT 1"
_CREATE = sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})")
_NEWEST = sql.SQL("SELECT coalesce(max(seq), 0) FROM {}")
_PARTITIONS = """
SELECT inhrelid::regclass::text FROM pg_inherits
WHERE inhparent = 'decisions'::regclass AND inhrelid <> 'decisions_rest'::regclass
"""


def make_days(connection: Connection, at: int) -> bool:
    """Make the partitions of a time's day and of the next two; return whether all are there."""
    there, first = set(days(connection)), at // DAY
    wanted = [day for day in range(first, first + _AHEAD + 1) if day not in there]
    return all(_make(connection, day) for day in wanted)


def days(connection: Connection) -> list[int]:
    """Return the days that have partitions, in their order, counted from 1970 on."""
    names = [name.rpartition("_")[2] for (name,) in rows(connection, _PARTITIONS)]
    dates = [datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC) for name in names]
    return sorted((date - _FIRST).days for date in dates)


def drop_days(connection: Connection, at: int, *, learned: int) -> int:
    """Drop all days that end before a time; return how many. None may hold events after `learned`.

    A day that holds such an event is an error, and none is dropped then. One that somebody reads
    for long stays until the next call.
    """
    old = [day for day in days(connection) if (day + 1) * DAY <= at]
    for day in old:
        tables = [sql.Identifier(_named(kind, day)) for kind in _KINDS]
        newest = max(rows(connection, _NEWEST.format(table))[0][0] for table in tables)
        if newest > learned:
            raise InputError(
                f"Dropping a day needs all of it to be learned: {_date(day):%Y-%m-%d} holds event "
                f"{newest}, and snapshots have learned up to {learned}. Drop up to an earlier "
                f"time, or let the learner go on."
            )
    for day in old:
        _forget(connection, _named("decisions", day), before=(day + 1) * DAY, learned=learned)
    dropped = sum(_drop(connection, day) for day in old)
    _delete_rest(connection, at, learned=learned)
    oldest = rows(connection, _OLDEST)
    first = (oldest[0][0] if oldest else at) // DAY
    connection.execute("DELETE FROM eligible_lists WHERE day < %s", (first - 1,))
    return dropped


def _forget(connection: Connection, table: str, *, before: int, learned: int) -> None:
    """Delete what is known of the decisions of a table beside it, some at a time."""
    last = 0
    while True:
        some = _SOME.format(sql.Identifier(table), last, learned, before, _AT_ONCE)
        found = rows(connection, some)
        if not found:
            return
        last, ids = found[-1][0], [id for _, id in found]
        for query in _FORGET:
            connection.execute(query, (ids,))


def _drop(connection: Connection, day: int) -> bool:
    """Drop the partitions of a day; return whether that was possible while others read."""
    tables = [sql.Identifier(_named(kind, day)) for kind in _KINDS]
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        with suppress(psycopg.errors.LockNotAvailable), connection.transaction():
            connection.execute(_PATIENCE)
            connection.execute(sql.SQL("DROP TABLE {}, {}").format(*tables))
            return True
    return False


def _make(connection: Connection, day: int) -> bool:
    bounds = sql.Literal(day * DAY), sql.Literal((day + 1) * DAY)
    try:
        with connection.transaction():
            connection.execute(_PATIENCE)
            for kind in _KINDS:
                name, parent = sql.Identifier(_named(kind, day)), sql.Identifier(kind)
                connection.execute(_CREATE.format(name, parent, *bounds))
    except psycopg.errors.LockNotAvailable:
        return False  # who reads goes first: there is time
    except psycopg.errors.CheckViolation:
        return True  # that day's events lie with the rest
    return True


def _delete_rest(connection: Connection, at: int, *, learned: int) -> None:
    """Delete what is as old, and learned, and lies in no day of its own."""
    before = at // DAY * DAY
    _forget(connection, "decisions_rest", before=before, learned=learned)
    old = sql.SQL(" AND old.at < {} AND old.seq <= {}").format(before, learned)
    with taking_its_time(connection):
        for table in ("decisions_rest", "rewards_rest", "ticks"):
            everything = sql.SQL("DELETE FROM {} old WHERE true").format(sql.Identifier(table))
            connection.execute(everything + old)


def _named(kind: str, day: int) -> str:
    return f"{kind}_{_date(day):%Y%m%d}"


def _date(day: int) -> datetime:
    return _FIRST + timedelta(days=day)
