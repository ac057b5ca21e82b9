"""Rewards that could not be delivered yet, in a file that outlives the process.

It is a SQLite file, because several processes may share it and each reward must be there or
not, whenever one is killed. It has a rollback journal instead of a write-ahead log: Python
comes with whatever SQLite it was built with, and before 3.51.3 a write-ahead log with several
writers can lose what was synced. A connection lives as long as one step, so a spool can be
used by any thread and after a fork.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import time

from msgspec import json

from fastbandit.client.shapes import Reward, encode
from fastbandit.errors import SpoolError, SpoolFull
from fastbandit.files.private import private_file

APPLICATION_ID = 0x46425350  # "FBSP", in the header: this file is ours
_TABLE = """
CREATE TABLE rewards (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, decision TEXT NOT NULL,
    reward TEXT NOT NULL, refusal TEXT, unknown_since REAL, due REAL NOT NULL DEFAULT 0
);
CREATE INDEX rewards_by_decision ON rewards (decision);
"""
_FIRST = """
SELECT number, reward FROM rewards
WHERE refusal IS NULL AND NOT EXISTS (
    SELECT 1 FROM rewards other
    WHERE other.decision = rewards.decision AND other.refusal IS NULL AND other.due > ?1
)
ORDER BY number LIMIT ?2
"""
_UNKNOWN = """
UPDATE rewards SET unknown_since = coalesce(unknown_since, ?1),
    due = ?1 + max(?2, ?1 - coalesce(unknown_since, ?1))
WHERE number = ?3 AND ?1 - coalesce(unknown_since, ?1) < ?4
"""
_STORE = "INSERT INTO rewards (at, decision, reward, unknown_since, due) VALUES (?, ?, ?, ?, ?)"
_FIRST_WAIT = 1.0  # seconds until a reward of a decision that is unknown is sent again
_WAITING = "SELECT 1 FROM rewards WHERE decision = ? AND refusal IS NULL LIMIT 1"


class Spool:
    """Stores up to `limit` rewards in the file `path`, in their order; one file a service.

    A reward that the service rejected for good stays, with the reason, until it is taken out.
    One of a decision that is unknown waits for `unknown_seconds`: another decider may hold it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        limit: int = 100_000,
        unknown_seconds: float = 120.0,
        clock: Callable[[], float] = time,
    ) -> None:
        self.path, self.limit, self._clock = Path(path), limit, clock
        self.unknown_seconds = unknown_seconds
        private_file(self.path)
        with self._opened() as connection, _writing(connection):
            self._prepare(connection)

    def store(self, rewards: Sequence[Reward], *, are_unknown: bool = False) -> None:
        """Write rewards at the end, all or none: on return they outlive a power cut."""
        at = self._clock()
        since, due = (at, at + _FIRST_WAIT) if are_unknown else (None, 0.0)
        rows = [(at, one.decision, encode(one).decode(), since, due) for one in rewards]
        with self._opened() as connection, _writing(connection):
            ((held,),) = connection.execute("SELECT count(*) FROM rewards").fetchall()
            if held + len(rows) > self.limit:
                raise SpoolFull(
                    f"The spool may hold {self.limit:,} rewards: {self.path} holds {held:,}, and "
                    f"{len(rows):,} more came. They were not stored: see that the service answers, "
                    f"call flush(), or allow more with Spool(path, limit=…)."
                )
            connection.executemany(_STORE, rows)

    def first(self, count: int) -> list[tuple[int, Reward]]:
        """Return the rewards that have waited longest and may be sent now, with their numbers."""
        with self._opened() as connection:
            rows = connection.execute(_FIRST, (self._clock(), count)).fetchall()
        return [(number, json.decode(text, type=Reward)) for number, text in rows]

    def waiting(self, decisions: Iterable[str]) -> set[str]:
        """Return for which of some decisions a reward waits."""
        with self._opened() as connection:
            return {one for one in decisions if connection.execute(_WAITING, (one,)).fetchone()}

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget rewards that were acknowledged."""
        with self._opened() as connection, _writing(connection):
            connection.executemany(
                "DELETE FROM rewards WHERE number = ?", [(number,) for number in numbers]
            )

    def postpone(self, numbers: Iterable[int]) -> set[int]:
        """Let rewards of unknown decisions wait; return those that have waited enough.

        Each waits as long again as it did, so that it is sent a few times in all.
        """
        now, over = self._clock(), set()
        with self._opened() as connection, _writing(connection):
            for number in numbers:
                values = (now, _FIRST_WAIT, number, self.unknown_seconds)
                if connection.execute(_UNKNOWN, values).rowcount == 0:
                    over.add(number)
        return over

    def reject(self, number: int, why: str) -> None:
        """Set a reward aside that the service will never take."""
        with self._opened() as connection, _writing(connection):
            connection.execute("UPDATE rewards SET refusal = ? WHERE number = ?", (why, number))

    def take_rejected(self) -> list[tuple[Reward, str]]:
        """Return the rewards that were rejected, each with the reason, and forget them."""
        with self._opened() as connection, _writing(connection):
            rows = connection.execute(
                "SELECT reward, refusal FROM rewards WHERE refusal IS NOT NULL ORDER BY number"
            ).fetchall()
            connection.execute("DELETE FROM rewards WHERE refusal IS NOT NULL")
        return [(json.decode(text, type=Reward), why) for text, why in rows]

    def count(self) -> int:
        with self._opened() as connection:
            counted = "SELECT count(*) FROM rewards WHERE refusal IS NULL"
            return int(connection.execute(counted).fetchall()[0][0])

    # -- the file

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table in a new file; leave the files of others alone."""
        ((mark,),) = connection.execute("PRAGMA application_id").fetchall()
        if mark == APPLICATION_ID:  # of an earlier version, perhaps
            found = {row[1] for row in connection.execute("PRAGMA table_info(rewards)")}
            for name, kind in (("unknown_since", "REAL"), ("due", "REAL NOT NULL DEFAULT 0")):
                if name not in found:
                    connection.execute(f"ALTER TABLE rewards ADD COLUMN {name} {kind}")
            return
        if connection.execute("SELECT 1 FROM sqlite_master").fetchall():
            raise SpoolError(
                f"A spool needs a file of its own: {self.path} is some other SQLite database. "
                f"Name a file that does not exist yet."
            )
        for statement in filter(str.strip, _TABLE.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(
                sqlite3.connect(self.path, timeout=5.0, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")  # the folder is synced as well
                yield connection
        except sqlite3.Error as error:
            raise SpoolError(
                f"A spool needs a file that can be written to: {self.path} cannot "
                f"({type(error).__name__}: {error}). Make room on the disk, or name another file."
            ) from error


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all or nothing, with no other writer meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
