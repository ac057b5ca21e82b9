"""The command `forget`: a subject leaves the log, the archive and the training data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from fastbandit.cli.options import counted, print_either, read_service, service_options
from fastbandit.errors import SettingError
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.forgetting import forget


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
    if config.log.url:
        raise SettingError(
            "Forgetting is of a log in a file: that of these settings is in PostgreSQL (log.url). "
            "Delete the subject's context there: UPDATE decisions SET context = '[]', subject = "
            "NULL WHERE subject = …, and remove the folder history/ of each learner."
        )
    folder = Path(config.server.data_dir)
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
        lines.append(f"Copies from an upgrade still hold it, delete them: {', '.join(made.copies)}")
    print_either(as_json, asdict(made), *lines, made.receipt)
