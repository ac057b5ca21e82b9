"""Values of columns leave a log after some days: decisions stay, with null in their place.

The same is done in the archive; in training data the encoded numbers become those of a value that
is missing. Values go from the oldest on, in small transactions, and the log remembers up to which
number: a run that ends half-way is finished by the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from msgspec import json

from fastbandit.features.schema import Schema
from fastbandit.storage.archive import Archive
from fastbandit.storage.column_marks import DROPPED
from fastbandit.storage.event_rows import ARCHIVED
from fastbandit.storage.forgetting import empty_wal
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.retention import DAY, changing, last_before
from fastbandit.storage.sqlite_files import all_rows
from fastbandit.storage.sqlite_log import clock_of

_SLICE = 500  # decisions read, and perhaps written, in a transaction
_SOME = f"SELECT seq, context FROM decisions WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT {_SLICE}"
_WRITE = "UPDATE decisions SET context = ? WHERE seq = ?"
MARK = """
INSERT INTO dropped_columns (name, until) VALUES ({0}, {0})
ON CONFLICT (name) DO UPDATE SET until = excluded.until
"""
_REST = 3.0  # times as long as a transaction took, the next one waits


@dataclass
class Dropped:
    """How many values of a column left the log, its archive and the training data."""

    log: int = 0
    archive: int = 0
    interactions: int = 0


class Range(NamedTuple):
    """The decisions after a number and up to another."""

    after: int
    until: int


def without_value(context: str, name: str) -> str | None:
    """Return a context without the value of a name; None where it has none."""
    found = json.decode(context) if context.startswith("{") else {}
    if found.get(name) is None:
        return None
    return json.encode({**found, name: None}).decode()


def drop_columns(
    data_dir: Path,
    log: Path,
    days: Mapping[str, int],
    schema: Schema | None,
    *,
    now: int | None = None,
) -> dict[str, Dropped]:
    """Drop values that are older than so many days, by the names of columns; return how many.

    The schema is that by which the version in service encodes; a service may run meanwhile.
    """
    counts, archive = {name: Dropped() for name in days}, Archive(data_dir / "archive")
    with changing(data_dir, log) as connection:
        archive.remove_drafts()
        now = clock_of(connection)() if now is None else now
        known = dict(all_rows(connection, DROPPED))
        for name, count in counts.items():
            before = now - days[name] * DAY
            lasts = {day: archive.bounds(day)[1] for day in archive.days()}
            until = max(last_before(connection, before), archived_until(lasts, before))
            some = Range(known.get(name, 0), until)
            if some.until > some.after:
                count.archive = drop_archived(archive, name, some)
                count.interactions = drop_learned(data_dir, name, until, schema)
                count.log = drop_rows(connection, name, some)  # which marks it as done
        empty_wal(connection)
    return counts


def archived_until(lasts: Mapping[str, int], before: int) -> int:
    """Return the last number of those archived days that ended before a time."""
    ends = {day: datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) for day in lasts}
    old = [day for day, at in ends.items() if at.timestamp() * 1e6 + DAY <= before]
    return max((lasts[day] for day in old), default=0)


def drop_rows(connection: apsw.Connection, name: str, some: Range) -> int:
    """Drop the values of a column in a log in SQLite, a few at a time; return how many."""
    count, after = 0, some.after
    while rows := all_rows(connection, _SOME, after, some.until):
        began = time.monotonic()
        fresh = [(without_value(context, name), seq) for seq, context in rows]
        changed = [one for one in fresh if one[0] is not None]
        after, count = rows[-1][0], count + len(changed)
        with connection:
            connection.executemany(_WRITE, changed)
        time.sleep(_REST * (time.monotonic() - began) if changed else 0.0)
    with connection:
        connection.execute(MARK.format("?"), (name, some.until))
    return count


def drop_archived(
    archive: Archive, name: str, some: Range, changing_day: Callable[[str], None] = lambda day: None
) -> int:
    """Drop the values of a column in an archive; return how many.

    `changing_day` is called with each day before it is written anew.
    """
    names, count = [column for column, _ in ARCHIVED["decisions"].columns], 0
    for day in archive.days():
        first, last = archive.bounds(day)
        if first > some.until or last <= some.after:
            continue
        changed = _changed(names, archive.rows(day, "decisions"), name, some.until)
        if changed:
            changing_day(day)
            archive.rewrite(day, "decisions", changed)
            count += len(changed)
    return count


def _changed(
    names: Sequence[str], rows: Iterable[Sequence[Any]], name: str, until: int
) -> dict[int, dict[str, Any]]:
    found = {}
    for values in rows:
        row = dict(zip(names, values, strict=True))
        text = without_value(row["context"], name) if row["seq"] <= until else None
        if text is not None:
            found[row["seq"]] = {**row, "context": text}
    return found


def drop_learned(data_dir: Path, name: str, until: int, schema: Schema | None) -> int:
    """Have training data hold a column as missing, of decisions up to a number."""
    if schema is None or name not in schema.spans:
        return 0
    span, missing = schema.spans[name], schema.missing(name)
    return HistoryFiles(data_dir / "history").drop(name, until=until, span=span, missing=missing)
