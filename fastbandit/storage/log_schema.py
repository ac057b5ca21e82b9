"""The tables of the event log in SQLite, and the steps from each version to the next.

A step is one transaction that ends by writing the new version into the file's header, so a
step that is interrupted has not begun. A copy of the file is made beside it before the first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from fastbandit.errors import LogError
from fastbandit.files.atomic import replacing
from fastbandit.storage.sqlite_files import connect

APPLICATION_ID = 0x46424C47  # "FBLG", in the header: this file is ours
STEPS: tuple[str, ...] = (
    """
        -- tables of events
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
    """
        -- counted rewards by their decision
        CREATE INDEX counted_rewards ON rewards (decision, arm, part) WHERE status = 'counted';
    """,
    """
        -- who decided, and the arm of the other
        ALTER TABLE decisions ADD COLUMN decided_by TEXT NOT NULL DEFAULT 'bandit';
        ALTER TABLE decisions ADD COLUMN other TEXT;
        CREATE INDEX compared_decisions ON decisions (seq) WHERE other IS NOT NULL;
    """,
    """
        -- columns named as the field names them
        ALTER TABLE decisions RENAME COLUMN otherwise TO default_reward;
        ALTER TABLE decisions RENAME COLUMN sums TO adds_up;
        ALTER TABLE decisions RENAME COLUMN floor TO epsilon;
        ALTER TABLE changes RENAME COLUMN put TO upserted;
        ALTER TABLE changes RENAME COLUMN taken TO discarded;
    """,
    """
        -- arms that came with requests
        ALTER TABLE decisions ADD COLUMN offered TEXT;
        CREATE INDEX offering_decisions ON decisions (seq) WHERE offered IS NOT NULL;
    """,
    """
        -- which log this is, and how its time follows from that of the machine
        CREATE TABLE about (
            is_one INTEGER PRIMARY KEY CHECK (is_one = 1), identity TEXT NOT NULL,
            boot TEXT, ahead INTEGER, skew INTEGER
        ) STRICT;
        INSERT INTO about (is_one, identity) VALUES (1, lower(hex(randomblob(16))));
    """,
    """
        -- eligible arms stored once, own times of spooled decisions, outages
        CREATE TABLE eligible_lists (hash TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT;
        ALTER TABLE decisions ADD COLUMN eligible_hash TEXT;
        ALTER TABLE decisions ADD COLUMN made_at INTEGER;
        ALTER TABLE ticks ADD COLUMN outage INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX outages ON ticks (seq, outage) WHERE outage > 0;
        CREATE INDEX listing_decisions ON decisions (eligible_hash)
            WHERE eligible_hash IS NOT NULL;
    """,
    """
        -- whom decisions are about
        ALTER TABLE decisions ADD COLUMN subject TEXT;
        CREATE INDEX decisions_of_subjects ON decisions (subject) WHERE subject IS NOT NULL;
    """,
    """
        -- columns that are secret, those dropped up to a number, and decisions forgotten
        CREATE TABLE secret_columns (
            owner TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (owner, name)
        ) STRICT;
        CREATE TABLE dropped_columns (name TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
        CREATE TABLE forgotten_decisions (seq INTEGER PRIMARY KEY) STRICT;
    """,
)
"""What each version added to the one before; the first version is 1."""
VERSION = len(STEPS)
_NO_ABOUT = """
    CREATE TEMP VIEW IF NOT EXISTS about AS SELECT '' AS identity, NULL AS boot, NULL AS ahead,
        NULL AS skew;
"""
_NO_LISTS = """
    CREATE TEMP VIEW IF NOT EXISTS eligible_lists AS SELECT '' AS hash, '' AS content WHERE false;
    CREATE TEMP VIEW IF NOT EXISTS ticks AS SELECT *, 0 AS outage FROM main.ticks;
    CREATE TEMP VIEW IF NOT EXISTS decisions AS
        SELECT *, NULL AS eligible_hash, NULL AS made_at"""
_NO_SUBJECT = ", NULL AS subject"
_NO_MARKS = """
    CREATE TEMP VIEW IF NOT EXISTS secret_columns AS SELECT '' AS owner, '' AS name WHERE false;
    CREATE TEMP VIEW IF NOT EXISTS dropped_columns AS SELECT '' AS name, 0 AS until WHERE false;
    CREATE TEMP VIEW IF NOT EXISTS forgotten_decisions AS SELECT 0 AS seq WHERE false;
"""
_AS_TODAY = {
    3: f"""
    {_NO_MARKS}{_NO_ABOUT}{_NO_LISTS}{_NO_SUBJECT}, otherwise AS default_reward, sums AS adds_up,
        floor AS epsilon, NULL AS offered FROM main.decisions;
    CREATE TEMP VIEW IF NOT EXISTS changes AS SELECT *, put AS upserted, taken AS discarded
        FROM main.changes;
    """,
    4: f"{_NO_MARKS}{_NO_ABOUT}{_NO_LISTS}{_NO_SUBJECT}, NULL AS offered FROM main.decisions;",
    5: f"{_NO_MARKS}{_NO_ABOUT}{_NO_LISTS}{_NO_SUBJECT} FROM main.decisions;",
    6: f"{_NO_MARKS}{_NO_LISTS}{_NO_SUBJECT} FROM main.decisions;",
    7: f"{_NO_MARKS}CREATE TEMP VIEW IF NOT EXISTS decisions AS SELECT *{_NO_SUBJECT} "
    "FROM main.decisions;",
    8: _NO_MARKS,
}
"""By older versions that can be read as they are: views that name columns as today."""


class NewerLogError(LogError):
    """A file was written by a version of fastbandit that is newer than this one."""


def prepare(
    connection: apsw.Connection, path: Path, *, reached: Callable[[str], None] = lambda step: None
) -> None:
    """Bring a log to today's version, or say why that cannot be."""
    found = version_of(connection, path)
    if found == VERSION:
        return
    if found:
        with replacing(path.with_name(f"{path.name}.version-{found}")) as beside:
            with (
                closing(connect(beside)) as copy,
                copy.backup("main", connection, "main") as backup,
            ):
                backup.step()
            reached("copied")
        reached("copy named")
    for number, sql in enumerate(STEPS[found:], start=found + 1):
        reached(f"before step {number}")
        with connection:
            connection.execute(sql)
            reached(f"within step {number}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
        reached(f"after step {number}")
    connection.execute(
        "PRAGMA wal_checkpoint(TRUNCATE)"
    ).fetchall()  # who it is, in the file itself


def open_for_reading(connection: apsw.Connection, path: Path) -> None:
    """Let a log be read by the names of today's columns, or raise where it is too old for that."""
    found = version_of(connection, path)
    if found in _AS_TODAY:
        connection.execute(_AS_TODAY[found])
    elif found != VERSION:
        raise LogError(
            f"Reading needs a log of version {min(_AS_TODAY)} to {VERSION}: {path} has version "
            f"{found}. Open it for writing once, which upgrades it: start the service."
        )


def version_of(connection: apsw.Connection, path: Path) -> int:
    """Return the version of the tables in a file: 0 for an empty one."""
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
        raise NewerLogError(
            f"This version reads logs of version {VERSION} and older: {path} has version "
            f"{version}. Install a newer fastbandit."
        )
    return version


def _number(connection: apsw.Connection, sql: str) -> int:
    rows: list[Any] = connection.execute(sql).fetchall()
    return int(rows[0][0])
