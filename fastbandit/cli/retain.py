"""The command `retain`: old days leave the log of a service, while it runs."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from fastbandit.cli.options import counted, print_either, read_service, service_options, taking
from fastbandit.errors import SettingError
from fastbandit.progress import progress_bar
from fastbandit.settings.service import Config
from fastbandit.storage.archive import check_archive
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.retention import DAY, Left, retain


@dataclass(frozen=True)
class Options:
    """How much stays; see the help of each option."""

    days: int | None
    is_archived: bool | None
    path: Path | None
    data_dir: Path | None
    as_json: bool


@click.command("retain", cls=taking(Options))
@click.option("--days", type=click.IntRange(min=1), help="Days that stay; else log.retain_days.")
@click.option(
    "--archive/--no-archive",
    "is_archived",
    default=None,
    help="Archive what leaves, in Parquet by day, so that learning goes on with it; else "
    "log.archive.",
)
@service_options
def command(options: Options) -> None:
    """Let old days leave the log; the service may run meanwhile.

    Only whole days go that all versions have learned, and none of whose decisions waits for
    rewards. What was stopped half-way is finished when it is run again.
    """
    config = read_service(options.path, options.data_dir)
    days = options.days or config.log.retain_days
    if not days:
        raise SettingError(
            "Retention needs a number of days: got neither --days nor log.retain_days. Name one."
        )
    is_archived = config.log.archive if options.is_archived is None else options.is_archived
    left = _left(config, days, is_archived=is_archived)
    print_either(options.as_json, asdict(left), *_lines(left))


def _left(config: Config, days: int, *, is_archived: bool) -> Left:
    folder = Path(config.server.data_dir)
    if config.log.url:
        today = time.time_ns() // 1000 // DAY
        return _left_database(config, (today - days) * DAY, is_archived=is_archived)
    if is_archived:
        check_archive()
    with progress_bar("Retaining") as progress:
        terms: dict[str, Any] = {"days": days, "is_archived": is_archived, "progress": progress}
        return retain(folder, folder / LOG_FILE, **terms)


def _left_database(config: Config, at: int, *, is_archived: bool) -> Left:
    """Drop days of a log in PostgreSQL, which has no archive."""
    from fastbandit.storage.shared import open_log, open_store

    if is_archived:
        raise SettingError(
            "An archive is of a log in a file: that of these settings is in PostgreSQL (log.url). "
            "Run with --no-archive, or set log.archive = false; to keep a copy of what leaves, run "
            "`fastbandit copy-log` first."
        )
    folder = Path(config.server.data_dir)
    store = open_store(config.log.url, config.snapshots.url, folder)
    log = open_log(config.log.url, folder)
    try:
        store.follow()
        learned = min((one.cut.since for one in store.list()), default=0)
        count = log.drop_before(at, learned=learned)  # type: ignore[union-attr]
    finally:
        log.close()
        store.close()
    return Left(days=tuple(f"day {number}" for number in range(1, count + 1)))


def _lines(left: Left) -> list[str]:
    if not left.days:
        return [f"Nothing left the log{f': {left.why}' if left.why else ''}."]
    counts = ", ".join(counted(count, table[:-1]) for table, count in left.counts.items())
    lines = [f"{counted(len(left.days), 'day')} left the log: {counts}."]
    if left.archived:
        lines.append("They are in its archive, and learning goes on with them.")
    else:
        lines.append(f"Learning goes on without them: {counted(left.interactions, 'interaction')}.")
    if left.why:
        lines.append(f"Older days stay: {left.why}.")
    if not left.compact:
        lines.append(
            "The file keeps its size, and uses free pages again. To make it smaller, stop the "
            "service and run VACUUM INTO with the sqlite3 shell, into a new file in its place."
        )
    return lines
