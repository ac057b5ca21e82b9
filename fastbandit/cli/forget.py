"""The command `forget`: a subject leaves the log, the archive and the training data."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from fastbandit.cli.options import counted, print_either, read_service, service_options
from fastbandit.files.private import write_privately
from fastbandit.settings.service import Config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.forgetting import Forgotten, forget
from fastbandit.storage.shared import service_store


@click.command("forget")
@click.option("--subject", required=True, help="Whom the decisions were about.")
@service_options
def command(*, subject: str, path: Path | None, data_dir: Path | None, as_json: bool) -> None:
    """Remove what a service knows of one subject, and write a receipt.

    The service may run meanwhile. Decisions and rewards keep their numbers and lose their
    content; later versions, exports and backups hold nothing of it. The receipt says how much was
    removed, and which versions learned from it before; it does not name the subject.
    """
    config = read_service(path, data_dir)
    write_privately()
    folder = Path(config.server.data_dir)
    if config.log.url:
        made = _forget_shared(config, folder, subject)
    else:
        made = forget(folder, folder / LOG_FILE, subject, keep=config.learn.keep)
    lines = [
        f"Forgotten: {counted(made.decisions, 'decision')} and {counted(made.rewards, 'reward')} "
        f"in the log, {made.archived_decisions:,} and {made.archived_rewards:,} in the archive, "
        f"{counted(made.interactions, 'interaction')} of the training data.",
    ]
    if made.versions:
        versions = ", ".join(map(str, made.versions))
        lines.append(f"Versions that learned from it: {versions}, until {made.until}.")
    if made.copies:
        lines.append(f"These may still hold it, delete them: {', '.join(made.copies)}")
    lines += [f"Not reached from here: {one}." for one in made.unreached]
    print_either(as_json, asdict(made), *lines, made.receipt)


def _forget_shared(config: Config, folder: Path, subject: str) -> Forgotten:
    """Forget in a log that machines share, and in the folder of this one."""
    from fastbandit.storage.shared_archive import SharedArchive
    from fastbandit.storage.shared_forgetting import forget_shared

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    url, archive = config.log.url, SharedArchive(config.log.url, config.snapshots.url, folder)
    with closing(service_store(config)) as store:
        return forget_shared(url, store, archive, folder, subject, keep=config.learn.keep)
