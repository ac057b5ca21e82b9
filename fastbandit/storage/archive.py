"""What left the log, in Parquet: a folder for each day, a file for each kind of events.

The columns are those of the log, in its order; what is JSON there is JSON here. A day is written
beside its place and renamed, so it is there whole or not at all. Pages carry checksums.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import merge
from pathlib import Path
from typing import Any

from fastbandit.errors import DataError
from fastbandit.files.atomic import making_folder, raising, replacing, sync_file, sync_folders
from fastbandit.files.manifest import write_json
from fastbandit.packages import needed
from fastbandit.storage.event_rows import ARCHIVED
from fastbandit.storage.events import Event

DAY_FILE = "day.json"
_WHAT = "An archive of what left the log"
_GROUP = 5_000

Rows = Iterable[Sequence[Any]]


class Archive:
    """Days of a log in a folder, named as 2026-01-31."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def days(self) -> list[str]:
        """Return the days that are here, in order."""
        found = (path.parent.name for path in self.folder.glob(f"*/{DAY_FILE}"))
        return sorted(name for name in found if not name.startswith("."))  # else it is a draft

    def remove_drafts(self) -> None:
        """Remove what a process left that died while it wrote a day; nobody else writes."""
        for path in self.folder.glob(".*.part"):
            shutil.rmtree(path)

    @property
    def last(self) -> int:
        """The number of the last event that is here, 0 where there is none."""
        days = self.days()
        return self.bounds(days[-1])[1] if days else 0

    def remove_until(self, seq: int) -> None:
        """Remove the days that hold no event after a number."""
        for day in self.days():
            if self.bounds(day)[1] <= seq:
                shutil.rmtree((self.folder / day).rename(self.folder / f".{day}.part"))

    def write_day(self, day: str, bounds: tuple[int, int], rows: Callable[[str], Rows]) -> None:
        """Write the events of a day, those of the numbers within bounds; `rows` reads a kind."""
        with self._reporting(), making_folder(self.folder / day) as draft:
            for kind in ARCHIVED:
                _write(draft / f"{kind}.parquet", kind, rows(kind))
            write_json(draft / DAY_FILE, {"first": bounds[0], "last": bounds[1]})
            sync_folders(draft)

    def events(self, *, after: int, until: float) -> Iterator[Event]:
        """Yield the events after a number and up to another, in order."""
        for day in self.days():
            first, last = self.bounds(day)
            if last > after and first <= until:
                kinds = [self._events(day, kind) for kind in ARCHIVED]
                for event in merge(*kinds, key=lambda event: event.seq):
                    if after < event.seq <= until:
                        yield event

    def rewrite(self, day: str, kind: str, changed: Mapping[int, Mapping[str, Any]]) -> None:
        """Write other rows of a kind on a day, by the numbers of their events."""
        path, names = self.folder / day / f"{kind}.parquet", [n for n, _ in ARCHIVED[kind].columns]
        others = {seq: [row[name] for name in names] for seq, row in changed.items()}
        with self._reporting(), replacing(path) as beside:
            _write(beside, kind, (others.get(row[-2], row) for row in _read(path)))

    def find(self, day: str, kind: str, column: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the rows of a kind on a day that have one of some values in a column."""
        parquet = needed("pyarrow.parquet", what=_WHAT, extra="evaluation")
        path = self.folder / day / f"{kind}.parquet"
        terms: dict[str, Any] = {"filters": [(column, "in", list(values))]}
        with _readable(path):
            table = parquet.read_table(path, page_checksum_verification=True, **terms)
            found: list[dict[str, Any]] = table.to_pylist()
        return found

    def rows(self, day: str, kind: str) -> Iterator[Sequence[Any]]:
        return _read(self.folder / day / f"{kind}.parquet")

    def _events(self, day: str, kind: str) -> Iterator[Event]:
        to_event = ARCHIVED[kind].read
        return map(to_event, self.rows(day, kind))

    def bounds(self, day: str) -> tuple[int, int]:
        """Return the numbers of the first and the last event of a day."""
        with _readable(self.folder / day):
            notes = json.loads((self.folder / day / DAY_FILE).read_text(encoding="utf-8"))
            return int(notes["first"]), int(notes["last"])

    def _reporting(self) -> Any:
        needs = f"{_WHAT} needs a folder that can be written to: {self.folder} cannot"
        return raising(DataError, needs, fix="Make room there.")


def check_archive() -> None:
    """Raise where Parquet cannot be written."""
    needed("pyarrow.parquet", what=_WHAT, extra="evaluation")


def _write(path: Path, kind: str, rows: Rows) -> None:
    parquet = needed("pyarrow.parquet", what=_WHAT, extra="evaluation")
    pyarrow = needed("pyarrow", what=_WHAT, extra="evaluation")
    types = {"bigint": pyarrow.int64(), "double precision": pyarrow.float64()}
    types |= {"boolean": pyarrow.int64()}
    columns = ARCHIVED[kind].columns
    schema = pyarrow.schema([(name, types.get(kind, pyarrow.string())) for name, kind in columns])
    with path.open("wb") as file:
        terms = {"compression": "zstd", "write_page_checksum": True}
        with parquet.ParquetWriter(file, schema, **terms) as writer:
            waiting: list[Sequence[Any]] = []

            def flush() -> None:
                each = zip(*waiting, strict=True)
                arrays = zip(each, schema, strict=True)
                cells = [pyarrow.array(one, own.type) for one, own in arrays]
                writer.write_batch(pyarrow.record_batch(cells, schema=schema))
                waiting.clear()
                sync_file(file)  # much at once holds up whoever syncs other files

            for row in rows:
                waiting.append(row)
                if len(waiting) >= _GROUP:
                    flush()
            if waiting:
                flush()
        sync_file(file)


def _read(path: Path) -> Iterator[Sequence[Any]]:
    parquet = needed("pyarrow.parquet", what=_WHAT, extra="evaluation")
    with _readable(path), parquet.ParquetFile(path, page_checksum_verification=True) as file:
        for batch in file.iter_batches(batch_size=_GROUP):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what is said of a file that is not as it was written into our error."""
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, RuntimeError) as error:  # and pyarrow's
        raise DataError(
            f"An archive needs to be as it was written: {path} is not ({type(error).__name__}: "
            f"{error}). Restore it from a backup, or move that day away."
        ) from error
