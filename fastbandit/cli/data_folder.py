"""What commands on a service's data share: which folder is meant, and how it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastbandit.errors import SettingError
from fastbandit.packages import needed
from fastbandit.progress import Progress
from fastbandit.settings.service_files import find_config, read_config
from fastbandit.storage.log_file import LOG_FILE

if TYPE_CHECKING:
    from fastbandit.storage.backups import Backup

for _package in ("apsw", "msgspec"):
    needed(_package, what="The data of a service")

config_option = click.option(
    "--config", type=click.Path(path_type=Path), help="The file of the service's settings."
)
data_dir_option = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="The folder of the log and the snapshots."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def log_folder(config: Path | None, data_dir: Path | None, *, progress: Progress) -> Path:
    """Give the folder of the log to read: where it is shared, that of a copy, up to date.

    A folder that is named, and holds a log, is read as it is.
    """
    from fastbandit.storage.local_copy import local_copy

    if data_dir is not None and (data_dir / LOG_FILE).exists():
        return data_dir
    named = None if data_dir is None else str(data_dir)
    told = read_config(find_config(config), overrides={"server.data_dir": named})
    folder = Path(told.server.data_dir)
    if not told.log.url:
        return folder
    return local_copy(told.log.url, folder, tell=warn, progress=progress).parent


def data_dir_of(config: Path | None, data_dir: Path | None) -> Path:
    """Return the data folder of a service whose log is a file."""
    if data_dir is not None:
        return data_dir
    told = read_config(find_config(config))
    if told.log.url:
        raise SettingError(
            "A backup is of a log in a file: that of these settings is in PostgreSQL (log.url). "
            "Back up the database with its own tools, such as pg_basebackup and an archive, and "
            "the snapshots with those of their store. To keep only what happened, run `fastbandit "
            "copy-log --out FOLDER`, then this command with --data-dir FOLDER."
        )
    return Path(told.server.data_dir)


def warn(note: str) -> None:
    """Print a note in yellow, on stderr."""
    click.secho(note, fg="yellow", err=True)


def tell_backup(made: Backup, as_json: bool, *, verb: str) -> None:
    """Print what was backed up or restored."""
    if as_json:
        told = {"counts": made.counts, "version": made.version, "bytes": made.bytes}
        print_json({"folder": str(made.folder), **told, "files": made.files})
        return
    version = "no snapshot" if made.version is None else f"version {made.version}"
    click.echo(
        f"{verb} {made.counts['decisions']:,} decisions, {made.counts['rewards']:,} rewards and "
        f"{version}: {made.bytes / 1e6:,.1f} MB in "
        f"{made.files} {'file' if made.files == 1 else 'files'}"
    )
    click.echo(str(made.folder))


def print_json(told: dict[str, Any]) -> None:
    """Print values as JSON."""
    click.echo(json.dumps(told, indent=1))
