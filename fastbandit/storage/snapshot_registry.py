"""Versions of a bandit that many machines share: files in any store, the pointer in PostgreSQL.

A version is uploaded first, file by file; then one transaction writes down what was uploaded
(sizes and SHA-256) and moves the pointer, if that still names the version it came from. So the
pointer always names files that are whole. Each machine keeps a `SnapshotStore` in line with
it: what the pointer names is fetched beside, checked and renamed.

One trainer at a time has the turn, a lock of the session that also moves the pointer: who lost
the session has lost the turn, and cannot publish.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import sync_folder, write_json
from fastbandit.settings.passwords import hide_password
from fastbandit.storage.deltas import Delta
from fastbandit.storage.postgres_connection import Connection, Server, rows
from fastbandit.storage.postgres_driver import psycopg
from fastbandit.storage.postgres_schema import prepare
from fastbandit.storage.shared_files import fetch, locate, upload
from fastbandit.storage.snapshot_store import NOTES, REPORTS, Snapshot, SnapshotStore, read_snapshot

_FOLLOW_SECONDS = 0.5
_TIMEOUT_SECONDS = 10.0
_DEAD_AFTER = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20s",  # where the silence begins before all was acknowledged
}
"""How the server tells that the machine of a trainer is gone, within 20 seconds."""
_VERSIONS = """
SELECT version, hash, place, files, extract(epoch FROM made_at)::float FROM snapshots
"""
_PUT_DELTA = """
INSERT INTO deltas (version, seq, content) SELECT version, %s, %s FROM pointer WHERE version = %s
ON CONFLICT (is_one) DO UPDATE
SET version = excluded.version, seq = excluded.seq, content = excluded.content, made_at = now()
WHERE deltas.version <> excluded.version OR deltas.seq <= excluded.seq
"""
_FORGET_REPORTS = """
DELETE FROM refused
WHERE version NOT IN (SELECT version FROM refused ORDER BY version DESC LIMIT %s)
"""


class _Row(NamedTuple):
    """A version as the registry has it; `files` tells the size and SHA-256 of each."""

    version: int
    hash: str
    place: str
    files: dict[str, tuple[int, str]]
    made_at: float


class SnapshotRegistry:
    """Versions under `place` (a path or any URL that fsspec knows) and the database at `url`.

    Used by one thread at a time.
    """

    def __init__(self, url: str, place: str, *, schema: str = "fastbandit") -> None:
        self._server = Server(url, schema=schema, timeout_seconds=_TIMEOUT_SECONDS)
        self._schema, self.place = schema, place.rstrip("/")
        self.name = hide_password(self.place)
        self._connection: Connection | None = None
        self._has_turn = self._is_closed = False

    # -- the trainer's turn

    def take_turn(self) -> bool:
        """Become the one who publishes; tell whether that is so."""
        with self._reporting():
            connection = self._opened()
            for setting, value in _DEAD_AFTER.items():
                connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
            key = crc32(f"{self._schema} trainer".encode())
            ((self._has_turn,),) = rows(connection, "SELECT pg_try_advisory_lock(%s)", key)
        return self._has_turn

    def check_turn(self) -> None:
        """Raise where the turn was lost."""
        with self._reporting():
            self._check_turn(self._opened())

    # -- writing

    def publish(self, snapshot: Snapshot, *, instead_of: int | None) -> None:
        """Upload a version, and move the pointer to it if that still names `instead_of`."""
        place = f"{self.place}/{snapshot.version:06d}-{snapshot.hash[:12]}"
        with self._reporting():
            files = upload(snapshot.folder, place)
            connection = self._opened()
            with connection.transaction():
                self._move(connection, snapshot.version, instead_of=instead_of)
                connection.execute(
                    "INSERT INTO snapshots (version, parent, hash, place, files) "
                    "VALUES (%s, %s, %s, %s, %s)",
                    (snapshot.version, snapshot.parent, snapshot.hash, place, json.dumps(files)),
                )

    def point(self, version: int, *, instead_of: int | None) -> None:
        """Move the pointer to a version that is there, as a rollback does."""
        with self._reporting():
            connection = self._opened()
            with connection.transaction():
                self._move(connection, version, instead_of=instead_of)
                connection.execute("DELETE FROM refused WHERE version = %s", (version,))

    def refuse(self, version: int, report: dict[str, Any]) -> None:
        """Keep the reason why a version is not to be served."""
        with self._reporting():
            self._opened().execute(
                "INSERT INTO refused (version, report) VALUES (%s, %s) "
                "ON CONFLICT (version) DO UPDATE SET report = excluded.report",
                (version, json.dumps(report)),
            )

    def put_delta(self, delta: Delta) -> None:
        """Make a delta the newest, unless its version is not served or a newer one is there."""
        with self._reporting():
            told = (delta.seq, delta.to_bytes(), delta.version)
            self._opened().execute(_PUT_DELTA, told)

    def prune(self, versions: list[int]) -> None:
        """Forget versions, and remove their files; of reports the newest stay."""
        with self._reporting():
            connection = self._opened()
            connection.execute(_FORGET_REPORTS, (REPORTS,))
            gone = rows(
                connection,
                "DELETE FROM snapshots WHERE version = ANY(%s) AND version NOT IN "
                "(SELECT version FROM pointer) RETURNING place",
                versions,
            )
            for (place,) in gone:
                system, path = locate(place)
                with suppress(FileNotFoundError):
                    system.rm(path, recursive=True)

    def _move(self, connection: Connection, version: int, *, instead_of: int | None) -> None:
        """Move the pointer within a transaction."""
        self._check_turn(connection)
        found = rows(connection, "SELECT version FROM pointer FOR UPDATE")
        pointed = found[0][0] if found else None
        if pointed != instead_of:
            raise SnapshotError(
                f"A new version needs to follow the current one: it was made from {instead_of}, "
                f"and {pointed} is served by now. Make it again."
            )
        connection.execute(
            "INSERT INTO pointer (version) VALUES (%s) "
            "ON CONFLICT (is_one) DO UPDATE SET version = excluded.version, moved_at = now()",
            (version,),
        )

    # -- reading

    def find(self, version: int) -> _Row | None:
        """Give a version that was published."""
        with self._reporting():
            found = rows(self._opened(), _VERSIONS + " WHERE version = %s", version)
        return _Row(*found[0]) if found else None

    def rows(self) -> list[_Row]:
        """Give all versions that were published and are not forgotten, oldest first."""
        with self._reporting():
            found = rows(self._opened(), _VERSIONS + " ORDER BY version")
        return [_Row(*row) for row in found]

    def current(self) -> _Row | None:
        """Give what the pointer names."""
        with self._reporting():
            found = rows(self._opened(), _VERSIONS + " JOIN pointer USING (version)")
        return _Row(*found[0]) if found else None

    def refused(self) -> dict[int, dict[str, Any]]:
        """Give the reports of versions that were refused, by number."""
        with self._reporting():
            return dict(rows(self._opened(), "SELECT version, report FROM refused"))

    def delta_seq(self, version: int) -> int | None:
        """Return the last event that the newest delta of a version knows, if it has one."""
        with self._reporting():
            found = rows(self._opened(), "SELECT seq FROM deltas WHERE version = %s", version)
        return int(found[0][0]) if found else None

    def delta(self, version: int) -> Delta | None:
        """Return the newest delta of a version, if it has one."""
        with self._reporting():
            found = rows(self._opened(), "SELECT content FROM deltas WHERE version = %s", version)
        return Delta.of(bytes(found[0][0])) if found else None

    def fetch(self, row: _Row, folder: Path) -> None:
        """Fetch the files of a version into a folder, and check each."""
        for name in row.files:
            self.fetch_file(row, name, folder)
        for part in {path.parent for path in folder.rglob("*")}:
            sync_folder(part)

    def fetch_file(self, row: _Row, name: str, folder: Path) -> None:
        """Fetch one file of a version into a folder, and check it."""
        size, digest = row.files[name]
        with self._reporting():
            fetch(f"{row.place}/{name}", folder / name, size=size, digest=digest)
        os.utime(folder / name, (row.made_at, row.made_at))

    def close(self) -> None:
        """Let go of the database; a turn ends with that."""
        self._is_closed = True
        connection, self._connection, self._has_turn = self._connection, None, False
        if connection is not None:
            connection.close()

    # -- the database

    def _opened(self) -> Connection:
        if self._connection is None or self._connection.closed:
            connection = self._server.connect()
            try:
                prepare(connection, self._schema, name=self._server.name)
                if self._is_closed:  # by the thread that stops, while this one was at work
                    raise SnapshotError("The registry of snapshots is closed. Open another.")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _check_turn(self, connection: Connection) -> None:
        """Raise where the turn was had on a session that is no more."""
        if not self._has_turn:
            return
        held = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        ((locks,),) = rows(connection, held)
        if not locks:
            self._has_turn = False
            raise SnapshotError(
                "Publishing needs the trainer's turn: the session that had it is gone, and "
                "another trainer may have it. Wait for the next turn."
            )

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Turn errors of the store into ours; after one of the database, connect anew."""
        try:
            with self._server.reporting("used"):
                yield
        except psycopg.Error:
            raise
        except SnapshotError:
            raise
        except Exception as error:  # of a store, which may be any
            if self._connection is not None and self._connection.broken:
                self._connection = None
            if type(error).__module__.startswith("fastbandit"):
                raise
            raise SnapshotError(
                f"Snapshots need a store that can be used: {self.name} cannot "
                f"({type(error).__name__}: {hide_password(str(error))}). See that it is there; "
                f"nothing was changed."
            ) from error


class RegisteredStore(SnapshotStore):
    """A folder of versions that follows a registry, and publishes to it."""

    def __init__(self, folder: str | Path, registry: SnapshotRegistry) -> None:
        super().__init__(folder)
        self.registry, self._followed = registry, 0.0
        self._taken = ""  # the hash of what the registry pointed to last
        self._delta: tuple[int, int] | None = None  # the newest that was fetched

    def pull(self) -> int | None:
        """Bring the folder in line with the registry; give the version to serve."""
        with self._reporting_disk():
            self.folder.mkdir(parents=True, exist_ok=True)
            row = self.registry.current()
            self._take_reports(self.registry.refused())
            if row is not None and (self._taken != row.hash or self._pointed() != row.version):
                row = self._take()
            return row and row.version

    def _take(self) -> _Row | None:
        """Fetch what the registry points to, and drop what it no longer holds."""
        with self._writing():  # a learner on this folder may just have published another
            row = self.registry.current()
            if row is None:
                return None
            if self._fetch(row) or self._pointed() != row.version:
                super()._point(row.version)
            self._taken = row.hash
            for version in {*self.versions()} - {one.version for one in self.registry.rows()}:
                self._drop(version)
            return row

    def _fetch(self, row: _Row) -> bool:
        """Have a version in the folder, whole; tell whether it was not."""
        if self._is_here(row):
            return False
        with self.drafting() as draft:
            self.registry.fetch(row, draft)
            self._drop(row.version)
            draft.rename(self._folder_of(row.version))
            sync_folder(self.folder)
        return True

    def list(self) -> Sequence[Snapshot]:
        """Give all versions that were published; those of other machines without their files."""
        with self._reporting_disk():
            return [self._told(row) for row in self.registry.rows()]

    def _told(self, row: _Row) -> Snapshot:
        if self._is_here(row):
            return self.get(row.version)
        folder = self.folder / ".told" / f"{row.version:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        self.registry.fetch_file(row, NOTES, folder)
        return read_snapshot(folder)

    def take_turn(self) -> bool:
        """Become the one who publishes; tell whether that is so."""
        return self.registry.take_turn()

    def follow(self) -> None:
        """Take over what others published, now and then; raise if the turn was lost."""
        if time.monotonic() - self._followed > _FOLLOW_SECONDS:
            self.registry.check_turn()
            self.pull()
            self._followed = time.monotonic()

    def follow_delta(self) -> None:
        """Take over the newest delta of the version that is pointed to, if it is another."""
        version = self._pointed()
        seq = None if version is None else self.registry.delta_seq(version)
        if version is None or seq is None or self._delta == (version, seq):
            return
        self._delta = (version, seq)  # one that is damaged is fetched once
        delta = self.registry.delta(version)
        if delta is not None:
            self.deltas.write(delta)

    def newest_delta(self, snapshot: Snapshot) -> Delta | None:
        """Return the newest delta that was published for a version."""
        delta = self.registry.delta(snapshot.version)
        return delta and delta.check_for(snapshot.version, snapshot.hash)

    def publish_delta(self, delta: Delta) -> None:
        """Make a delta the one to be applied to its version, on all machines."""
        self.registry.put_delta(delta)

    def close(self) -> None:
        """Let go of the database; a turn ends with that."""
        self.registry.close()

    def recover(self) -> None:
        """Forget what was made and not published, then follow the registry."""
        super()._sweep()
        self.pull()
        for version in {*self.versions()} - {row.version for row in self.registry.rows()}:
            self._drop(version)

    def next_version(self) -> int:
        """Give the number of the next version: one that none ever had."""
        published = (row.version for row in self.registry.rows())
        return max([-1, *published, *self.registry.refused()]) + 1

    def rollback(self, version: int | None = None) -> Snapshot:
        """Let all serve an older version (None: the parent) from now on."""
        self.pull()
        version = self._parent() if version is None else version
        row = self.registry.find(version)
        if row is None:
            known = ", ".join(str(one.version) for one in self.registry.rows()) or "none"
            raise SnapshotError(
                f"A rollback needs a version that was published: {self.registry.name} holds "
                f"{known}, and {version} was asked for. Name one of these."
            )
        with self._reporting_disk(), self._writing():
            self._fetch(row)
        return super().rollback(version)

    def refuse(self, version: int, report: dict[str, Any]) -> None:
        """Keep the reason why a version is not to be served, for all."""
        self.registry.refuse(version, {**report, "version": version})
        super().refuse(version, report)

    def prune(self, keep: int) -> Sequence[int]:
        """Remove all but the newest versions, here and in the store."""
        current = self.current()
        if current is None:
            return []
        older = [one.version for one in self.registry.rows() if one.version < current.version]
        spare = older[: max(0, len(older) + 1 - keep)]
        gone = [version for version in spare if version != current.parent]
        self.registry.prune(gone)
        for version in gone:
            self._drop(version)
        return gone

    def _point(self, version: int) -> None:
        pointed = self._pointed()
        if self.registry.find(version) is not None:
            self.registry.point(version, instead_of=pointed)
        else:
            self.registry.publish(self.get(version), instead_of=pointed)
        super()._point(version)

    def _is_here(self, row: _Row) -> bool:
        try:
            return self.get(row.version).hash == row.hash
        except SnapshotError:
            return False

    def _take_reports(self, refused: dict[int, dict[str, Any]]) -> None:
        for version in self._refused_versions() - set(refused):
            self._report_of(version).unlink(missing_ok=True)
        for version in set(refused) - self._refused_versions():
            self._report_of(version).parent.mkdir(parents=True, exist_ok=True)
            write_json(self._report_of(version), refused[version])

    def _drop(self, version: int) -> None:
        """Remove a version from this folder alone."""
        going = self.folder / f".gone-{version}"
        shutil.rmtree(going, ignore_errors=True)
        with suppress(FileNotFoundError):
            self._folder_of(version).rename(going)
        shutil.rmtree(going, ignore_errors=True)

    @contextmanager
    def _reporting_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if type(error).__module__.startswith("fastbandit"):
                raise
            raise SnapshotError(
                f"Snapshots need a folder that can be written to: {self.folder} cannot "
                f"({error}). Make room there, or let it be written to."
            ) from error
