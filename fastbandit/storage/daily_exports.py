"""An export that goes on where the last one stopped: a file of Parquet for each day.

A day is written once all its rewards are known for good, whole or not at all. The files that are
there say how far it is, so no decision is written twice. Days that left the log are read from its
archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastbandit.errors import DataError
from fastbandit.files.atomic import raising
from fastbandit.progress import Progress, silent
from fastbandit.storage.archive import Archive
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, Event, TimePassed
from fastbandit.storage.exports import Exported, export
from fastbandit.storage.joined_rows import Bounds
from fastbandit.storage.log_reader import one_moment_of
from fastbandit.storage.retention import name_of_day
from fastbandit.storage.sqlite_log import SqliteLog

_DAY = 86_400_000_000
_AT_ONCE = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = "SELECT at FROM {} ORDER BY seq LIMIT 1"
_OPEN = "SELECT min(at) FROM decisions WHERE until >= ?"


def export_days(
    data_dir: Path,
    out: Path,
    *,
    warn: Callable[[str], None] = lambda note: None,
    progress: Progress = silent,
) -> list[Exported]:
    """Write the days of a log and its archive that a folder lacks; return the files that are new.

    `warn` is called with a sentence on days after its last one that neither has.
    """
    needs = f"An export by day needs a folder that can be written to: {out} cannot"
    with raising(DataError, needs, fix="Make room there, or name another."):
        out.mkdir(parents=True, exist_ok=True)
    archive, days = Archive(data_dir / "archive"), _days(data_dir / LOG_FILE)
    archived = [_day_of(name) for name in archive.days()]
    there = sorted(_day_of(path.stem) for path in out.glob("[0-9]*-[0-9][0-9]-[0-9][0-9].parquet"))
    first = there[-1] + 1 if there else min(archived, default=days.start)
    lost = [name_of_day(day) for day in range(first, days.start) if day not in archived]
    if lost:
        warn(
            f"Neither the log nor its archive holds {', '.join(lost)}: nothing happened then, or "
            f"it left without an archive. Export before days leave, or set log.archive = true."
        )
    wanted = {*days, *(day for day in archived if not there or day > there[0])} - {*there}
    found = []
    for day in sorted(wanted):
        since = _EPOCH + timedelta(days=day)
        path, bounds = out / f"{name_of_day(day)}.parquet", Bounds(since, since + timedelta(days=1))
        with _holding(day, data_dir, archive) as folder:
            found.append(export(folder, path, "parquet", bounds=bounds, progress=progress))
    return found


@contextmanager
def _holding(day: int, data_dir: Path, archive: Archive) -> Iterator[Path]:
    """Yield a folder whose log holds a day: of one from the archive, a log is made for the time."""
    name = name_of_day(day)
    if name not in archive.days():
        yield data_dir
        return
    first, last = archive.bounds(name)
    with (
        TemporaryDirectory() as folder,
        closing(SqliteLog(data_dir / LOG_FILE, is_reader=True)) as log,
    ):
        with closing(SqliteLog(Path(folder) / LOG_FILE, secret=log.secret())) as copy:
            events = _until_known(_events(log, archive, after=first - 1), last)
            while some := list(islice(events, _AT_ONCE)):
                copy.copy(some)
        yield Path(folder)


def _events(log: SqliteLog, archive: Archive, *, after: int) -> Iterator[Event]:
    """Yield what happened after an event of an archive, there and then in the log."""
    yield from archive.events(after=after, until=inf)
    after = archive.last
    while some := log.read(after=after, limit=_AT_ONCE):
        yield from some
        after = some[-1].seq


def _until_known(events: Iterable[Event], last: int) -> Iterator[Event]:
    """Yield events until no decision up to the number `last` waits for rewards any more."""
    until = outages = 0
    for event in events:
        yield event
        if isinstance(event, DecisionMade) and event.seq <= last:
            until = max(until, event.until)
        outages += event.outage if isinstance(event, TimePassed) else 0
        if event.seq >= last and event.at - outages > until:
            return


def _day_of(name: str) -> int:
    """Return a day as counted from 1970, by its name."""
    return (datetime.fromisoformat(name).replace(tzinfo=UTC) - _EPOCH).days


def _days(log: Path) -> range:
    """Return the days of a log, counted from 1970, on which nothing waits for rewards any more."""
    with one_moment_of(log) as connection:

        def ask(query: str, *values: int) -> Any:
            rows: Any = connection.execute(query, values).fetchall()
            return rows[0][0] if rows else None

        begun = [ask(_FIRST.format(table)) for table in ("decisions", "rewards")]
        now = max(ask(f"SELECT max(at) FROM {table}") or 0 for table in ("decisions", "ticks"))
        waiting = ask(_OPEN, now)
    first = min((at for at in begun if at is not None), default=now)
    end = now if waiting is None else min(now, waiting)
    return range(first // _DAY, end // _DAY)
