"""A cluster for campaigns on this machine: PostgreSQL, deciders and trainers, each a process."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastbandit.demo.synthetic import Synthetic
from fastbandit.storage.events import Event
from fastbandit.storage.postgres_connection import psycopg
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.registered_store import RegisteredStore
from fastbandit.storage.snapshot_registry import SnapshotRegistry
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot
from lab.faults.stage import HOST, Running, Stage, wait_for, write_stage
from lab.postgres_server import LittleServer, little_server

STEP_SECONDS = 0.02
_STOPS = {"crash": signal.SIGKILL, "immediate": signal.SIGQUIT, "fast": signal.SIGINT}
"""How PostgreSQL may end; `fast` is the orderly way of it that does not wait for clients."""
_OTHER = "Another learner"
_LEASE = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid <> ALL(%s)"
_POINTER = "SELECT version, extract(epoch FROM moved_at)::float8 FROM fastbandit.pointer"


@dataclass(frozen=True)
class Cluster:
    """Stages that share a database and a folder of snapshots; `home` holds all but the database."""

    home: Path
    database: LittleServer
    deciders: tuple[Stage, ...]
    trainers: tuple[Stage, ...]
    running: dict[Path, Running] = field(default_factory=dict)

    @property
    def environment(self) -> Synthetic:
        """The environment whose arms the deciders choose from."""
        return self.deciders[0].environment

    @property
    def urls(self) -> list[str]:
        """The addresses of the deciders."""
        return [f"http://{HOST}:{stage.port}" for stage in self.deciders]

    # -- processes

    def start(self, stage: Stage) -> Running:
        """Start a decider or a trainer, again where it ran before."""
        (stage.data / "learner.json").unlink(missing_ok=True)  # of its earlier life
        if stage in self.trainers:
            member = stage.start(command="learn")
        else:
            member = stage.start("--no-learner")
        self.running[stage.home] = member
        return member

    def kill(self, stage: Stage) -> None:
        """Kill a decider or a trainer, as if it had crashed."""
        self.running[stage.home].kill()

    def wait_for_deciders(self) -> None:
        """Wait until each decider that runs answers."""
        for stage in self.deciders:
            self.running[stage.home].first_answer()

    def end(self) -> None:
        """End whatever still runs, but the database."""
        for member in self.running.values():
            member.end()

    # -- trainers

    def is_working(self, trainer: Stage) -> bool:
        """Return whether a trainer that runs says that it has the leader lease."""
        state = trainer.learner_state()
        is_alive = trainer.home in self.running and self.running[trainer.home].is_alive
        has_lease = not str(state.get("error", "")).startswith(_OTHER)
        return is_alive and state.get("state") in ("waiting", "training") and has_lease

    def is_waiting(self, trainer: Stage) -> bool:
        """Return whether a trainer says that it waits for the leader lease."""
        return str(trainer.learner_state().get("error", "")).startswith(_OTHER)

    def holders(self, *, but: list[int]) -> list[int]:
        """Return the sessions that have the leader lease, leaving out some."""
        return [int(row[0]) for row in self._rows(_LEASE, but)]

    # -- what is shared

    def pointer(self) -> tuple[int, float]:
        """Return the version that the pointer names, and when it was moved there."""
        ((version, at),) = self._rows(_POINTER)
        return int(version), float(at)

    def wait_for_version(self, version: int, *, seconds: float = 120.0) -> None:
        """Wait until the pointer names a version, or a later one."""

        def is_there() -> bool:
            return self.pointer()[0] >= version

        wait_for(is_there, seconds=seconds, what=f"version {version}", step=STEP_SECONDS)

    def wait_for_spools(self, *, seconds: float = 60.0) -> None:
        """Wait until no decider keeps a decision that the log does not hold."""

        def are_gone() -> bool:
            return not any((stage.data / "spool.db").exists() for stage in self.deciders)

        wait_for(are_gone, seconds=seconds, what="spools that are empty")

    def events(self) -> list[Event]:
        """Return all that the log holds."""
        with closing(PostgresLog(self.database.url, is_reader=True)) as log:
            found: list[Event] = []
            while some := log.read(after=found[-1].seq if found else 0):
                found += some
            return found

    def snapshots(self) -> list[Snapshot]:
        """Return all versions that were published, oldest first; raise where one is not whole."""
        with tempfile.TemporaryDirectory(dir=self.home) as folder:
            store = SnapshotStore(folder)
            for version, url in self._rows("SELECT version, url FROM fastbandit.snapshots"):
                target = Path(str(url).removeprefix("file://"))
                (store.folder / f"{version:06d}").symlink_to(target, target_is_directory=True)
            return [_placed(store.get(version)) for version in store.versions()]

    @contextmanager
    def publishing(self) -> Iterator[RegisteredStore]:
        """Return a store that has the leader lease, to publish."""
        registry = SnapshotRegistry(self.database.url, _snapshots_url(self.home))
        with closing(registry):
            store = RegisteredStore(self.home / "publisher", registry)
            store.acquire_lease()
            yield store

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(psycopg.connect(self.database.url, connect_timeout=5)) as connection:
            return connection.execute(query, values or None).fetchall()


@contextmanager
def cluster_of(
    environment: Synthetic,
    settings: Mapping[str, Any],
    *,
    deciders: int = 3,
    trainers: int = 0,
) -> Iterator[Cluster]:
    """Set up and start a cluster with a first version; end all of it at last."""
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # visitors may write yet
        home = Path(stack.enter_context(folder))
        database = stack.enter_context(little_server())
        own = {"log.url": database.url, "snapshots.url": _snapshots_url(home), **settings}

        def stages(name: str, count: int) -> tuple[Stage, ...]:
            return tuple(
                write_stage(home / f"{name}-{it}", environment, own) for it in range(count)
            )

        cluster = Cluster(home, database, stages("decider", deciders), stages("trainer", trainers))
        _publish_first(cluster)
        stack.callback(cluster.end)
        for stage in (*cluster.deciders, *cluster.trainers):
            cluster.start(stage)
        cluster.wait_for_deciders()
        yield cluster


def _publish_first(cluster: Cluster) -> None:
    from fastbandit.learning.initial_version import publish_initial_version

    with cluster.publishing() as store:
        store.pull()
        publish_initial_version(cluster.deciders[0].config, store)


def stop_database(database: LittleServer, how: str) -> None:
    """End the server by a crash, immediately or in an orderly way."""
    database.stop(_STOPS[how])


@contextmanager
def hanging(database: LittleServer) -> Iterator[None]:
    """Stop all processes of the server for a while: as if the network were down, it is silent."""
    parent = database.process
    os.kill(parent, signal.SIGSTOP)  # first: it makes no more of them
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    children = [int(child) for child in listed.split()]
    try:
        _signal(children, signal.SIGSTOP)
        yield
    finally:
        _signal([*children, parent], signal.SIGCONT)


def _signal(processes: list[int], how: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, how)


def _snapshots_url(home: Path) -> str:
    return f"file://{home}/shared"


def _placed(snapshot: Snapshot) -> Snapshot:
    """Return a version that lies behind a link as it lies there."""
    return replace(snapshot, folder=snapshot.folder.resolve())
