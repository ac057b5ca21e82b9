"""A data folder with a few events, and commands run on it in this process."""

from __future__ import annotations

from pathlib import Path

from click import Command
from click.testing import CliRunner, Result

from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.sqlite_log import SqliteLog


def fill(folder: Path) -> Path:
    """Write two decisions and a reward into the log of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    log = SqliteLog(folder / LOG_FILE)
    for id in ("one", "two"):
        log.append([DecisionMade(id, [0.5], ["a"], [0.1], 1, 0, 0, 10)])
    log.append([RewardCame("one", 1.0)])
    log.close()
    return folder


def invoke(command: Command, *args: object) -> Result:
    """Run a command; an error of the project is raised."""
    return CliRunner().invoke(command, [str(arg) for arg in args], catch_exceptions=False)
