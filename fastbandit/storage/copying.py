"""Copies a shared log into the file of a data folder: same numbers, times and statuses.

Events are written as they were judged, not judged anew: so a copy of a log whose oldest days
were dropped is right too. Each page is one transaction; a copy that is broken off goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import apsw

from fastbandit.errors import LogError
from fastbandit.progress import Progress, silent
from fastbandit.storage import sqlite_sql as sql
from fastbandit.storage.events import DecisionMade, Event, EventLog, RewardCame
from fastbandit.storage.log_file import LOG_FILE
from fastbandit.storage.log_input import text_of
from fastbandit.storage.sqlite_log import SqliteLog, of_kind, write_the_rest

_PAGE = 5_000


class OtherLogError(LogError):
    """A folder holds the copy of another log, or of what this one was before a restore."""


class Copied(NamedTuple):
    """The file, how many events came into it just now, its last number, and those missing yet."""

    file: Path
    events: int
    last: int
    behind: int


def copy_log(
    source: EventLog,
    folder: str | Path,
    *,
    page: int = _PAGE,
    seconds: float = inf,
    progress: Progress = silent,
) -> Copied:
    """Copy all events that a folder's log does not hold yet, up to those there are now.

    After so many seconds it leaves the rest for the next time.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    path, end, count, until = Path(folder) / LOG_FILE, source.last, 0, monotonic() + seconds
    with closing(SqliteLog(path)) as copy:  # nobody else writes meanwhile
        last = copy.last
        _check_same(source, copy, end=end)
        behind = end - last
        with closing(_connect(path)) as connection:
            while behind and (not count or monotonic() < until):
                events = [one for one in source.read(after=last, limit=page) if one.seq <= end]
                _write(connection, events, path)
                last, count = (events[-1].seq if events else last), count + len(events)
                behind = end - last if events else 0  # the last days may have been dropped
                progress(last, end, f"event {last:,}")
    return Copied(path, count, last, behind)


def _check_same(source: EventLog, copy: SqliteLog, *, end: int) -> None:
    """Raise unless what is there already is a copy of the same log."""
    last = copy.last
    if not last:
        return
    there = copy.read(after=last - 1, limit=1)
    if last > end or source.read(after=last - 1, limit=1) != there:
        raise OtherLogError(
            f"A copy goes on from a copy of the same log: event {last:,} of the folder is not "
            f"the one of the log, which ends at {end:,}. Name an empty folder."
        )


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(5_000)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _write(connection: apsw.Connection, events: Sequence[Event], path: Path) -> None:
    """Write events with their own numbers, all or none."""
    try:
        with connection:
            connection.execute(sql.INSERT_DECISIONS, (text_of(of_kind(DecisionMade, events)),))
            connection.execute(sql.COPY_REWARDS, (text_of(of_kind(RewardCame, events)),))
            write_the_rest(connection, events)
    except apsw.Error as error:
        raise LogError(
            f"A copy of a log needs a file that can be written to: {path} cannot "
            f"({type(error).__name__}: {error}). Make room on the disk; what was copied stays."
        ) from error
