"""The command `retain`: old days leave the log of a service, while it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from fastbandit.cli.options import counted, print_either, read_service, service_options, taking
from fastbandit.errors import SettingError
from fastbandit.files.private import write_privately
from fastbandit.progress import progress_bar
from fastbandit.settings.service import Config
from fastbandit.storage.archive import check_archive
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.dropping import Dropped, drop_columns
from fastbandit.storage.retention import Left, delete_asked, retain
from fastbandit.storage.shared import service_store


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
    rewards. Values of columns with drop_after_days leave after so many. What was stopped half-way
    is finished when it is run again. Days leave unhurried: eight ninths of the time are rests.
    """
    config = read_service(options.path, options.data_dir)
    os.nice(5)  # decisions come first
    write_privately()
    days, schema = options.days or config.log.retain_days, config.context.read_schema()
    drops = {} if schema is None else schema.drops
    folder = Path(config.server.data_dir)
    deleted = {} if config.log.url else delete_asked(folder, folder / LOG_FILE)
    if not days and not drops and not deleted:
        raise SettingError(
            "Retention needs a number of days: got neither --days nor log.retain_days, and no "
            "column with drop_after_days. Name one."
        )
    is_archived = config.log.archive if options.is_archived is None else options.is_archived
    left = _left(config, days, is_archived=is_archived) if days else Left()
    dropped = _dropped(config, drops) if drops else {}
    found = {
        **asdict(left),
        "deleted": deleted,
        "dropped": {name: asdict(one) for name, one in dropped.items()},
    }
    lines = [*(_lines(left) if days else ()), *_lines_of_columns(dropped)]
    lines += [f"Deleted as asked: {count:,} {table}." for table, count in deleted.items()]
    print_either(options.as_json, found, *lines)


def _dropped(config: Config, drops: Mapping[str, int]) -> dict[str, Dropped]:
    """Drop values of columns that are old enough, wherever the log is."""
    from fastbandit.runtime.frozen import FrozenBandit

    folder, url = Path(config.server.data_dir), config.log.url
    with closing(service_store(config)) as store:
        store.follow()
        current = store.current()
    schema = None if current is None else FrozenBandit.load(current.frozen).parts[2].schema
    if not url:
        return drop_columns(folder, folder / LOG_FILE, drops, schema)
    from fastbandit.storage.shared_archive import SharedArchive
    from fastbandit.storage.shared_dropping import drop_shared_columns
    from fastbandit.storage.shared_retention import BeingChangedError

    archive = SharedArchive(url, config.snapshots.url, folder)
    try:
        return drop_shared_columns(url, archive, folder, drops, schema=schema)
    except BeingChangedError:
        return {}


def _lines_of_columns(dropped: Mapping[str, Dropped]) -> list[str]:
    return [
        f"Values of {name} dropped: {one.log:,} in the log, {one.archive:,} in the archive, "
        f"{one.interactions:,} in the training data."
        for name, one in dropped.items()
    ]


def _left(config: Config, days: int, *, is_archived: bool) -> Left:
    folder = Path(config.server.data_dir)
    if is_archived:
        check_archive()
    with progress_bar("Retaining") as progress:
        terms: dict[str, Any] = {"days": days, "is_archived": is_archived, "progress": progress}
        if config.log.url:
            return _left_shared(config, terms)
        return retain(folder, folder / LOG_FILE, **terms)


def _left_shared(config: Config, terms: dict[str, Any]) -> Left:
    """Let days of a log in PostgreSQL leave."""
    from fastbandit.storage.shared_archive import SharedArchive
    from fastbandit.storage.shared_retention import BeingChangedError, retain_shared

    folder, url = Path(config.server.data_dir), config.log.url
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(service_store(config)) as store:
        store.follow()
        archive = SharedArchive(url, config.snapshots.url, folder)
        try:
            return retain_shared(url, store, archive, **terms)
        except BeingChangedError:  # each decider tries, every hour
            return Left(why="another process changes the log just now")


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
