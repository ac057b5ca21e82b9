"""The tables of the event log in SQLite, and the steps from each version to the next.

A step is one transaction that ends by writing the new version into the file's header, so a
step that is interrupted has not begun. A copy of the file is kept beside it before the first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from fastbandit.errors import LogError

APPLICATION_ID = 0x46424C47  # "FBLG", in the header: this file is ours
STEPS: tuple[tuple[str, str], ...] = (
    (
        "tables of events",
        """
        CREATE TABLE decisions (
            seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
            context TEXT NOT NULL, arms TEXT NOT NULL, scores TEXT NOT NULL,
            seed INTEGER NOT NULL, version INTEGER NOT NULL, catalogue INTEGER NOT NULL,
            until INTEGER NOT NULL, otherwise REAL NOT NULL, sums INTEGER NOT NULL,
            explored INTEGER NOT NULL, floor REAL NOT NULL, propensities TEXT, eligible TEXT,
            degraded INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE rewards (
            seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, decision TEXT NOT NULL, arm TEXT,
            part TEXT NOT NULL, value REAL NOT NULL, status TEXT NOT NULL
        ) STRICT;
        CREATE TABLE changes (
            seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, put TEXT NOT NULL, taken TEXT NOT NULL
        ) STRICT;
        CREATE TABLE ticks (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
        """,
    ),
    (
        "counted rewards by their decision",
        """
        CREATE INDEX counted_rewards ON rewards (decision, arm, part) WHERE status = 'counted';
        """,
    ),
    (
        "who decided, and the arm of the other",
        """
        ALTER TABLE decisions ADD COLUMN decided_by TEXT NOT NULL DEFAULT 'bandit';
        ALTER TABLE decisions ADD COLUMN other TEXT;
        CREATE INDEX compared_decisions ON decisions (seq) WHERE other IS NOT NULL;
        """,
    ),
)
"""What each version added to the one before; the first version is 1."""
VERSION = len(STEPS)


def prepare(
    connection: apsw.Connection, path: Path, *, reached: Callable[[str], None] = lambda step: None
) -> None:
    """Bring a log to today's version, or say why that cannot be."""
    found = version_of(connection, path)
    if found == VERSION:
        return
    if found:
        _keep_copy(connection, path.with_name(f"{path.name}.version-{found}"), reached)
    for number, (_, sql) in enumerate(STEPS[found:], start=found + 1):
        reached(f"before step {number}")
        with connection:
            connection.execute(sql)
            reached(f"within step {number}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
        reached(f"after step {number}")


def check_version(connection: apsw.Connection, path: Path, *, is_reader: bool) -> None:
    """Raise unless a log can be written to, or read as it is."""
    found = version_of(connection, path)
    if is_reader and found != VERSION:
        raise LogError(
            f"Reading needs a log of version {VERSION}: {path} has version {found}. Open it for "
            f"writing once, which upgrades it: start the service."
        )


def version_of(connection: apsw.Connection, path: Path) -> int:
    """Give the version of the tables in a file: 0 for an empty one."""
    tables = _number(connection, "SELECT count(*) FROM sqlite_schema")
    mark = _number(connection, "PRAGMA application_id")
    version = _number(connection, "PRAGMA user_version")
    if tables == version == 0:
        return 0
    if mark != APPLICATION_ID:
        raise LogError(
            f"A log needs to be a file that fastbandit wrote: {path} is some other SQLite "
            f"database. Name another data folder."
        )
    if version > VERSION:
        raise LogError(
            f"This version reads logs of version {VERSION} and older: {path} has version "
            f"{version}. Install a newer fastbandit."
        )
    return version


def _number(connection: apsw.Connection, sql: str) -> int:
    rows: list[Any] = connection.execute(sql).fetchall()
    return int(rows[0][0])


def _keep_copy(connection: apsw.Connection, path: Path, reached: Callable[[str], None]) -> None:
    """Copy the whole log beside itself, under a name that is only given to a whole copy."""
    beside = path.with_name(f"{path.name}.part")
    beside.unlink(missing_ok=True)
    copy = apsw.Connection(str(beside))
    with copy.backup("main", connection, "main") as backup:
        backup.step()
    copy.close()
    _sync(beside)
    reached("copied")
    beside.replace(path)
    _sync(path.parent)
    reached("copy named")


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
