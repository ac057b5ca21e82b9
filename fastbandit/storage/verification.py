"""Reads all of a log, its archive and its snapshots, and names what is not as it was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from msgspec import MsgspecError
from numpy.typing import NDArray

from fastbandit.errors import FastbanditError, LogError
from fastbandit.progress import Progress, silent
from fastbandit.storage import sqlite_sql as sql
from fastbandit.storage.archive import Archive
from fastbandit.storage.event_rows import ARCHIVED, readers
from fastbandit.storage.log_reader import one_moment_of
from fastbandit.storage.log_schema import open_for_reading
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import check_hashes, read_snapshot
from fastbandit.storage.sqlite_files import RESERVED, has_checksums
from fastbandit.storage.sqlite_log import found_in

_NAMES = ("decisions", "rewards", "changes", "ticks")
_UNREADABLE = (apsw.Error, LogError, MsgspecError, TypeError, ValueError)
_AT_ONCE = 4096  # pages
_MOST = 100  # findings of SQLite itself


@dataclass(frozen=True)
class Damage:
    """What is wrong, and where: a file or folder, and a page, some events or a part of it."""

    path: str
    where: str
    what: str


def verify_log(path: Path, *, progress: Progress = silent) -> Iterator[Damage]:
    """Read each page and each event of a log, while it may be written; yield what is damaged."""
    try:
        if has_checksums(path):
            yield from _damaged_pages(path, progress)
        with one_moment_of(path) as connection:
            open_for_reading(connection, path)
            for name, select, to_event in zip(
                _NAMES, sql.KINDS, readers(found_in(connection)), strict=True
            ):
                progress(0, 1, name)
                yield from _damaged_events(connection, path, name, select, to_event)
            yield from _as_sqlite_says(connection, path)
    except (FastbanditError, OSError) as error:
        yield Damage(str(path), "the file", " ".join(str(error).split()))


def verify_archive(folder: Path, *, progress: Progress = silent) -> Iterator[Damage]:
    """Read each event of the days in a folder; yield the files that are damaged."""
    archive = Archive(folder)
    for day in archive.days():
        progress(0, 1, day)
        for kind, own in ARCHIVED.items():
            path = folder / day / f"{kind}.parquet"
            try:
                archive.bounds(day)
                for row in archive.rows(day, kind):
                    own.read(row)
            except (FastbanditError, MsgspecError, TypeError, ValueError) as error:
                if path.parent.exists():  # or it was deleted meanwhile
                    yield Damage(str(path), "the file", " ".join(str(error).split()))


def verify_snapshots(folder: Path, *, progress: Progress = silent) -> Iterator[Damage]:
    """Read each version in a folder; yield what is damaged."""
    versions = SnapshotStore(folder).versions()
    for done, version in enumerate(versions):
        progress(done, len(versions), f"version {version}")
        own = folder / f"{version:06d}"
        try:
            check_hashes(read_snapshot(own, check=True))
        except (FastbanditError, OSError, ValueError) as error:
            if own.exists():  # or it was pruned meanwhile
                yield Damage(str(own), "the version", " ".join(str(error).split()))


def checksum_of(pages: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the checksums of pages, a row of words each, as SQLite's cksumvfs works them out."""
    first = np.zeros(len(pages), dtype=np.uint32)
    second = first.copy()
    for words in pages.T.reshape(-1, 2, len(pages)):
        first += words[0] + second
        second += words[1] + first
    return np.stack([first, second], axis=1)


def _damaged_pages(path: Path, progress: Progress) -> Iterator[Damage]:
    """Yield pages whose checksum is wrong, also when they are read again."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
        if not 512 <= size <= 32768 or size & (size - 1):
            yield Damage(str(path), "page 1", "names no size of pages")
            return
        count = os.fstat(file.fileno()).st_size // size
        for first in range(0, count, _AT_ONCE):
            progress(first, count, "pages")
            for page in _wrong(_read(file.fileno(), first, min(_AT_ONCE, count - first), size)):
                again = _read(file.fileno(), first + int(page), 1, size)  # or it was just written
                if len(_wrong(again)):
                    yield Damage(str(path), f"page {first + page + 1}", "has a wrong checksum")


def _read(file: int, first: int, count: int, size: int) -> NDArray[np.uint32]:
    content = os.pread(file, count * size, first * size)
    return np.frombuffer(content, dtype="<u4").reshape(-1, size // 4)


def _wrong(pages: NDArray[np.uint32]) -> NDArray[np.intp]:
    words = RESERVED // 4
    return np.flatnonzero((checksum_of(pages[:, :-words]) != pages[:, -words:]).any(axis=1))


def _damaged_events(
    connection: apsw.Connection, path: Path, name: str, select: str, to_event: Any
) -> Iterator[Damage]:
    """Yield the events of a kind that cannot be read, or whose time is before the last one's."""
    seq = at = 0
    rows = connection.execute(f"{select} ORDER BY seq")
    try:
        for row in rows:
            seq, before, at = row[-2], at, row[-1]
            try:
                to_event(row)
            except _UNREADABLE as error:
                yield Damage(str(path), f"{name}, event {seq}", f"cannot be read ({error})")
            if at < before:
                yield Damage(str(path), f"{name}, event {seq}", "is of an earlier time")
    except _UNREADABLE as error:
        last = _first_readable_from_the_end(connection, select)
        until = "the last" if last is None else f"{last - 1}"
        yield Damage(str(path), f"{name}, events {seq + 1} to {until}", f"{error}")


def _first_readable_from_the_end(connection: apsw.Connection, select: str) -> int | None:
    """Return the first event after those that cannot be read, None where there is none."""
    found = None
    try:
        for row in connection.execute(f"{select} ORDER BY seq DESC"):
            found = row[-2]
    except _UNREADABLE:
        pass
    return found


def _as_sqlite_says(connection: apsw.Connection, path: Path) -> Iterator[Damage]:
    try:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MOST})")]
    except apsw.Error as error:
        found = [str(error)]
    yield from (Damage(str(path), "the file", one) for one in found if one != "ok")
