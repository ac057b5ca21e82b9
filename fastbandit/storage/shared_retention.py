"""Old days leave a log in PostgreSQL while services write on, into a shared archive if wanted.

As in a file, only whole days go whose events no version needs. A day is archived first, as the log
names it then, and its partitions are dropped after; a run that ends half-way is finished by the
next. One at a time, of all machines, changes what is in a log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

from fastbandit.errors import LogError
from fastbandit.progress import Progress, silent
from fastbandit.storage import postgres_sql as sql
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.postgres_connection import Connection, Server, rows, taking_its_time
from fastbandit.storage.postgres_days import DAY, drop_days
from fastbandit.storage.postgres_schema import check_version
from fastbandit.storage.retention import Left, learned_by, name_of_day
from fastbandit.storage.shared_archive import SharedArchive
from fastbandit.storage.snapshot_store import SnapshotStore

_READ = {"decisions": sql.ARCHIVED_DECISION, "rewards": sql.REWARD, "ticks": sql.TICK}
_PATIENT_SECONDS = 60.0
_TIMES = " UNION ALL ".join(f"SELECT at FROM {table} WHERE at < %s" for table in _READ)
_DAYS = f"SELECT DISTINCT at / {DAY} FROM ({_TIMES}) old ORDER BY 1"
_OF_DAY = "at >= %s AND at < %s"
_BOUNDS = " UNION ALL ".join(f"SELECT seq FROM {table} WHERE {_OF_DAY}" for table in _READ)
_AHEAD = 20_000  # rows that are held at a time while a day is archived


class BeingChangedError(LogError):
    """Another process changes what is in a shared log."""


@contextmanager
def changing_shared(url: str, *, schema: str = "fastbandit") -> Iterator[Connection]:
    """Connect to a log to change what is in it, beside services; one at a time does."""
    server = Server(url, schema=schema, timeout_seconds=_PATIENT_SECONDS)
    with server.reporting("used"), closing(server.connect()) as connection:
        check_version(connection, server)
        key = crc32(f"{schema} retain".encode())
        ((is_alone,),) = rows(connection, "SELECT pg_try_advisory_lock(%s)", key)
        if not is_alone:
            raise BeingChangedError(
                f"Changing a log needs nobody else to do so: another process does, at "
                f"{server.name}. Try again when it is done."
            )
        yield connection


def retain_shared(
    url: str,
    store: SnapshotStore,
    archive: SharedArchive,
    *,
    days: int,
    is_archived: bool,
    schema: str = "fastbandit",
    progress: Progress = silent,
) -> Left:
    """Let the days leave that ended so many days before the last event; return what left."""
    left = Left(archived=is_archived)
    with changing_shared(url, schema=schema) as connection:
        ((now,),) = rows(connection, "SELECT at FROM head")
        learned = learned_by(store, is_archived=is_archived)
        with taking_its_time(connection):
            before = (now // DAY - days) * DAY
            old = [int(day) for (day,) in rows(connection, _DAYS, *[before] * len(_READ))]
        for day in old:
            name, bounds = name_of_day(day), _bounds(connection, day)
            if bounds[1] > learned:
                return replace(left, why=f"versions have learned up to event {learned:,}")
            progress(0, 2, f"Archiving {name}")
            if is_archived and name not in archive.days(connection):
                archive.remove_unnamed(connection)
                archive.local.write_day(name, bounds, partial(_rows, connection, day))
                archive.publish(connection, name)
            progress(1, 2, f"Dropping {name}")
            counts = _counts(connection, day)
            if not is_archived:  # first: what is lost is not learned, wherever this ends
                left = replace(
                    left, interactions=left.interactions + _lose(connection, archive, bounds[1])
                )
            drop_days(connection, (day + 1) * DAY, learned=learned)
            if _counts(connection, day)["decisions"]:
                return replace(left, why=f"somebody reads {name}")
            for table, count in counts.items():
                left.counts[table] += count
            left = replace(left, days=(*left.days, name))
    return left


def _bounds(connection: Connection, day: int) -> tuple[int, int]:
    """Return the numbers of the first and the last event of a day."""
    query = f"SELECT min(seq), max(seq) FROM ({_BOUNDS}) events"
    with taking_its_time(connection):
        ((first, last),) = rows(connection, query, *_times(day) * len(_READ))
    return int(first), int(last)


def _counts(connection: Connection, day: int) -> dict[str, int]:
    counts = {}
    with taking_its_time(connection):
        for table in _READ:
            query = f"SELECT count(*) FROM {table} WHERE {_OF_DAY}"
            counts[table] = int(rows(connection, query, *_times(day))[0][0])
    return counts


def _rows(connection: Connection, day: int, table: str) -> Iterator[Any]:
    """Yield the events of a kind on a day, as an archive holds them."""
    query = f"{_READ[table]} WHERE {_OF_DAY} ORDER BY seq"
    with taking_its_time(connection), connection.cursor(f"archived_{table}") as cursor:
        cursor.itersize = _AHEAD
        yield from cursor.execute(query, _times(day))


def _lose(connection: Connection, archive: SharedArchive, last: int) -> int:
    """Have learning go on without events up to a number; return what this machine had of them.

    Learners on other machines find the number in the log.
    """
    connection.execute("UPDATE identity SET gone = greatest(gone, %s)", (last,))
    history = HistoryFiles(Path(archive.local.folder).with_name("history"))
    return history.remove(until=last)


def _times(day: int) -> tuple[int, int]:
    return day * DAY, (day + 1) * DAY
