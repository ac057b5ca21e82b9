"""Forgets a subject: its decisions and rewards keep their numbers, and nothing else.

A decision that was forgotten has an empty context, arms that are their positions, and a name made
of its number; its rewards are 0. So joins count as before, and nothing is learned, exported or
shown of it. The same is done in the archive; training data loses its interactions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import apsw
from msgspec import json

from fastbandit.files.manifest import write_json
from fastbandit.storage.archive import Archive
from fastbandit.storage.history_files import HistoryFiles
from fastbandit.storage.log_input import text_of
from fastbandit.storage.retention import changing, last_in
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import all_rows

_AT_ONCE = 200
_TRIES = 20
_CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"
_COUNTED = "SELECT seq, decision, arm FROM rewards WHERE decision = ? AND status = 'counted'"
_REMEMBER = "INSERT INTO forgotten_decisions (seq) VALUES (?) ON CONFLICT DO NOTHING"
_OTHERS = "SELECT seq, decision, arm FROM rewards WHERE status <> 'counted' AND seq > ?"

Blank = dict[str, Any]
"""Columns of a row that was forgotten."""


@dataclass(frozen=True)
class Forgotten:
    """How much was forgotten where, and what still holds it. It does not say of whom.

    `versions` learned from it before: their weights hold what they made of it until `until`.
    `copies` are files beside the log that still hold it: an upgrade left them, or a spool.
    `unreached` says what else may hold it, that this machine cannot reach.
    """

    at: str
    decisions: int
    rewards: int
    archived_decisions: int
    archived_rewards: int
    interactions: int
    versions: list[int]
    until: str
    copies: list[str]
    unreached: list[str] = field(default_factory=list)
    receipt: str = ""


@dataclass
class Found:
    """Decisions to forget: the number and the arms of each, by id."""

    decisions: dict[str, tuple[int, list[Any]]]

    @property
    def seqs(self) -> list[int]:
        """The numbers of the decisions, in order."""
        return sorted(seq for seq, _ in self.decisions.values())

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        self.decisions |= {id: (seq, json.decode(arms)) for seq, id, arms in rows}

    def decision(self, id: str) -> Blank:
        seq, arms = self.decisions[id]
        names = ("propensities", "eligible", "eligible_hash", "other", "offered", "subject")
        blank = dict.fromkeys(names)
        positions, zeros = list(range(len(arms))), [0.0] * len(arms)
        named = {"id": name_of(seq), "context": "[]", "seed": 0}
        return {**blank, **named, "arms": text_of(positions), "scores": text_of(zeros)}

    def reward(self, id: str, arm: str | None) -> Blank:
        seq, arms = self.decisions[id]
        known = None if arm is None else json.decode(arm)
        position = text_of(arms.index(known)) if known in arms else None
        return {"decision": name_of(seq), "arm": position, "part": "", "value": 0.0}


def name_of(seq: int) -> str:
    """Return what the decision of a number is called once it was forgotten.

    No request can name a decision so: its id would have to be that of another, or get its rewards.
    """
    return f"forgotten/{seq}"


def forget(data_dir: Path, log: Path, subject: str, *, keep: int) -> Forgotten:
    """Forget a subject in a data folder, and write a receipt; a service may run meanwhile."""
    found, archive = Found({}), Archive(data_dir / "archive")
    with changing(data_dir, log) as connection:
        archive.remove_drafts()
        query = "SELECT seq, id, arms FROM decisions WHERE subject = ?"
        found.add(all_rows(connection, query, subject))
        in_log = len(found.decisions)
        find_archived(archive, found, subject)
        seqs = found.seqs
        gone = HistoryFiles(data_dir / "history").remove(decisions=seqs) if seqs else 0
        last = last_in(connection)
        rewards = _forget_rewards(connection, found)
        archived = forget_archived(archive, found)
        # the subjects go last: what ended half-way is found again
        rewards += _forget_decisions(connection, found, last)
    made = Forgotten(
        at=datetime.now(UTC).isoformat(),
        decisions=in_log,
        rewards=rewards,
        archived_decisions=archived[0],
        archived_rewards=archived[1],
        interactions=gone,
        versions=versions_of(SnapshotStore(data_dir / "snapshots"), seqs),
        until=until_dropped(keep),
        copies=[path.name for path in sorted(data_dir.glob(f"{log.name}.version-*"))],
    )
    return with_receipt(data_dir, made)


def until_dropped(keep: int) -> str:
    """Say until when older versions hold what they made of it."""
    return f"a version is made from what is left, and learn.keep = {keep} drops the older ones"


def with_receipt(data_dir: Path, made: Forgotten) -> Forgotten:
    """Write a receipt into a data folder, and return what was done with its path."""
    folder = data_dir / "receipts"
    folder.mkdir(exist_ok=True)
    path = folder / f"forgotten-{made.at[:10]}-{token_hex(4)}.json"
    notes = asdict(made)
    del notes["receipt"]
    write_json(path, notes)
    return Forgotten(**notes, receipt=str(path))


def versions_of(store: SnapshotStore, seqs: Sequence[int]) -> list[int]:
    """Return the versions that looked at one of these events."""
    return [one.version for one in store.list() if seqs and one.cut.seq >= seqs[0]]


def forget_seqs(connection: apsw.Connection, seqs: Sequence[int]) -> None:
    """Forget decisions of a log by their numbers, and remember that they were.

    Those that a copy does not hold yet are left for the next time.
    """
    found, last = Found({}), last_in(connection)
    seqs = [seq for seq in seqs if seq <= last]
    for seq in seqs:
        found.add(all_rows(connection, "SELECT seq, id, arms FROM decisions WHERE seq = ?", seq))
    _forget_rewards(connection, found)
    _forget_decisions(connection, found, last)
    with connection:
        connection.executemany(_REMEMBER, [(seq,) for seq in seqs])


def _forget_decisions(connection: apsw.Connection, found: Found, last: int) -> int:
    """Forget decisions, and the rewards that came for them after the event `last`."""
    blanks = {id: found.decision(id) for id in found.decisions}
    _update(connection, "decisions", "id", blanks)
    count = _forget_rewards(connection, found, last)
    empty_wal(connection)
    return count


def _forget_rewards(connection: apsw.Connection, found: Found, after: int = 0) -> int:
    """Forget rewards: those that counted are found by an index, others are read through.

    Those are read from the event `after` on.
    """
    rows = [row for id in found.decisions for row in all_rows(connection, _COUNTED, id)]
    others = connection.execute(_OTHERS, (after,)) if found.decisions else ()
    rows += [row for row in others if row[1] in found.decisions]
    _update(connection, "rewards", "seq", {row[0]: found.reward(row[1], row[2]) for row in rows})
    return len(rows)


def _update(connection: apsw.Connection, table: str, key: str, blanks: Mapping[Any, Blank]) -> None:
    """Write blank columns into rows, a few at a time: appends wait for each transaction."""
    every = list(blanks.items())
    for first in range(0, len(every), _AT_ONCE):
        with connection:
            for value, blank in every[first : first + _AT_ONCE]:
                columns = ", ".join(f"{name} = ?" for name in blank)
                query = f"UPDATE {table} SET {columns} WHERE {key} = ?"
                connection.execute(query, (*blank.values(), value))
        time.sleep(0.001)


def find_archived(archive: Archive, found: Found, subject: str) -> None:
    """Add the decisions of a subject that are in an archive."""
    for day in archive.days():
        held = archive.find(day, "decisions", "subject", [subject])
        found.add([(row["seq"], row["id"], row["arms"]) for row in held])


def forget_archived(
    archive: Archive, found: Found, changing_day: Callable[[str], None] = lambda day: None
) -> tuple[int, int]:
    """Forget decisions and rewards in an archive; return how many of each.

    `changing_day` is called with each day before it is written anew.
    """
    if not found.decisions:
        return 0, 0
    counts = []
    kinds: tuple[tuple[str, str, Callable[[Any], Blank]], ...] = (
        ("rewards", "decision", lambda row: found.reward(row["decision"], row["arm"])),
        ("decisions", "id", lambda row: found.decision(row["id"])),
    )
    for kind, column, blank in kinds:
        count = 0
        for day, rows in _held(archive, kind, column, list(found.decisions)):
            changing_day(day)
            archive.rewrite(day, kind, {row["seq"]: {**row, **blank(row)} for row in rows})
            count += len(rows)
        counts.append(count)
    return counts[1], counts[0]


def _held(
    archive: Archive, kind: str, column: str, ids: Sequence[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for day in archive.days():
        rows = archive.find(day, kind, column, ids)
        if rows:
            yield day, rows


def empty_wal(connection: apsw.Connection) -> None:
    """Have SQLite's write-ahead log hold nothing of before, once nobody reads it."""
    for _ in range(_TRIES):
        with suppress(apsw.BusyError):
            ((is_busy, _, _),) = all_rows(connection, _CHECKPOINT)
            if not is_busy:
                return
        time.sleep(0.1)
