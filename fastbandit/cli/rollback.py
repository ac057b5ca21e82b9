"""The command `rollback`: let a service decide by an earlier snapshot."""

from __future__ import annotations

from pathlib import Path

import click

from fastbandit.cli.options import config_option, data_dir_option
from fastbandit.cli.snapshots import open_snapshots


@click.command("rollback")
@click.argument("version", type=int, required=False)
@config_option
@data_dir_option
def command(version: int | None, path: Path | None, data_dir: Path | None) -> None:
    """Serve VERSION again, or the one that the current version came from.

    The service follows within a second. The learner goes on from there once as many rewards
    have come again as a new version needs.
    """
    from fastbandit.runtime.servable import servable

    snapshot = open_snapshots(path, data_dir).rollback(version, check=servable)
    click.echo(f"Version {snapshot.version} is served now.")
