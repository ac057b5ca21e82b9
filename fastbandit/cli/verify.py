"""The command `verify`: is all of a service's log, archive and snapshots as it was written?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from fastbandit.cli.data_folder import data_dir_of
from fastbandit.cli.options import service_options
from fastbandit.progress import progress_bar
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.sqlite_files import has_checksums
from fastbandit.storage.verification import Damage, verify_archive, verify_log, verify_snapshots


@click.command("verify")
@service_options
def command(*, path: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Read all of the log, its archive and the snapshots, and name what is damaged.

    The service may run meanwhile. Ends with 1 if anything is damaged.
    """
    folder = data_dir_of(path, data_dir)
    log, found = folder / LOG_FILE, list[Damage]()
    with progress_bar("Verifying") as progress:
        if log.exists():
            found += verify_log(log, progress=progress)
        found += verify_archive(folder / "archive", progress=progress)
        found += verify_snapshots(folder / "snapshots", progress=progress)
    looked = {"log": log.exists(), "checksums": log.exists() and has_checksums(log)}
    if as_json:
        click.echo(json.dumps({**looked, "damage": [asdict(one) for one in found]}, indent=1))
    else:
        for one in found:
            click.echo(f"{one.path}: {one.where}: {one.what}")
        pages = "" if looked["checksums"] else ", whose pages carry no checksums"
        what = f"the log{pages}, and the snapshots" if looked["log"] else "the snapshots"
        click.echo(f"{len(found)} damaged." if found else f"Nothing is damaged: {what}.")
    if found:
        raise click.exceptions.Exit(1)
