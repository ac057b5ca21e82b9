"""The command `restore`: a backup as a new data folder."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.data_folder import data_dir_of, print_backup
from fastbandit.cli.options import service_options
from fastbandit.progress import progress_bar
from fastbandit.storage.backups import restore


@click.command("restore")
@click.argument("backup", type=click.Path(path_type=Path))
@service_options
def command(backup: Path, *, path: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Make an empty data folder of the folder BACKUP, after every file of it was checked."""
    folder = data_dir_of(path, data_dir)
    with progress_bar("Restoring") as progress:
        made = restore(backup, folder, progress=progress)
    print_backup(made, as_json, verb="Restored")
