"""An export that goes on where the last one stopped: a file of Parquet for each day.

A day is written once all its rewards are known for good, whole or not at all. The files that are
there say how far it is, so no decision is written twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError
from fastbandit.files.atomic import raising
from fastbandit.progress import Progress, silent
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.exports import Exported, export
from fastbandit.storage.joined_rows import Bounds
from fastbandit.storage.log_reader import one_moment_of

_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = "SELECT at FROM decisions ORDER BY seq LIMIT 1"
_OPEN = "SELECT min(at) FROM decisions WHERE until >= ?"


def export_days(data_dir: Path, out: Path, *, progress: Progress = silent) -> list[Exported]:
    """Write the days of a log that a folder lacks, and return the files that are new."""
    needs = f"An export by day needs a folder that can be written to: {out} cannot"
    with raising(DataError, needs, fix="Make room there, or name another."):
        out.mkdir(parents=True, exist_ok=True)
    found = []
    for day in _days(data_dir / LOG_FILE):
        since = _EPOCH + timedelta(days=day)
        path = out / f"{since:%Y-%m-%d}.parquet"
        if not path.exists():
            bounds = Bounds(since, since + timedelta(days=1))
            found.append(export(data_dir, path, "parquet", bounds=bounds, progress=progress))
    return found


def _days(log: Path) -> Iterator[int]:
    """Yield the days of a log, counted from 1970, on which nothing waits for rewards any more."""
    with one_moment_of(log) as connection:

        def ask(query: str, *values: int) -> Any:
            rows: Any = connection.execute(query, values).fetchall()
            return rows[0][0] if rows else None

        first = ask(_FIRST)
        now = max(ask(f"SELECT max(at) FROM {table}") or 0 for table in ("decisions", "ticks"))
        waiting = ask(_OPEN, now)
    if first is not None:
        end = now if waiting is None else min(now, waiting)
        yield from range(first // _DAY, end // _DAY)
