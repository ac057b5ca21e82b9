"""The command `copy-log`: a log that services share, copied into a data folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from fastbandit.cli import data_folder as data_folder  # says which packages are missing
from fastbandit.cli.options import config_option, json_option, print_either, read_service
from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar
from fastbandit.storage.local_copy import copy_log
from fastbandit.storage.shared import open_log


@click.command("copy-log")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The data folder.")
@click.option("--url", help="The URL of PostgreSQL, in place of that of the settings.")
@config_option
@json_option
def command(out: Path, url: str | None, path: Path | None, *, as_json: bool) -> None:
    """Copy the log that services share in PostgreSQL into a data folder.

    Events keep their numbers and times. Run it again to copy what came since. All commands that
    read a log take the folder, also on a machine that does not reach the database.
    """
    url = url or read_service(path).log.url
    if not url:
        raise SettingError(
            "A copy needs a log in PostgreSQL: got neither --url nor a setting log.url. Name one; "
            "the log of a data folder is copied by `fastbandit backup`."
        )
    with closing(open_log(url, out, is_reader=True)) as source, progress_bar("Copying") as progress:
        made = copy_log(source, out, progress=progress)
    found = {"file": str(made.file), "events": made.events, "last": made.last}
    copied = f"{made.events:,} events copied, up to number {made.last:,}"
    print_either(as_json, found, copied, str(made.file))
