"""Whether a log is the one that the snapshots beside it learned from, with all that it held.

Snapshots name their log, and each version the event up to which it learned. A service writes down
the last event of its log every second, in a file beside it: so a log that lost its newest events is
noticed too.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fastbandit.errors import LogError
from fastbandit.files.atomic import write_atomic
from fastbandit.storage.events import EventLog
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut

_LOGGER = logging.getLogger("fastbandit.storage")
MARK = "events.last"
"""The file that holds which log a data folder has, and its last event."""


def check_log(log: EventLog, store: SnapshotStore, folder: Path) -> None:
    """Raise unless a log is the one of the current version, and lacks nothing that it had."""
    found = _mismatch(log, store) or _loss(log, store, folder)
    if found is not None:
        raise LogError(
            f"A service needs the log that its snapshots learned from: {found} Restore that log "
            f"from a backup. To go on with the one that is there, run once: fastbandit serve "
            f"--accept-log"
        )


def accept_log(log: EventLog, store: SnapshotStore, folder: Path) -> str | None:
    """Let the current version go on with a log that is not its own; return what was wrong.

    All of another log is learned; of the same log, what comes from now on.
    """
    found, current = _mismatch(log, store), store.current()
    if current is not None and found is not None:
        cut = Cut(interactions=current.cut.interactions)
        if not _is_foreign(log, store) and log.last:
            since, (event,) = min(current.cut.since, log.last), log.read(after=log.last - 1)
            cut = replace(cut, seq=event.seq, at=event.at, since=since)
        begins = min(int(current.notes.get("begins", 0)), cut.seq)  # all that follows is learned
        store.move_cut(replace(current, notes={**current.notes, "begins": begins}), cut)
        store.name_log(log.identity)
    found = found or _loss(log, store, folder)
    if found is None:
        return None
    write_mark(log, folder)
    _LOGGER.warning("another log was accepted", extra={"reason": found})
    return found


def write_mark(log: EventLog, folder: Path) -> None:
    """Write down which log a folder has, and its last event; a power cut may take that away."""
    mark = {"log": log.identity, "last": log.last}
    with suppress(OSError):
        write_atomic(folder / MARK, json.dumps(mark).encode(), sync=False)


def _mismatch(log: EventLog, store: SnapshotStore) -> str | None:
    """Say why a log cannot be the one that the current version learned from."""
    current, last = store.current(), log.last
    if current is None or current.cut.seq == 0:
        return None
    cut = current.cut
    learned = f"version {current.version} learned up to event {cut.seq:,}"
    if _is_foreign(log, store):
        return f"{learned} of the log {store.log[:8]}, and this is {log.identity[:8]}."
    if last < cut.seq:
        return f"{learned}, and the log ends at event {last:,}."
    at_cut = [event.at for event in log.read(after=cut.seq - 1, limit=1) if event.seq == cut.seq]
    if at_cut and at_cut != [cut.at]:
        return f"{learned}, and that event of the log is of another time."
    return None


def _is_foreign(log: EventLog, store: SnapshotStore) -> bool:
    return "" not in (store.log, log.identity) and store.log != log.identity


def _loss(log: EventLog, store: SnapshotStore, folder: Path) -> str | None:
    """Say how many events are lost that a service had seen in the log of its snapshots."""
    try:
        mark = json.loads((folder / MARK).read_bytes())
        named, last = str(mark["log"]), int(mark["last"])
    except (OSError, ValueError, TypeError, LookupError):
        return None
    found = log.last if named == log.identity else 0  # another log holds none of them
    if not named or named not in (log.identity, store.log) or last <= found:
        return None
    return f"it had {last:,} events when it was last served, and has {found:,}."
