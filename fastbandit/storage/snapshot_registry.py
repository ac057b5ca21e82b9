"""Versions of a bandit that many machines share: files in any store, the pointer in PostgreSQL.

A version is uploaded first, file by file; then one transaction writes down what was uploaded
(sizes and SHA-256) and moves the pointer, if that still names the version it came from. So the
pointer always names files that are whole.

One learner at a time is the leader. Its lease is a lock of the session that also moves the pointer:
who lost the session has lost the lease, and cannot publish. The leader renews the lease every two
seconds, and says there what it does, for the deciders; where it stands still, another ends its
session after ten, and takes over.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from fastbandit.errors import FastbanditError, SnapshotError
from fastbandit.files.atomic import sync_folders
from fastbandit.files.signing import Keys
from fastbandit.settings.passwords import hide_password
from fastbandit.storage.deltas import Delta
from fastbandit.storage.postgres_connection import Connection, Server, psycopg, rows
from fastbandit.storage.postgres_schema import prepare
from fastbandit.storage.shared_files import fetch, locate, upload
from fastbandit.storage.snapshot_store import REPORTS
from fastbandit.storage.snapshot_version import Snapshot, check_follows

_TIMEOUT_SECONDS = 10.0
_DEAD_AFTER = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20s",  # where the silence begins before all was acknowledged
}
"""How the server finds that the machine of the leader is gone, within 20 seconds."""
_BEAT_SECONDS = 2.0
_RENEW = f"""
INSERT INTO lease (session, until) VALUES (%s, now() + interval '{5 * _BEAT_SECONDS:g} s')
ON CONFLICT (is_one) DO UPDATE SET session = excluded.session, until = excluded.until
"""
_BEAT = f"""
UPDATE lease SET until = now() + interval '{5 * _BEAT_SECONDS:g} s',
    report = coalesce(%s::json, report),
    reported_at = CASE WHEN %s THEN now() ELSE reported_at END
WHERE session = %s
"""
_LEADER = "SELECT report, extract(epoch FROM now() - reported_at)::float FROM lease"
_END_EXPIRED = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN lease ON session = pid
WHERE locktype = 'advisory' AND granted AND objid = %s AND until < now()
"""
_VERSIONS = """
SELECT version, hash, url, files, extract(epoch FROM made_at)::float FROM snapshots
"""
_PUBLISH_DELTA = """
INSERT INTO deltas (version, seq, content) SELECT version, %s, %s FROM pointer WHERE version = %s
ON CONFLICT (is_one) DO UPDATE
SET version = excluded.version, seq = excluded.seq, content = excluded.content, made_at = now()
WHERE deltas.version <> excluded.version OR deltas.seq <= excluded.seq
"""
_FORGET_REPORTS = """
DELETE FROM refused
WHERE version NOT IN (SELECT version FROM refused ORDER BY version DESC LIMIT %s)
"""


class Registered(NamedTuple):
    """A version as the registry has it; `files` holds the size and SHA-256 of each."""

    version: int
    hash: str
    url: str
    files: dict[str, tuple[int, str]]
    made_at: float


class SnapshotRegistry:
    """Versions under `url` (a path or any URL that fsspec knows), registered in a log's database.

    Used by one thread at a time.
    """

    def __init__(self, log_url: str, url: str, *, schema: str = "fastbandit") -> None:
        self._server = Server(log_url, schema=schema, timeout_seconds=_TIMEOUT_SECONDS)
        self.url = url.rstrip("/")
        self.name = hide_password(self.url)
        self._connection: Connection | None = None
        self._has_lease = self._is_closed = False
        self._is_over: threading.Event | None = None  # for the thread that renews the lease
        self._report: Callable[[], dict[str, Any] | None] = dict

    def acquire_lease(self, report: Callable[[], dict[str, Any] | None] = dict) -> bool:
        """Become the leader, and `report` with each renewal; return whether that is so."""
        self._report = report
        with self._reporting():
            connection = self._opened()
            for setting, value in _DEAD_AFTER.items():
                connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
            key = crc32(f"{self._server.schema} trainer".encode())
            ((self._has_lease,),) = rows(connection, "SELECT pg_try_advisory_lock(%s)", key)
            if not self._has_lease:
                rows(connection, _END_EXPIRED, key)  # the next try finds the lock free
            else:
                session = connection.info.backend_pid
                connection.execute(_RENEW, (session,))
                self._beat(session)
        return self._has_lease

    def _beat(self, session: int) -> None:
        """Renew the lease of a session, from a thread of its own, until it has it no more.

        It is not renewed while the report says that another should lead.
        """
        self._stop_beating()
        is_over = self._is_over = threading.Event()

        def beat() -> None:
            connection: Connection | None = None
            while not is_over.wait(_BEAT_SECONDS):
                try:
                    connection = connection or self._server.connect()
                    if not self._renew(connection, session):
                        break
                except psycopg.Error:
                    connection = None  # the session is lost as well, or it is tried again
            if connection is not None:
                connection.close()

        threading.Thread(target=beat, name="leader lease", daemon=True).start()

    def _renew(self, connection: Connection, session: int) -> bool:
        """Renew a lease, unless another should lead; return whether it is there still."""
        report = self._report()
        if report is None:
            return True
        values = (json.dumps(report) if report else None, bool(report), session)
        return connection.execute(_BEAT, values).rowcount > 0

    def _stop_beating(self) -> None:
        if self._is_over is not None:
            self._is_over.set()

    def check_lease(self) -> None:
        with self._reporting():
            self._check_lease(self._opened())

    def publish(self, snapshot: Snapshot, *, instead_of: int | None) -> None:
        """Upload a version, and move the pointer to it if that still names `instead_of`."""
        url = f"{self.url}/{snapshot.version:06d}-{snapshot.hash[:12]}"
        with self._reporting():
            files = upload(snapshot.folder, url)
            connection = self._opened()
            with connection.transaction():
                self._move(connection, snapshot.version, instead_of=instead_of)
                connection.execute(
                    "INSERT INTO snapshots (version, parent, hash, url, files) "
                    "VALUES (%s, %s, %s, %s, %s)",
                    (snapshot.version, snapshot.parent, snapshot.hash, url, json.dumps(files)),
                )

    def point(self, version: int, *, instead_of: int | None) -> None:
        """Move the pointer to a version that is there, as a rollback does."""
        with self._reporting():
            connection = self._opened()
            with connection.transaction():
                self._move(connection, version, instead_of=instead_of)
                connection.execute("DELETE FROM refused WHERE version = %s", (version,))

    def refuse(self, version: int, report: dict[str, Any]) -> None:
        with self._reporting():
            self._opened().execute(
                "INSERT INTO refused (version, report) VALUES (%s, %s) "
                "ON CONFLICT (version) DO UPDATE SET report = excluded.report",
                (version, json.dumps(report)),
            )

    def publish_delta(self, delta: Delta, *, keys: Keys = ()) -> None:
        """Make a delta the newest, unless its version is not served or a newer one is there."""
        with self._reporting():
            values = (delta.seq, delta.to_bytes(keys=keys), delta.version)
            self._opened().execute(_PUBLISH_DELTA, values)

    def prune(self, versions: list[int]) -> None:
        """Forget versions, and remove their files; of reports the newest stay."""
        with self._reporting():
            connection = self._opened()
            connection.execute(_FORGET_REPORTS, (REPORTS,))
            gone = rows(
                connection,
                "DELETE FROM snapshots WHERE version = ANY(%s) AND version NOT IN "
                "(SELECT version FROM pointer) RETURNING url",
                versions,
            )
            for (url,) in gone:
                system, path = locate(url)
                with suppress(FileNotFoundError):
                    system.rm(path, recursive=True)

    def _move(self, connection: Connection, version: int, *, instead_of: int | None) -> None:
        self._check_lease(connection)
        found = rows(connection, "SELECT version FROM pointer FOR UPDATE")
        check_follows(instead_of, found[0][0] if found else None)
        connection.execute(
            "INSERT INTO pointer (version) VALUES (%s) "
            "ON CONFLICT (is_one) DO UPDATE SET version = excluded.version, moved_at = now()",
            (version,),
        )

    def find(self, version: int) -> Registered | None:
        found = self._ask(_VERSIONS + " WHERE version = %s", version)
        return Registered(*found[0]) if found else None

    def rows(self) -> list[Registered]:
        """Return all versions that were published and are not forgotten, oldest first."""
        return [Registered(*row) for row in self._ask(_VERSIONS + " ORDER BY version")]

    def current(self) -> Registered | None:
        """Return what the pointer names."""
        found = self._ask(_VERSIONS + " JOIN pointer USING (version)")
        return Registered(*found[0]) if found else None

    def refused(self) -> dict[int, dict[str, Any]]:
        """Return the reports of versions that were refused, by number."""
        return dict(self._ask("SELECT version, report FROM refused"))

    def delta_seq(self, version: int) -> int | None:
        """Return the last event that the newest delta of a version knows, if it has one."""
        found = self._ask("SELECT seq FROM deltas WHERE version = %s", version)
        return int(found[0][0]) if found else None

    def delta(self, version: int, *, keys: Keys = ()) -> Delta | None:
        found = self._ask("SELECT content FROM deltas WHERE version = %s", version)
        return Delta.of(bytes(found[0][0]), keys=keys) if found else None

    def leader(self) -> dict[str, Any]:
        """Return what the leader said last, with its times by the clock of this machine."""
        found = self._ask(_LEADER)
        if not found or found[0][0] is None:
            return {}
        report, since = found[0]
        if report.get("measured_at") is not None:
            report["measured_at"] = time.monotonic() - since
        return dict(report)

    def fetch(self, row: Registered, folder: Path) -> None:
        for name in row.files:
            self.fetch_file(row, name, folder)
        sync_folders(folder)

    def fetch_file(self, row: Registered, name: str, folder: Path) -> None:
        size, digest = row.files[name]
        with self._reporting():
            fetch(f"{row.url}/{name}", folder / name, size=size, digest=digest)
        os.utime(folder / name, (row.made_at, row.made_at))

    def close(self) -> None:
        """Let go of the database; a lease ends with that, after a last report."""
        self._is_closed = True
        self._stop_beating()
        has_lease, self._has_lease = self._has_lease, False
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                if has_lease:
                    self._renew(connection, connection.info.backend_pid)
            connection.close()

    def _ask(self, query: str, *values: Any) -> list[Any]:
        with self._reporting():
            return rows(self._opened(), query, *values)

    def _opened(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._server.connect(self._prepare)
        return self._connection

    def _prepare(self, connection: Connection) -> None:
        prepare(connection, self._server)
        if self._is_closed:  # by the thread that stops, while this one was at work
            raise SnapshotError("The registry of snapshots is closed. Open another.")

    def _check_lease(self, connection: Connection) -> None:
        """Raise where the lease was held by a session that is no more."""
        if not self._has_lease:
            return
        held = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
        ((locks,),) = rows(connection, held)
        if not locks:
            self._has_lease = False
            raise SnapshotError(
                "Publishing needs the leader's lease: the session that held it is gone, and "
                "another learner may hold it. Wait until this one acquires it again."
            )

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Turn errors of the store into ours; after one of the database, connect anew."""
        try:
            with self._server.reporting("used"):
                yield
        except (psycopg.Error, SnapshotError):
            raise
        except Exception as error:  # of a store, which may be any
            if self._connection is not None and self._connection.broken:
                self._connection = None
            if isinstance(error, FastbanditError):
                raise
            raise SnapshotError(
                f"Snapshots need a store that can be used: {self.name} cannot "
                f"({type(error).__name__}: {hide_password(str(error))}). See that it is there; "
                f"nothing was changed."
            ) from error
