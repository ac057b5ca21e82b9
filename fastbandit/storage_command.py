"""The commands `backup`, `restore`, `export` and `copy-log`: a service's data as files to keep."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fastbandit.adapters.onnx_command import ONNX_OPTION, run_onnx
from fastbandit.config import find_config, read_config
from fastbandit.errors import MissingExtraError, SettingError
from fastbandit.progress import Progress, progress_bar

try:
    from fastbandit.storage.backups import Backup, back_up, restore
    from fastbandit.storage.copying import copy_log
    from fastbandit.storage.exports import FORMATS, export, format_of
    from fastbandit.storage.joined_rows import Bounds
    from fastbandit.storage.local_copy import local_copy
    from fastbandit.storage.log_file import LOG_FILE
    from fastbandit.storage.shared import open_log
except ModuleNotFoundError as error:
    if error.name not in {"apsw", "msgspec"}:
        raise
    raise MissingExtraError(
        f"The data of a service needs {error.name}, which is not installed. Run: "
        f"pip install 'fastbandit[serve]'"
    ) from error

_CONFIG = click.option(
    "--config", type=click.Path(path_type=Path), help="The file of the service's settings."
)
_DATA_DIR = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="The folder of the log and the snapshots."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command("backup")
@click.argument("target", type=click.Path(path_type=Path))
@_CONFIG
@_DATA_DIR
@_JSON
def backup_command(target: Path, config: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Copy the log, the current snapshot and the keys into the new folder TARGET.

    The service may run meanwhile: the copy is of one moment.
    """
    folder = _data_dir(config, data_dir)
    with progress_bar("Backing up") as progress:
        made = back_up(folder, target, progress=progress)
    _tell(made, as_json, verb="Backed up")


@click.command("restore")
@click.argument("backup", type=click.Path(path_type=Path))
@_CONFIG
@_DATA_DIR
@_JSON
def restore_command(
    backup: Path, config: Path | None, data_dir: Path | None, as_json: bool
) -> None:
    """Make an empty data folder of the folder BACKUP, after every file of it was checked."""
    folder = _data_dir(config, data_dir)
    with progress_bar("Restoring") as progress:
        made = restore(backup, folder, progress=progress)
    _tell(made, as_json, verb="Restored")


def _bound(_: click.Context, option: click.Parameter, text: str | None) -> int | datetime | None:
    """Read an event number, or a time (in UTC unless it says otherwise)."""
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingError(
            f"--{option.name} needs an event number, or a time such as 2026-01-31T12:00: got "
            f"{text!r}. Give one of these."
        ) from error
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@click.command("export")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="By the file's name if left out; DSJSON lines are for Vowpal Wabbit.",
)
@click.option("--replace", "is_replaced", is_flag=True, help="Write over a file that is there.")
@click.option("--since", callback=_bound, help="The first event number, or time, to write.")
@click.option("--until", callback=_bound, help="The event number, or time, to end before.")
@ONNX_OPTION
@_CONFIG
@_DATA_DIR
@_JSON
def export_command(
    out: Path,
    format: str | None,
    is_replaced: bool,
    since: int | datetime | None,
    until: int | datetime | None,
    snapshot: Path | None,
    config: Path | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Write decisions with their rewards, one row each.

    The service may run meanwhile. A reward that is still waited for is empty; DSJSON leaves
    such decisions out, and those that do not say how likely their arm was. With --onnx a saved
    bandit is written instead, for ONNX Runtime and faiss.
    """
    if snapshot is not None:
        run_onnx(snapshot, out, as_json=as_json)
        return
    wanted = format_of(out, format)
    if out.exists() and not is_replaced:
        raise SettingError(
            f"An export needs a file that is not there yet: {out} is. Name another, or write over "
            f"it with --replace."
        )
    bounds = Bounds() if since is None else Bounds(since=since)
    bounds = bounds if until is None else Bounds(since=bounds.since, until=until)
    with progress_bar("Exporting") as progress:
        folder = log_folder(config, data_dir, progress=progress)
        made = export(folder, out, wanted, bounds=bounds, progress=progress)
    if as_json:
        _print({"file": str(made.file), "rows": made.rows, "left_out": made.left_out})
        return
    click.echo(f"{made.rows:,} {'decision' if made.rows == 1 else 'decisions'}")
    for why, count in made.left_out.items():
        click.echo(f"{count:,} left out: {why}")
    click.echo(str(made.file))


@click.command("copy-log")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The data folder.")
@click.option("--url", help="The URL of PostgreSQL, in place of that of the settings.")
@_CONFIG
@_JSON
def copy_log_command(out: Path, url: str | None, config: Path | None, as_json: bool) -> None:
    """Copy the log that services share in PostgreSQL into a data folder.

    Events keep their numbers and times. Run it again to copy what came since. All commands that
    read a log take the folder, also on a machine that does not reach the database.
    """
    url = url or read_config(find_config(config)).log.url
    if not url:
        raise SettingError(
            "A copy needs a log in PostgreSQL: got neither --url nor a setting log.url. Name one; "
            "the log of a data folder is copied by `fastbandit backup`."
        )
    with closing(open_log(url, out, is_reader=True)) as source, progress_bar("Copying") as progress:
        made = copy_log(source, out, progress=progress)
    if as_json:
        _print({"file": str(made.file), "events": made.events, "last": made.last})
        return
    click.echo(f"{made.events:,} events copied, up to number {made.last:,}")
    click.echo(str(made.file))


def log_folder(config: Path | None, data_dir: Path | None, *, progress: Progress) -> Path:
    """Give the folder of the log to read: where it is shared, that of a copy, up to date.

    A folder that is named, and holds a log, is read as it is.
    """
    if data_dir is not None and (data_dir / LOG_FILE).exists():
        return data_dir
    named = None if data_dir is None else str(data_dir)
    told = read_config(find_config(config), overrides={"server.data_dir": named})
    folder = Path(told.server.data_dir)
    if not told.log.url:
        return folder
    return local_copy(told.log.url, folder, tell=_warn, progress=progress).parent


def _data_dir(config: Path | None, data_dir: Path | None) -> Path:
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


def _warn(note: str) -> None:
    click.secho(note, fg="yellow", err=True)


def _tell(made: Backup, as_json: bool, *, verb: str) -> None:
    if as_json:
        told = {"counts": made.counts, "version": made.version, "bytes": made.bytes}
        _print({"folder": str(made.folder), **told, "files": made.files})
        return
    version = "no snapshot" if made.version is None else f"version {made.version}"
    click.echo(
        f"{verb} {made.counts['decisions']:,} decisions, {made.counts['rewards']:,} rewards and "
        f"{version}: {made.bytes / 1e6:,.1f} MB in "
        f"{made.files} {'file' if made.files == 1 else 'files'}"
    )
    click.echo(str(made.folder))


def _print(told: dict[str, Any]) -> None:
    click.echo(json.dumps(told, indent=1))
