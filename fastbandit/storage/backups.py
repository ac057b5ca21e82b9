"""A copy of all that a service knows, made while it runs, that vouches for each of its files.

The snapshots are copied before the log: so no snapshot knows of an event that the log lacks. The
archive is copied after it: so a day that leaves the log meanwhile is there, or in both.
A backup and a restored data folder are written beside their place and then renamed: they are
there whole, or not at all.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import apsw

from fastbandit.errors import DataError, SnapshotError
from fastbandit.files import atomic
from fastbandit.files.manifest import BACKUP, MANIFEST, read_manifest, write_json, write_manifest
from fastbandit.files.private import privately
from fastbandit.progress import Progress, silent
from fastbandit.storage.archive import Archive
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.log_reader import check_integrity, one_moment_of
from fastbandit.storage.snapshot_store import LOG_NAME, SnapshotStore
from fastbandit.storage.snapshot_version import DAMAGE_REPORTS
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.standing_requests import DELETION_FILE, RESET_FILE

FORMAT = 1
KEYS_FILE, DECIDES_FILE, PERSONALIZER_FILE = "keys.json", "decides.json", "personalizer.json"
SNAPSHOTS, HISTORY, ARCHIVE = "snapshots", "history", "archive"
_TABLES = ("decisions", "rewards", "changes", "ticks")
_COUNTS = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in _TABLES)
_PAGES = 2_000
_PIECE = 1 << 20
_TRIES = 3


@dataclass(frozen=True)
class Backup:
    """What a backup holds: how many events of each kind, which version, and its size."""

    folder: Path
    counts: dict[str, int]
    version: int | None
    files: int
    bytes: int


def back_up(data_dir: Path, target: Path, *, progress: Progress = silent) -> Backup:
    """Copy the log with its archive, the current snapshot, its parent and its training data, the
    keys and who decides into a folder.
    """
    if target.exists():
        raise DataError(
            f"A backup needs a folder of its own: {target} is there already. Name another, for "
            f"example with the date."
        )
    with _drafting(target) as draft:
        progress(0, 100, "Copying snapshots")
        for name in (KEYS_FILE, DECIDES_FILE, PERSONALIZER_FILE, RESET_FILE, DELETION_FILE):
            with suppress(FileNotFoundError):  # a request goes once it is done, as versions tell
                _copy(data_dir / name, draft / name)
        version = _copy_snapshots(data_dir / SNAPSHOTS, draft / SNAPSHOTS)
        for path in HistoryFiles(data_dir / HISTORY).files():
            with suppress(FileNotFoundError):  # merged meanwhile: it is made again from the log
                _copy(path, draft / path.relative_to(data_dir))
        counts = _copy_log(data_dir / LOG_FILE, draft / LOG_FILE, progress)
        _copy_archive(data_dir / ARCHIVE, draft / ARCHIVE)
        progress(90, 100, "Checking")
        check_integrity(draft / LOG_FILE)
        files = {}
        for path in _files_in(draft):
            entry = {"bytes": path.stat().st_size, "sha256": atomic.file_digest(path)}
            files[path.relative_to(draft).as_posix()] = entry
        at = datetime.now(UTC).isoformat()
        notes = {"at": at, "version": version, "counts": counts, "files": files}
        write_manifest(draft / MANIFEST, notes, kind=BACKUP, format=FORMAT)
        atomic.sync_folders(draft)
    return _to_backup(target, notes)


def restore(backup: Path, data_dir: Path, *, progress: Progress = silent) -> Backup:
    """Make a data folder of a backup, after all of it was checked; else leave none."""
    manifest = read_backup(backup)
    if data_dir.exists() and (not data_dir.is_dir() or any(data_dir.iterdir())):
        raise DataError(
            f"A restore needs a folder that is empty, or not there yet: {data_dir} is neither. "
            f"Name another, or move that one away."
        )
    names = list(manifest["files"])
    lost = next((name for name in names if not (backup / name).is_file()), None)
    if lost is not None:
        raise DataError(
            f"A backup needs all of its files: {backup / lost} is not there. Use another backup."
        )
    with _drafting(data_dir) as draft:
        for done, name in enumerate(names):
            progress(done, len(names) + 1, "Copying")
            entry = manifest["files"][name]
            size, digest = _copy(backup / name, draft / name)
            if (size, digest) != (entry["bytes"], entry["sha256"]):
                raise DataError(
                    f"A backup needs its files as they were written: {backup / name} should have "
                    f"{entry['bytes']} bytes with SHA-256 {entry['sha256'][:12]}…, and has {size} "
                    f"bytes with {digest[:12]}…. Use another backup."
                )
        progress(len(names), len(names) + 1, "Checking")
        check_integrity(draft / LOG_FILE)
        found, wanted = _counts_in(draft / LOG_FILE), manifest["counts"]
        if found != wanted:
            raise DataError(
                f"A restored log needs to hold what was backed up, {wanted}: it holds {found}. Use "
                f"another backup."
            )
        if manifest["version"] is not None:
            SnapshotStore(draft / SNAPSHOTS).get(manifest["version"])
        atomic.sync_folders(draft)
    return _to_backup(data_dir, manifest)


def read_backup(folder: Path) -> dict[str, Any]:
    """Return the manifest of a backup, or say why it cannot be trusted."""
    try:
        manifest = read_manifest(folder / MANIFEST, kind=BACKUP, format=FORMAT)
    except SnapshotError as error:
        raise DataError(
            f"A backup needs a folder that `fastbandit backup` wrote: {error}"
        ) from error
    paths = [PurePosixPath(name) for name in manifest["files"]]
    if any(path.is_absolute() or ".." in path.parts for path in paths):
        raise DataError(
            f"A backup needs to be as it was written: {folder} names files outside of it. Use "
            f"another backup."
        )
    return manifest


def _copy_log(log: Path, copy: Path, progress: Progress) -> dict[str, int]:
    """Copy one moment of a log; return how many events of each kind it holds."""
    with one_moment_of(log) as source, closing(connect(copy)) as target:
        try:
            with target.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(_PAGES)
                    done = backup.page_count - backup.remaining
                    progress(90 * done // max(backup.page_count, 1), 100, "Copying the log")
            target.execute("PRAGMA journal_mode = DELETE").fetchall()  # no files beside it
        except apsw.FullError as error:
            raise OSError(errno.ENOSPC, str(error)) from error
    atomic.sync_path(copy)
    return _counts_in(copy)


def _copy_archive(source: Path, target: Path) -> None:
    """Copy the days that are whole, and none that is deleted meanwhile."""
    for day in Archive(source).days():
        try:
            for path in (one for one in _files_in(source / day) if one.suffix != ".part"):
                _copy(path, target / day / path.name)
        except FileNotFoundError:
            shutil.rmtree(target / day, ignore_errors=True)


def _counts_in(log: Path) -> dict[str, int]:
    with one_moment_of(log) as connection:
        counts: Any = connection.execute(_COUNTS).fetchall()
    return dict(zip(_TABLES, counts[0], strict=True))


def _copy_snapshots(source: Path, target: Path) -> int | None:
    """Copy the current version, its parent and the reports of refused ones."""
    store = SnapshotStore(source)
    for _ in range(_TRIES):
        current = store.current()
        if current is None:
            return None
        wanted = {current.version, current.parent} & set(store.versions())
        try:
            for path in [path for one in wanted for path in _files_in(source / f"{one:06d}")]:
                _copy(path, target / path.relative_to(source))
        except FileNotFoundError:  # newer ones came meanwhile, and this one went
            shutil.rmtree(target, ignore_errors=True)
            continue
        for report in (source / "refused").glob("[0-9]*.json"):
            _copy(report, target / "refused" / report.name)
        if (source / LOG_NAME).exists():
            _copy(source / LOG_NAME, target / LOG_NAME)
        for report in source.glob(DAMAGE_REPORTS):
            _copy(report, target / report.name)
        write_json(target / store.pointer.name, {"version": current.version})
        return current.version
    raise DataError(
        f"A backup needs snapshots that stay while they are copied: those in {source} went "
        f"{_TRIES} times. Keep more of them (learn.keep), or try again."
    )


def _copy(source: Path, target: Path) -> tuple[int, str]:
    """Copy and sync a file; return its size and SHA-256."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as file:
        return atomic.write_synced(target, iter(lambda: file.read(_PIECE), b""))


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@contextmanager
def _drafting(target: Path) -> Iterator[Path]:
    """Yield a folder that only this user can read, with all that is written meanwhile.

    It then takes the name of the target.
    """
    needs = f"A copy needs a place that can be written to: {target.absolute()} cannot"
    fix = "Make room there, or name another folder."
    with (
        atomic.raising(DataError, needs, fix=fix, is_typed=True),
        privately(),
        atomic.making_folder(target.absolute()) as draft,
    ):
        yield draft


def _to_backup(folder: Path, notes: dict[str, Any]) -> Backup:
    sizes = [int(entry["bytes"]) for entry in notes["files"].values()]
    return Backup(folder, notes["counts"], notes["version"], len(sizes), sum(sizes))
