"""The command `backup`: a service's log and snapshots, copied while it runs."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.data_folder import data_dir_of, print_backup
from fastbandit.cli.options import service_options
from fastbandit.progress import progress_bar
from fastbandit.storage.backups import back_up


@click.command("backup")
@click.argument("target", type=click.Path(path_type=Path))
@service_options
def command(target: Path, *, path: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Copy the log, the current snapshot and the keys into the new folder TARGET.

    The service may run meanwhile: the copy is of one moment.
    """
    folder = data_dir_of(path, data_dir)
    with progress_bar("Backing up") as progress:
        made = back_up(folder, target, progress=progress)
    print_backup(made, as_json, verb="Backed up")
