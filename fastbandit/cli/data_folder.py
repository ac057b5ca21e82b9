"""Which folder a command on a service's data means, and how it prints what was copied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fastbandit.cli.options import counted, print_either, read_service, warn
from fastbandit.errors import SettingError
from fastbandit.packages import needed
from fastbandit.progress import Progress
from fastbandit.storage.data_folder import LOG_FILE

if TYPE_CHECKING:
    from fastbandit.storage.backups import Backup

for _package in ("apsw", "msgspec"):
    needed(_package, what="The data of a service")


def log_folder(path: Path | None, data_dir: Path | None, *, progress: Progress) -> Path:
    """Return the folder of the log to read: where it is shared, that of a copy, up to date.

    A folder that is named, and holds a log, is read as it is.
    """
    from fastbandit.storage.local_copy import local_copy

    if data_dir is not None and (data_dir / LOG_FILE).exists():
        return data_dir
    config = read_service(path, data_dir)
    folder = Path(config.server.data_dir)
    if not config.log.url:
        return folder
    return local_copy(config.log.url, folder, warn=warn, progress=progress).parent


def data_dir_of(path: Path | None, data_dir: Path | None) -> Path:
    """Return the data folder of a service whose log is a file."""
    if data_dir is not None:
        return data_dir
    config = read_service(path)
    if config.log.url:
        raise SettingError(
            "A backup is of a log in a file: that of these settings is in PostgreSQL (log.url). "
            "Back up the database with its own tools, such as pg_basebackup and an archive, and "
            "the snapshots with those of their store. To copy only what happened, run `fastbandit "
            "copy-log --out FOLDER`, then this command with --data-dir FOLDER."
        )
    return Path(config.server.data_dir)


def print_backup(made: Backup, as_json: bool, *, verb: str) -> None:
    folder = str(made.folder)
    report = {"counts": made.counts, "version": made.version, "bytes": made.bytes}
    version = "no snapshot" if made.version is None else f"version {made.version}"
    print_either(
        as_json,
        {"folder": folder, **report, "files": made.files},
        f"{verb} {made.counts['decisions']:,} decisions, {made.counts['rewards']:,} rewards and "
        f"{version}: {made.bytes / 1e6:,.1f} MB in {counted(made.files, 'file')}",
        folder,
    )
