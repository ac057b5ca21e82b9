"""Where a service's log and snapshots are: in its data folder, or shared with other machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fastbandit.files.signing import read_keys
from fastbandit.settings.service import Config
from fastbandit.storage.column_marks import NOTHING, SecretNames
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog

if TYPE_CHECKING:
    from fastbandit.storage.postgres_log import PostgresLog

AnyLog: TypeAlias = "SqliteLog | PostgresLog"


def open_log(
    url: str,
    folder: Path,
    *,
    is_reader: bool = False,
    timeout_seconds: float = 10.0,
    secret: SecretNames = NOTHING,
) -> AnyLog:
    """Open the log at a URL of PostgreSQL, or that of the data folder where none is named.

    An answer of PostgreSQL is waited for up to `timeout_seconds`. A log that is written to
    remembers which columns are `secret`.
    """
    if not url:
        return SqliteLog(folder / LOG_FILE, is_reader=is_reader, secret=secret)
    from fastbandit.storage.postgres_log import PostgresLog

    terms = {"timeout_seconds": timeout_seconds, "secret": secret}
    return PostgresLog(url, is_reader=is_reader, **terms)  # type: ignore[arg-type]


def service_store(config: Config) -> SnapshotStore:
    """Open the snapshots of a service."""
    own, folder = config.snapshots, Path(config.server.data_dir)
    return open_store(config.log.url, own.url, folder, key_file=own.signing_key_file)


def open_store(log_url: str, url: str, folder: Path, *, key_file: str = "") -> SnapshotStore:
    """Open the snapshots of a data folder; with a URL for all machines, the folder follows that.

    With a file of keys, versions are signed, and need to be.
    """
    keys = read_keys(key_file)
    if not url:
        return SnapshotStore(folder / "snapshots", keys=keys)
    from fastbandit.storage.registered_store import RegisteredStore
    from fastbandit.storage.snapshot_registry import SnapshotRegistry

    return RegisteredStore(folder / "snapshots", SnapshotRegistry(log_url, url), keys=keys)
