"""A shared log of some days about two subjects, learned from, archived and forgotten."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
from msgspec import structs

from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage.events import DecisionMade, RewardCame, TimePassed
from fastbandit.storage.forgetting import Forgotten
from fastbandit.storage.postgres_days import DAY, drop_days
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.retention import Left
from fastbandit.storage.shared import service_store
from fastbandit.storage.shared_archive import SharedArchive
from fastbandit.storage.shared_forgetting import forget_shared
from fastbandit.storage.shared_retention import retain_shared
from fastbandit.storage.sqlite_files import connect
from fastbandit.testing.logs import Clock

FIRST = 20_000 * DAY
VALUE = 7125.4375
WRITTEN = b"7125.4375"


def drop_before(log: PostgresLog, at: int, *, learned: int) -> int:
    """Drop all days of a log that end before a time; return how many."""
    with log._server.reporting("pruned"), closing(log._server.connect()) as connection:
        return drop_days(connection, at, learned=learned)


def made(id: str, subject: str | None = None, **more: object) -> DecisionMade:
    first = VALUE if subject == "ann" else 0.5
    own = DecisionMade(id, [first, 0.0, 1.0], ["arm-2", "arm-1"], [0.5, 0.2], 3, 0, 0, DAY // 100)
    return _with(own, subject=subject, **more)


def _with(one: DecisionMade, **more: object) -> DecisionMade:
    return structs.replace(one, **more)


def write_days(log: PostgresLog, clock: Clock, *, days: int = 3) -> None:
    for day in range(days):
        clock.time = FIRST + day * DAY
        for who in ("ann", "bob"):
            id = f"{who}-{day}"
            log.append([made(id, who), RewardCame(id, 1.0, "arm-1")])
            log.append([RewardCame(id, 0.0, "arm-1"), RewardCame(id, 0.0, "arm-9")])
        clock.time += DAY // 2
        log.append([TimePassed()])


def learn(config: Config) -> None:
    learner = Learner(config)
    assert learner.acquire_lease()
    learner.start()
    while learner.step().did == "learned":
        pass
    learner._data.close()


def retained(config: Config, *, is_archived: bool = True) -> Left:
    folder = Path(config.server.data_dir)
    archive = SharedArchive(config.log.url, config.snapshots.url, folder)
    with closing(service_store(config)) as store:
        store.follow()
        terms = {"days": 1, "is_archived": is_archived}
        return retain_shared(config.log.url, store, archive, **terms)


def forgotten(config: Config, subject: str = "ann") -> Forgotten:
    folder = Path(config.server.data_dir)
    archive = SharedArchive(config.log.url, config.snapshots.url, folder)
    with closing(service_store(config)) as store:
        return forget_shared(config.log.url, store, archive, folder, subject, keep=5)


def make_older(log: Path) -> None:
    """Leave a log in a file as version 8 wrote it."""
    with closing(connect(log)) as connection:
        for name in ("secret_columns", "dropped_columns", "forgotten_decisions"):
            connection.execute(f"DROP TABLE {name}")
        connection.execute("PRAGMA user_version = 8")


def tables(url: str) -> bytes:
    """Return all rows of all tables, as text."""
    named = "SELECT tablename FROM pg_tables WHERE schemaname = 'fastbandit'"
    with psycopg.connect(url) as connection:
        names = [name for (name,) in connection.execute(named)]
        every = [
            connection.execute(f'SELECT t::text FROM fastbandit."{n}" t'.encode()) for n in names
        ]
        return "\n".join(text for rows in every for (text,) in rows).encode()


def files(*folders: Path) -> bytes:
    found = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return b"".join(path.read_bytes() for path in found)


def archived(config: Config) -> str:
    archive = SharedArchive(config.log.url, config.snapshots.url, Path(config.server.data_dir))
    local = archive.followed()
    return str([*local.events(after=0, until=10**9)])


def shared_folder(config: Config, name: str) -> Config:
    """Return the config of another machine."""
    folder = Path(config.server.data_dir).with_name(name)
    folder.mkdir()
    return replace(config, server=replace(config.server, data_dir=str(folder)))
