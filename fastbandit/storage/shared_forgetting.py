"""Forgets a subject in a log that machines share: in its tables, its archive, and on this machine.

First a salted hash of the subject is written, so that a decision about it that waits in the spool
of a decider comes into the log empty. The numbers of its decisions are written as well: training
data and copies of the log on other machines follow these when they are next used.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastbandit.storage.forgetting import (
    Blank,
    Forgotten,
    Found,
    find_archived,
    forget_archived,
    forget_seqs,
    until_dropped,
    versions_of,
    with_receipt,
)
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.local_copy import change_copy
from fastbandit.storage.postgres_connection import Connection, rows, sql, taking_its_time
from fastbandit.storage.postgres_sql import REMEMBER_SUBJECT
from fastbandit.storage.shared_archive import SharedArchive
from fastbandit.storage.shared_retention import changing_shared
from fastbandit.storage.snapshot_store import SnapshotStore

UNREACHED = (
    "spools of other deciders: what waits there comes into the log without its content",
    "training data and copies of the log on other machines, until they are next used there",
    "the write-ahead log, replicas and backups of the database; VACUUM FULL writes tables anew",
    "earlier versions of objects, where the store of the snapshots retains them",
)
_AT_ONCE = 200
_DECISIONS = "SELECT seq, id, arms::text FROM decisions WHERE subject = %s"
_PLACES = "SELECT seq, at, id FROM decisions WHERE id = ANY(%s) AND seq = ANY(%s)"
_REWARDS = "SELECT seq, at, decision, arm FROM rewards WHERE decision = ANY(%s)"
_REMEMBER = """
INSERT INTO forgotten_decisions (seq) SELECT unnest(%s::bigint[]) ON CONFLICT DO NOTHING
"""
_BESIDE = "DELETE FROM counted WHERE decision = ANY(%s)", "DELETE FROM terms WHERE id = ANY(%s)"


def forget_shared(
    url: str,
    store: SnapshotStore,
    archive: SharedArchive,
    folder: Path,
    subject: str,
    *,
    keep: int,
    schema: str = "fastbandit",
) -> Forgotten:
    """Forget a subject in a log in PostgreSQL and in the data folder of this machine."""
    found = Found({})
    with changing_shared(url, schema=schema) as connection:
        connection.execute(REMEMBER_SUBJECT, (subject,))
        archive.remove_unnamed(connection)
        archive.follow(connection)
        found.add(rows(connection, _DECISIONS, subject))
        in_log = len(found.decisions)
        find_archived(archive.local, found, subject)
        seqs, ids = found.seqs, list(found.decisions)
        connection.execute(_REMEMBER, (seqs,))
        gone = HistoryFiles(folder / "history").remove(decisions=seqs) if seqs else 0
        rewards = _forget_rewards(connection, found, ids)
        with archive.rewriting(connection) as begin:
            archived = forget_archived(archive.local, found, begin)
        # the subjects go last: what ended half-way is found again
        _forget_decisions(connection, found, ids)
        rewards += _forget_rewards(connection, found, ids)  # that came meanwhile
    change_copy(folder, lambda connection: forget_seqs(connection, found.seqs))
    made = Forgotten(
        at=datetime.now(UTC).isoformat(),
        decisions=in_log,
        rewards=rewards,
        archived_decisions=archived[0],
        archived_rewards=archived[1],
        interactions=gone,
        versions=versions_of(store, seqs),
        until=until_dropped(keep),
        copies=[path.name for path in sorted(folder.glob("spool*.db"))],
        unreached=[*UNREACHED],
    )
    return with_receipt(folder, made)


def _forget_rewards(connection: Connection, found: Found, ids: list[str]) -> int:
    """Forget rewards of decisions, and what is known of those beside; return how many rewards."""
    with taking_its_time(connection):
        came = rows(connection, _REWARDS, ids)
    _update(connection, "rewards", [((s, at), found.reward(id, arm)) for s, at, id, arm in came])
    for query in _BESIDE:
        connection.execute(query, (ids,))
    return len(came)


def _forget_decisions(connection: Connection, found: Found, ids: list[str]) -> None:
    places = rows(connection, _PLACES, ids, found.seqs)
    _update(connection, "decisions", [((seq, at), found.decision(id)) for seq, at, id in places])


def _update(
    connection: Connection, table: str, blanks: Sequence[tuple[tuple[int, int], Blank]]
) -> None:
    """Write blank columns into rows, by number and time, a few in each transaction."""
    for first in range(0, len(blanks), _AT_ONCE):
        with connection.transaction():
            for place, blank in blanks[first : first + _AT_ONCE]:
                connection.execute(_statement(table, blank), (*blank.values(), *place))


def _statement(table: str, blank: Blank) -> Any:
    columns = [sql.SQL("{} = %s").format(sql.Identifier(name)) for name in blank]
    query = sql.SQL("UPDATE {} SET {} WHERE seq = %s AND at = %s")
    return query.format(sql.Identifier(table), sql.SQL(", ").join(columns))
