"""A PostgreSQL server and a Ray for all tests of this folder, and a schema of its own for each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import psycopg
import pytest
from machines import Machines
from shared_days import FIRST

from fastbandit.cluster.engine import Engine, make_engine
from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.settings.service import Config
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.registered_store import RegisteredStore
from fastbandit.storage.shared import open_store
from fastbandit.storage.snapshot_registry import SnapshotRegistry
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from fastbandit.testing.logs import Clock
from lab.postgres_server import LittleServer, little_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def shared_server() -> Iterator[LittleServer]:
    with little_server() as server:
        yield server


@pytest.fixture
def url(shared_server: LittleServer) -> str:
    return shared_server.url


@pytest.fixture
def schema() -> str:
    return f"log_{next(_NUMBERS)}"


@pytest.fixture
def next_schema() -> Callable[[], str]:
    return lambda: f"log_{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def own_server() -> Iterator[LittleServer]:
    """A server that tests of one file may kill, if they start it again."""
    with little_server() as server:
        yield server


@pytest.fixture
def database(own_server: LittleServer) -> str:
    """The URL of a database of the test's own, on a server that it may stop."""
    name = f"own_{next(_NUMBERS)}"
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return own_server.url.replace("/postgres?", f"/{name}?")


@pytest.fixture
def machines(database: str, tmp_path: Path) -> Machines:
    """Machines that share a database, in which there is nothing yet."""
    return Machines(database, tmp_path)


@pytest.fixture
def machine(url: str, schema: str, tmp_path: Path) -> Iterator[Callable[[str], RegisteredStore]]:
    """Makes the store of a machine, by name; all share one registry."""
    made: list[RegisteredStore] = []

    def make(name: str) -> RegisteredStore:
        registry = SnapshotRegistry(url, f"file://{tmp_path}/shared", schema=schema)
        made.append(RegisteredStore(tmp_path / name, registry))
        return made[-1]

    yield make
    for store in made:
        store.registry.close()


@pytest.fixture(scope="session")
def first_snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 0 of a little catalogue, made once."""
    folder = tmp_path_factory.mktemp("first")
    config = Machines("postgresql://nobody/", folder).config("made")
    return publish_initial_version(config, SnapshotStore(folder / "snapshots")).folder


@pytest.fixture
def shared(machines: Machines, first_snapshot: Path) -> Machines:
    """Machines among which version 0 was published."""
    config = machines.config("learner")
    store = open_store(config.log.url, config.snapshots.url, machines.folder / "learner")
    with store.drafting() as draft:
        for part in ("bandit", "frozen"):
            shutil.copytree(first_snapshot / part, draft / part)
        store.publish(draft, {}, version=0, parent=None, cut=Cut())
    store.close()
    return machines


@pytest.fixture(scope="session")
def ray_engine() -> Iterator[Engine]:
    """Two workers of the one Ray that all tests share."""
    pytest.importorskip("ray")
    engine = make_engine("ray", workers=2)
    yield engine
    engine.close()


@pytest.fixture
def day_clock() -> Clock:
    return Clock(FIRST)


@pytest.fixture
def day_log(shared: Machines, day_clock: Clock) -> Iterator[PostgresLog]:
    with closing(PostgresLog(shared.url, clock=day_clock)) as log:
        yield log


@pytest.fixture
def day_config(shared: Machines) -> Config:
    return shared.config("learner", learn__fresh=1, learn__keep=1)
