"""Values of columns leave a log in PostgreSQL after some days, as they leave one in a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import apsw

from fastbandit.features.schema import Schema
from fastbandit.storage.column_marks import DROPPED
from fastbandit.storage.dropping import (
    MARK,
    Dropped,
    Range,
    archived_until,
    drop_archived,
    drop_learned,
    drop_rows,
    without_value,
)
from fastbandit.storage.forgetting import empty_wal
from fastbandit.storage.local_copy import change_copy
from fastbandit.storage.postgres_connection import Connection, rows, taking_its_time
from fastbandit.storage.postgres_days import DAY
from fastbandit.storage.retention import last_in
from fastbandit.storage.shared_archive import SharedArchive
from fastbandit.storage.shared_retention import changing_shared

_SOME = """
SELECT seq, at, context::text FROM decisions WHERE seq > %s AND at < %s ORDER BY seq LIMIT 500
"""
_LAST = "SELECT coalesce(max(seq), 0) FROM decisions WHERE at < %s"
_WRITE = "UPDATE decisions SET context = %s WHERE seq = %s AND at = %s"


def drop_shared_columns(
    url: str,
    archive: SharedArchive,
    folder: Path,
    days: Mapping[str, int],
    *,
    schema: Schema | None,
    tables: str = "fastbandit",
) -> dict[str, Dropped]:
    """Drop values that are older than so many days, by the names of columns; return how many."""
    counts = {name: Dropped() for name in days}
    with changing_shared(url, schema=tables) as connection:
        known = dict(rows(connection, DROPPED))
        ((now,),) = rows(connection, "SELECT at FROM head")
        for name, count in counts.items():
            before = now - days[name] * DAY
            with taking_its_time(connection):
                ((last,),) = rows(connection, _LAST, before)
            lasts = {day: one.last for day, one in archive.days(connection).items()}
            some = Range(known.get(name, 0), max(int(last), archived_until(lasts, before)))
            if some.until > some.after:
                if some.after < max(lasts.values(), default=0):
                    archive.follow(connection)
                    with archive.rewriting(connection) as begin:
                        count.archive = drop_archived(archive.local, name, some, begin)
                count.interactions = drop_learned(folder, name, some.until, schema)
                change_copy(folder, partial(_drop_in_copy, name, some))
                count.log = _drop_rows(connection, name, some, before)  # which marks it as done
    return counts


def _drop_rows(connection: Connection, name: str, some: Range, before: int) -> int:
    """Drop the values of a column in the table, a few at a time; return how many."""
    count, after = 0, some.after
    while found := rows(connection, _SOME, after, before):
        after = found[-1][0]
        with connection.transaction():
            for seq, at, context in found:
                text = without_value(context, name)
                if text is not None:
                    connection.execute(_WRITE, (text, seq, at))
                    count += 1
    connection.execute(MARK.format("%s"), (name, some.until))
    return count


def _drop_in_copy(name: str, some: Range, connection: apsw.Connection) -> None:
    # of what is copied later, the log says what was dropped
    drop_rows(connection, name, some._replace(until=min(some.until, last_in(connection))))
    empty_wal(connection)
