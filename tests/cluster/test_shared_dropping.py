"""Values of a column leave a log that machines share: no byte is left in tables or files."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from machines import Machines
from msgspec import structs
from shared_days import make_older

from fastbandit.features.schema import Schema
from fastbandit.storage import shared_dropping
from fastbandit.storage.dropping import Dropped
from fastbandit.storage.events import DecisionMade, TimePassed
from fastbandit.storage.local_copy import local_copy
from fastbandit.storage.postgres_days import DAY
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.shared import service_store
from fastbandit.storage.shared_archive import SharedArchive
from fastbandit.storage.shared_dropping import drop_shared_columns
from fastbandit.storage.shared_retention import retain_shared
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import Clock
from tests.little_versions import publish

FIRST = 20_000 * DAY
VALUE = "Xenophon-of-Athens"
SCHEMA = Schema.from_dict({"columns": {"home": {"kind": "category", "drop_after_days": 2}}})


def write(log: PostgresLog, clock: Clock) -> None:
    made = DecisionMade("", {"home": VALUE}, ["x"], [0.0], 0, 0, 0, 1)
    for day in range(6):
        clock.time = FIRST + day * DAY
        log.append([structs.replace(made, id=f"d{day}"), TimePassed()])


def text_of(url: str) -> str:
    """Return all rows of all tables, as text."""
    named = "SELECT tablename FROM pg_tables WHERE schemaname = 'fastbandit'"
    with psycopg.connect(url) as connection:
        names = [name for (name,) in connection.execute(named)]
        asked = [f'SELECT t::text FROM fastbandit."{name}" t'.encode() for name in names]
        return str([connection.execute(query).fetchall() for query in asked])


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_no_byte_of_a_dropped_value_is_left(machines: Machines) -> None:
    here, there = (machines.config(name) for name in ("here", "there"))
    folder, url, store_url = Path(here.server.data_dir), machines.url, here.snapshots.url
    folder.mkdir(parents=True)
    archive, clock = SharedArchive(url, store_url, folder), Clock(FIRST)
    with closing(PostgresLog(url, clock=clock)) as log:
        write(log, clock)
        copies = [local_copy(url, Path(one.server.data_dir)) for one in (here, there)]
        with closing(service_store(here)) as store:
            publish(store, cut=Cut(seq=12, at=clock.time, since=12))
            left = retain_shared(url, store, archive, days=4, is_archived=True)
        assert len(left.days) == 1
        assert VALUE in text_of(url)
        clock.time += 9 * DAY
        log.append([TimePassed()])

        terms = {"schema": SCHEMA}
        found = drop_shared_columns(url, archive, folder, SCHEMA.drops, **terms)

        assert found == {"home": Dropped(log=5, archive=1)}
        assert VALUE not in text_of(url)
        assert VALUE.encode() not in bytes_in(folder)
        assert VALUE not in str([*archive.followed().events(after=0, until=99)])
        assert log.marks().dropped == {"home": 11}
        contexts = [one.context for one in log.read() if isinstance(one, DecisionMade)]
        assert contexts == [{"home": None}] * 5
        local_copy(url, Path(there.server.data_dir))
        assert VALUE.encode() not in bytes_in(copies[1].parent)
        again = drop_shared_columns(url, archive, folder, SCHEMA.drops, **terms)
        assert again == {"home": Dropped()}


def test_values_leave_an_older_copy_too(machines: Machines) -> None:
    here, clock = machines.config("here"), Clock(FIRST)
    folder, url = Path(here.server.data_dir), machines.url
    folder.mkdir(parents=True)
    archive = SharedArchive(url, here.snapshots.url, folder)
    with closing(PostgresLog(url, clock=clock)) as log:
        write(log, clock)
        copied = local_copy(url, folder)
        make_older(copied)
        clock.time += 9 * DAY
        log.append([TimePassed()])

        found = drop_shared_columns(url, archive, folder, SCHEMA.drops, schema=SCHEMA)

    assert found == {"home": Dropped(log=6)}
    assert VALUE.encode() not in bytes_in(folder)


def test_a_copy_that_goes_on_meanwhile_holds_none_of_them(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, clock = machines.config("here"), Clock(FIRST)
    folder, url = Path(here.server.data_dir), machines.url
    folder.mkdir(parents=True)
    archive, drop = SharedArchive(url, here.snapshots.url, folder), shared_dropping._drop_rows

    def drop_after_a_copy(*given: Any) -> int:
        local_copy(url, folder)
        return drop(*given)

    with closing(PostgresLog(url, clock=clock)) as log:
        log.append([TimePassed()])
        copied = local_copy(url, folder)
        write(log, clock)
        monkeypatch.setattr(shared_dropping, "_drop_rows", drop_after_a_copy)
        drop_shared_columns(url, archive, folder, SCHEMA.drops, schema=SCHEMA)
        local_copy(url, folder)
        contexts = [one.context for one in log.read() if isinstance(one, DecisionMade)]

    with closing(SqliteLog(copied, is_reader=True)) as copy:
        found = [one.context for one in copy.read() if isinstance(one, DecisionMade)]
    assert found == contexts
    assert {"home": None} in found
