"""An event log that goes on deciding while its server is away, from a spool on the local disk.

Decisions that the server cannot take are kept in a file, marked as degraded. When the server is
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

from fastbandit.errors import FastbanditError, LogAwayError, LogError
from fastbandit.events import DecisionMade, Event, EventLog, Outcome
from fastbandit.storage.sqlite_log import SqliteLog

_LOGGER = logging.getLogger("fastbandit.storage")
_GROUP = 1024


class SpooledLog:
    """Appends to `remote`; while that is away, keeps up to `most` decisions in the file `spool`.

    Appends come from one thread. While the remote is away another one tries it, after
    `pauses[0]` seconds at first, then ever later up to `pauses[1]`, so that appends need not.
    `away` says why it is away, None where it is not. `conflicts` counts spooled decisions
    whose id the log holds with other arms: those of the log stand. `reached` is told each step.
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
        self._sent = 0
        self.away: FastbanditError | None = None
        self.conflicts = 0
        if self._path.exists():  # of an earlier life
            try:
                self.replay()
            except LogAwayError as error:
                self._go_away(error)

    # -- writing

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events in their order, all or none; decisions go to the spool where they must.

        Those are told as "spooled", without a number. Other events raise while the remote is
        away: whoever sent them tries again.
        """
        with self._lock:
            if self.away is not None:
                return self._keep(events, self.away)
        try:
            return self._remote.append(events)
        except LogAwayError as error:
            with self._lock:
                self._go_away(error)
                return self._keep(events, error)

    def replay(self) -> None:
        """Append what is spooled to the remote, and remove the spool; raise where that is away."""
        while True:
            with self._lock:
                group = self._group()
                if len(group) < _GROUP:  # the rest: what comes meanwhile waits
                    self._send(group)
                    self._remove()
                    self.away = None
                    return
            self._send(group)

    def _keep(self, events: Sequence[Event], away: FastbanditError) -> list[Outcome]:
        """Write decisions to the spool, or raise what keeps the remote away."""
        decisions = [event for event in events if isinstance(event, DecisionMade)]
        if len(decisions) < len(events):
            raise LogAwayError(str(away)) from away
        if not decisions:
            return []
        spool = self._opened()
        if spool.last + len(decisions) > self._most:
            raise LogError(
                f"The spool of decisions may hold {self._most:,}: {self._path} holds "
                f"{spool.last:,}, and {len(decisions):,} more came. See that the server of the "
                f"log is back ({away})."
            )
        outcomes = spool.append([structs.replace(made, degraded=True) for made in decisions])
        self._reached("spooled")
        return [Outcome(0, "repeated" if it.status == "repeated" else "spooled") for it in outcomes]

    def _group(self) -> list[DecisionMade]:
        """Give the next decisions of the spool."""
        events = self._opened().read(after=self._sent, limit=_GROUP)
        return [event for event in events if isinstance(event, DecisionMade)]

    def _send(self, group: list[DecisionMade]) -> None:
        if group:
            for made, outcome in zip(group, self._remote.append(group), strict=True):
                if outcome.status == "repeated":
                    self._compare(made)
            self._sent = group[-1].seq
            self._reached("sent")

    def _compare(self, made: DecisionMade) -> None:
        """Count a decision that the log holds with other arms."""
        first = self._remote.decision(made.id)
        if first is not None and first.arms != made.arms:
            self.conflicts += 1
            told = {"decision": made.id, "spooled": made.arms, "logged": first.arms}
            _LOGGER.error("a spooled decision was made otherwise elsewhere", extra=told)

    # -- reading

    def decision(self, id: str) -> DecisionMade | None:
        """Give the decision of an id, from the spool or from the log."""
        with self._lock:
            spooled = None if self._spool is None else self._spool.decision(id)
        return self._remote.decision(id) if spooled is None else spooled

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Give the events of the log that come after a number, in their order."""
        return self._remote.read(after=after, limit=limit)

    @property
    def last(self) -> int:
        """The number of the last event of the log, 0 where there is none."""
        return self._remote.last

    @property
    def waiting(self) -> int:
        """The number of decisions that wait in the spool."""
        with self._lock:
            return 0 if self._spool is None else self._spool.last - self._sent

    def close(self) -> None:
        """Let go of the log and of the spool, which stays where it was not replayed."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        if self._spool is not None:
            self._spool.close()
        self._remote.close()

    # -- the spool, and the thread that tries the remote

    def _opened(self) -> SqliteLog:
        if self._spool is None:
            self._spool = SqliteLog(self._path)
        return self._spool

    def _remove(self) -> None:
        """Remove the spool, all of which is in the log."""
        if self._spool is not None:
            self._spool.close()
        self._spool, self._sent = None, 0
        self._reached("closed")
        self._path.unlink(missing_ok=True)
        self._reached("removed")

    def _go_away(self, error: LogAwayError) -> None:
        _LOGGER.error("the log is away", extra={"reason": " ".join(str(error).split())})
        self.away = error
        self._thread = threading.Thread(target=self._try_again, name="log spool", daemon=True)
        self._thread.start()

    def _try_again(self) -> None:
        pause, longest = self._pauses
        while not self._closing.wait(pause):
            try:
                self.replay()
            except FastbanditError as error:
                self.away, pause = error, min(2 * pause, longest)
            else:
                _LOGGER.info("the log is back")
                return
