"""An event log that goes on while its server is unavailable, by a spool on the local disk.

Decisions that the server cannot take go to a file, marked as degraded. When the server is
back they are appended before anything else, in their order. A decision is known by its id, so
one that is sent twice is written once: whatever is interrupted is simply done again, and the
file goes only when all of it is in the log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from fastbandit.errors import FastbanditError, LogError, LogUnavailableError
from fastbandit.storage.events import DecisionMade, Event, EventLog, Outcome
from fastbandit.storage.sqlite_log import SqliteLog

_LOGGER = logging.getLogger("fastbandit.storage")
_GROUP = 256  # fewer than a writer gathers: a slow server takes them more easily


class SpooledLog:
    """Appends to `remote`; while that is unavailable, up to `most` decisions go to a spool.

    Appends come from one thread. While the remote is unavailable, as it may be at first, another
    one tries it, after `pauses[0]` seconds, then ever later up to `pauses[1]`, so that appends need
    not: they wait for it only where it has just answered.

    `unavailable` says why it is, None where it is not. `conflicts` counts spooled decisions
    whose id the log holds with other arms: those of the log stand. `reached` is called at each
    step.
    """

    def __init__(
        self,
        remote: EventLog,
        spool: str | Path,
        *,
        most: int = 100_000,
        pauses: tuple[float, float] = (0.2, 5.0),
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._remote, self._path, self._most = remote, Path(spool), most
        self._pauses, self._reached = pauses, reached
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._spool: SqliteLog | None = None
        self._thread: threading.Thread | None = None
        self._spooled = self._sent = 0  # numbers in the spool
        self._last = 0
        self.unavailable: FastbanditError | None = None
        self.conflicts = 0
        try:
            if self._path.exists():  # of an earlier life
                self._opened()
            self.replay()
        except LogUnavailableError as error:
            self._become_unavailable(error)
        except BaseException:
            self.close()
            raise

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events in their order, all or none; decisions go to the spool where they must.

        Those are "spooled", without a number. Other events raise while the remote is unavailable:
        whoever sent them tries again.
        """
        with self._lock:
            if self.unavailable is not None:
                return self._append_to_spool(events, self.unavailable)
        try:
            return self._remote.append(events)
        except LogUnavailableError as error:
            with self._lock:
                self._become_unavailable(error)
                return self._append_to_spool(events, error)

    def replay(self) -> None:
        """Append what is spooled to the remote, and remove the spool; raise if unavailable."""
        sent = _GROUP
        while sent == _GROUP:
            with self._lock:
                group = self._group()
            sent = self._send(group)
        if not sent:
            self._last = self._remote.last  # raises where it is unavailable
        with self._lock:  # what comes meanwhile waits: the rest is little, and the remote is there
            while self._send(self._group()):
                pass
            self._remove()
            self.unavailable = None

    def _append_to_spool(self, events: Sequence[Event], reason: FastbanditError) -> list[Outcome]:
        """Write decisions to the spool, or raise why the remote is unavailable."""
        decisions = [event for event in events if isinstance(event, DecisionMade)]
        if len(decisions) < len(events):
            raise LogUnavailableError(str(reason)) from reason
        if not decisions:
            return []
        spool = self._opened()
        if spool.last + len(decisions) > self._most:
            raise LogError(
                f"The spool of decisions may hold {self._most:,}: {self._path} holds "
                f"{spool.last:,}, and {len(decisions):,} more came. See that the server of the "
                f"log is back ({reason})."
            )
        outcomes = spool.append([structs.replace(made, degraded=True) for made in decisions])
        self._spooled = spool.last
        self._reached("spooled")
        return [Outcome(0, "repeated" if it.status == "repeated" else "spooled") for it in outcomes]

    def _group(self) -> list[DecisionMade]:
        events = [] if self._spool is None else self._spool.read(after=self._sent, limit=_GROUP)
        return [event for event in events if isinstance(event, DecisionMade)]

    def _send(self, group: list[DecisionMade]) -> int:
        if group:
            for made, outcome in zip(group, self._remote.append(group), strict=True):
                if outcome.status == "repeated":
                    self._compare(made)
            self._sent = group[-1].seq
            self._reached("sent")
        return len(group)

    def _compare(self, made: DecisionMade) -> None:
        """Count a decision that the log holds with other arms."""
        first = self._remote.decision(made.id)
        if first is not None and first.arms != made.arms:
            self.conflicts += 1
            both = {"decision": made.id, "spooled": made.arms, "logged": first.arms}
            _LOGGER.error("a spooled decision was made differently elsewhere", extra=both)

    def decision(self, id: str) -> DecisionMade | None:
        with self._lock:
            spooled = None if self._spool is None else self._spool.decision(id)
        return self._remote.decision(id) if spooled is None else spooled

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        return self._remote.read(after=after, limit=limit)

    @property
    def last(self) -> int:
        """The number of the last event of the log, as it was last known."""
        if self.unavailable is None:
            self._last = self._remote.last
        return self._last

    @property
    def identity(self) -> str:
        return self._remote.identity

    @property
    def waiting(self) -> int:
        return max(0, self._spooled - self._sent)

    def close(self) -> None:
        """Let go of the log and of the spool, which stays where it was not replayed."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        if self._spool is not None:
            self._spool.close()
        self._remote.close()

    def _opened(self) -> SqliteLog:
        if self._spool is None:
            self._spool = SqliteLog(self._path)
            self._spooled = self._spool.last
        return self._spool

    def _remove(self) -> None:
        if self._spool is None:
            return
        self._spool.close()
        self._spool, self._spooled, self._sent = None, 0, 0
        self._reached("closed")
        self._path.unlink(missing_ok=True)
        self._reached("removed")

    def _become_unavailable(self, error: LogUnavailableError) -> None:
        _LOGGER.error("the log is unavailable", extra={"reason": " ".join(str(error).split())})
        self.unavailable = error
        self._thread = threading.Thread(target=self._try_again, name="log spool", daemon=True)
        self._thread.start()

    def _try_again(self) -> None:
        pause, longest = self._pauses
        while not self._closing.wait(pause):
            try:
                self.replay()
            except FastbanditError as error:
                self.unavailable, pause = error, min(2 * pause, longest)
            else:
                _LOGGER.info("the log is back")
                return
