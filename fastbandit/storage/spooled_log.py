"""An event log that goes on while its server is unavailable, by a spool on the local disk.

Decisions that the server cannot take go to a file, marked as degraded. When the server is
back it is told how long it was unavailable, which is no time for rewards; then they are appended
before anything else, in their order, each with its own time. A decision is known by its id, so
one that is sent twice is written once: whatever is interrupted is simply done again, and the
file goes only when all of it is in the log.

While the server takes what is spooled, new decisions wait for it: it takes two for each one that
comes, so the spool empties under any load.

A group that the server does not take in time is halved, down to one decision, which is given more
time. What even then cannot be written, though others can, is set aside in a file of its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from fastbandit.errors import FastbanditError, LogError, LogTooSlowError, LogUnavailableError
from fastbandit.storage.events import DecisionMade, Event, EventLog, Outcome, TimePassed
from fastbandit.storage.log_clock import LogClock
from fastbandit.storage.sqlite_files import is_damage
from fastbandit.storage.sqlite_log import SqliteLog

_LOGGER = logging.getLogger("fastbandit.storage")
_GROUP = 256  # fewer than a writer gathers: a slow server takes them more easily
_AHEAD = 2  # decisions that leave the spool for each one that comes, while the server takes them
_PATIENCE = 1.0  # seconds for which a decision waits for that at most


class SpooledLog:
    """Appends to `remote`; while that is unavailable, up to `most` decisions go to a spool.

    Appends come from one thread. While the remote is unavailable, as it may be at first, another
    one tries it, after `pauses[0]` seconds, then ever later up to `pauses[1]`, so that appends need
    not: they wait for it only where it has just answered. `patient` is another way to the remote,
    with a longer time limit, for a decision that alone does not fit.

    `unavailable` says why it is, None where it is not. `conflicts` counts spooled decisions
    whose id the log holds with other arms: those of the log stand. `set_aside` says which files
    hold decisions that did not come into the log. `reached` is called at each step.
    """

    def __init__(
        self,
        remote: EventLog,
        spool: str | Path,
        *,
        most: int = 100_000,
        pauses: tuple[float, float] = (0.2, 5.0),
        patient: EventLog | None = None,
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._remote, self._path, self._most = remote, Path(spool), most
        self._patient = remote if patient is None else patient
        self._pauses, self._reached, self._clock = pauses, reached, LogClock()
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._moved, self._is_emptying = threading.Condition(self._lock), False
        self._spool: SqliteLog | None = None
        self._thread: threading.Thread | None = None
        self._spooled = self._sent = 0  # numbers in the spool
        self._last, self._size = 0, _GROUP
        self._since: int | None = None  # when the remote was found to be unavailable
        self.unavailable: FastbanditError | None = None
        self.conflicts = 0
        try:
            if self._path.exists():
                self._replay_earlier()
            else:
                self._replay(self._append_group)
        except LogUnavailableError as error:
            self._become_unavailable(error, since=self._clock())
        except BaseException:
            self.close()
            raise

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events in their order, all or none; decisions go to the spool where they must.

        Those are "spooled", without a number. Other events raise while the remote is unavailable:
        whoever sent them tries again.
        """
        with self._lock:
            if self._is_emptying:
                self._wait_for_replay(len(events))
            if self.unavailable is not None:
                return self._append_to_spool(events, self.unavailable)
        began = self._clock()
        try:
            return self._remote.append(events)
        except LogUnavailableError as error:
            with self._lock:
                self._become_unavailable(error, since=began)
                return self._append_to_spool(events, error)

    def notice(self, error: LogError) -> None:
        """Take the remote for unavailable, where somebody else found out: not if it is slow."""
        if isinstance(error, LogUnavailableError) and not isinstance(error, LogTooSlowError):
            with self._lock:
                self._become_unavailable(error, since=self._clock())

    def replay(self) -> None:
        """Append what is spooled to the remote, and remove the spool; raise if unavailable."""
        self._replay(self._send)

    def _replay(self, send: Callable[[list[DecisionMade]], bool]) -> None:
        try:
            self._empty(send)
        finally:
            with self._lock:
                self._report(is_emptying=False)

    def _wait_for_replay(self, count: int) -> None:
        """Let go of the lock until more has left the spool than `count` events add to it."""
        enough = self._sent + _AHEAD * count
        self._moved.wait_for(lambda: not self._is_emptying or self._sent >= enough, _PATIENCE)

    def _report(self, *, is_emptying: bool) -> None:
        """Wake who waits, with the lock, and say whether the server takes what is spooled."""
        self._is_emptying = is_emptying
        self._moved.notify_all()

    def _empty(self, send: Callable[[list[DecisionMade]], bool]) -> None:
        """Send groups, where `send` returns whether one went, then the rest under the lock."""
        self._end_outage()
        has_gone = is_more = True  # the remote has just answered
        while is_more:
            with self._lock:
                self._report(is_emptying=has_gone)
                group, size = self._group(), self._size
            has_gone = bool(group) and send(group)
            is_more = bool(group) and (not has_gone or len(group) == size)
        self._last = self._remote.last  # raises where it is unavailable
        with self._lock:  # what comes meanwhile waits: the rest is little, and the remote is there
            while group := self._group():
                self._append_group(group)
            self._remove()
            self.unavailable = None

    def _end_outage(self) -> None:
        """Write to the remote, before anything else, for how long nothing could be written."""
        if self._since is not None:
            self._remote.append([TimePassed(outage=max(0, self._clock() - self._since))])
            self._since = None

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
        degraded = [structs.replace(made, degraded=True) for made in decisions]
        try:
            outcomes = spool.append(degraded)
        except LogError as error:
            self._set_spool_aside(error)
            spool = self._opened()
            outcomes = spool.append(degraded)
        self._spooled = spool.last
        self._reached("spooled")
        return [Outcome(0, "repeated" if it.status == "repeated" else "spooled") for it in outcomes]

    def _group(self) -> list[DecisionMade]:
        """Return the next decisions of the spool, each with its own time."""
        if self._spool is None:
            return []
        events = self._spool.read(after=self._sent, limit=self._size)
        made = (event for event in events if isinstance(event, DecisionMade))
        return [structs.replace(one, made_at=one.at) for one in made]

    def _send(self, group: list[DecisionMade]) -> bool:
        """Append a group, or halve it for the next time; one that never fits is set aside."""
        is_one = len(group) == 1
        for log in (self._remote, self._patient):
            try:
                self._append_group(group, log)
                self._size = min(_GROUP, 2 * self._size)
                return True
            except LogTooSlowError as error:
                self._remote.append([TimePassed()])  # raises where it is unavailable to all
                problem: LogError = error
            except LogUnavailableError:
                raise
            except LogError as error:
                problem = error
            if not is_one:
                self._size = len(group) // 2
                return False
        self._set_aside(group[0], problem)
        return True

    def _append_group(self, group: list[DecisionMade], log: EventLog | None = None) -> bool:
        for made, outcome in zip(group, (log or self._remote).append(group), strict=True):
            if outcome.status == "repeated":
                self._compare(made)
        self._sent = group[-1].seq
        self._reached("sent")
        return True

    def _set_aside(self, made: DecisionMade, error: LogError) -> None:
        """Store a decision that the log does not take in a file beside the spool."""
        aside = SqliteLog(self._path.with_name(f"{self._path.stem}-set-aside.db"))
        try:
            aside.append([made])
        finally:
            aside.close()
        reason = {"decision": made.id, "reason": " ".join(str(error).split())}
        _LOGGER.error("a spooled decision was set aside", extra=reason)
        self._sent = made.seq

    @property
    def set_aside(self) -> list[str]:
        """The files with decisions that did not come into the log, damaged spools among them."""
        return sorted(it.name for it in self._path.parent.glob(f"{self._path.stem}-*.db"))

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
        if self._patient is not self._remote:
            self._patient.close()
        self._remote.close()

    def _opened(self) -> SqliteLog:
        if self._spool is None:
            self._spool = SqliteLog(self._path, clock=self._clock)
            self._spooled = self._spool.last
        return self._spool

    def _replay_earlier(self) -> None:
        """Replay the spool of an earlier life; one that is damaged is set aside whole."""
        try:
            first = self._opened().read(limit=1)
            self._since = first[0].at if first else None
            self._replay(self._append_group)
        except LogUnavailableError:
            raise
        except LogError as error:
            self._set_spool_aside(error)
            self._replay(self._append_group)

    def _set_spool_aside(self, error: FastbanditError) -> None:
        """Rename a damaged spool, and begin a new one; raise any other error."""
        if not _is_damaged(error):
            raise error
        if self._spool is not None:
            self._spool.close()
        named = self._path.with_name(f"{self._path.stem}-damaged-{self._clock()}.db")
        for suffix in ("-wal", "-shm", ""):
            beside = Path(f"{self._path}{suffix}")
            if beside.exists():
                beside.rename(f"{named}{suffix}")
        self._spool, self._spooled, self._sent = None, 0, 0
        reason = {"file": str(named), "reason": " ".join(str(error).split())}
        _LOGGER.error("a damaged spool was set aside", extra=reason)

    def _remove(self) -> None:
        if self._spool is None:
            return
        self._spool.close()
        self._spool, self._spooled, self._sent = None, 0, 0
        self._reached("closed")
        self._path.unlink(missing_ok=True)
        self._reached("removed")

    def _become_unavailable(self, error: LogUnavailableError, *, since: int) -> None:
        if self.unavailable is not None:
            return
        _LOGGER.error("the log is unavailable", extra={"reason": " ".join(str(error).split())})
        self.unavailable = error
        self._since = since if self._since is None else min(since, self._since)
        self._thread = threading.Thread(target=self._try_again, name="log spool", daemon=True)
        self._thread.start()

    def _try_again(self) -> None:
        pause, longest = self._pauses
        while not self._closing.wait(pause):
            began = self._clock()
            try:
                self.replay()
            except FastbanditError as error:
                self.unavailable, pause = error, min(2 * pause, longest)
                self._since = began if self._since is None else self._since
                if _is_damaged(error):
                    with self._lock:
                        self._set_spool_aside(error)
            else:
                _LOGGER.info("the log is back")
                return


def _is_damaged(error: FastbanditError) -> bool:
    return error.__cause__ is not None and is_damage(error.__cause__)
