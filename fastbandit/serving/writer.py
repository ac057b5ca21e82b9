"""Writes events in groups from one thread: who hands some in waits until they are synced."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fastbandit.errors import FastbanditError, LogError, LogUnavailableError
from fastbandit.storage.events import DecisionMade, Event, EventLog, Outcome

Written: TypeAlias = "asyncio.Future[list[Outcome]]"
FEW = 64
"""A request of so many events waits for no larger one but the part that is being written."""
_MOST_AT_ONCE = 1024
_MOST_OF_ONE = 128  # events of one large request in a group: others do not wait for the rest
_BUSY = 16
_GATHERING_SECONDS = 0.002
"""After a group of so many events the next gathers for so long: each wakes two threads, which
costs more than the events themselves. Where requests come one by one, none waits."""


@dataclass(slots=True)
class _Waiting:
    """Events of one request, and who waits for them."""

    events: Sequence[Event]
    written: Written
    outcomes: list[Outcome] = field(default_factory=list)
    taken: int = 0
    is_failed: bool = False

    @property
    def is_decided(self) -> bool:
        return all(isinstance(event, DecisionMade) for event in self.events)

    @property
    def is_small(self) -> bool:
        return len(self.events) <= FEW

    @property
    def is_over(self) -> bool:
        return self.is_failed or self.taken == len(self.events)

    def take(self, most: int) -> tuple[_Waiting, Sequence[Event]]:
        """Take the next events, at most so many."""
        part = self.events[self.taken : self.taken + most]
        self.taken += len(part)
        return self, part


_Group: TypeAlias = list[tuple[_Waiting, Sequence[Event]]]
"""Some events of each of some requests, in the order of the log."""


class Writer:
    """Appends to a log what requests of one event loop hand in.

    While one group is synced the next gathers. The decisions of a request are written all or none
    where `is_whole`; other large requests are written a part at a time. `waiting` counts the
    events that are not synced yet. An error of the log goes to all who wait for the group, and is
    in `problem` until an append succeeds again, unless the log is unavailable, which it says
    itself.
    """

    def __init__(
        self,
        open_log: Callable[[], EventLog],
        loop: asyncio.AbstractEventLoop,
        *,
        is_whole: bool = True,
    ) -> None:
        self._open_log, self._loop, self._is_whole = open_log, loop, is_whole
        self._is_turn_of_large = False
        self._gathered: list[_Waiting] = []
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._is_stopping = False
        self.waiting = 0
        self.problem: LogError | None = None
        self._opened: asyncio.Future[int] = loop.create_future()
        self._thread = threading.Thread(target=self._work, name="log writer", daemon=True)

    async def start(self) -> int:
        """Open the log in its thread; return the number of its last event, or raise why not."""
        self._thread.start()
        return await self._opened

    def submit(self, events: Sequence[Event]) -> Written:
        """Hand in events of one request; the answer comes when they are synced."""
        written: Written = self._loop.create_future()
        with self._lock:
            self._gathered.append(_Waiting(events, written))
            is_first = len(self._gathered) == 1
        self.waiting += len(events)
        if is_first:
            self._wake.set()
        return written

    async def stop(self) -> None:
        """Write what was handed in, and close the log."""
        self._is_stopping = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)

    # -- in the writer's thread

    def _work(self) -> None:
        try:
            log = self._open_log()
            last = log.last
        except FastbanditError as error:
            self._loop.call_soon_threadsafe(self._opened.set_exception, error)
            return
        self._loop.call_soon_threadsafe(self._opened.set_result, last)
        size = 0
        while not (self._is_stopping and not self._gathered):
            self._wake.wait()
            if size >= _BUSY:
                time.sleep(_GATHERING_SECONDS)
            self._wake.clear()
            group = self._take()
            size = self._append(log, group) if group else 0
            if group and not group[0][0].is_small:
                size = 0  # small ones need not gather: they did meanwhile
            if self._gathered:
                self._wake.set()
        log.close()

    def _take(self) -> _Group:
        """Take the next events of those who wait: of small requests, or a part of a large one.

        Both take turns, so that neither waits for many of the other.
        """
        with self._lock:
            waiting = [one for one in self._gathered if not one.is_over]
            large = next((one for one in waiting if not one.is_small), None)
            small = [one for one in waiting if one.is_small]
            is_turn_of_large, self._is_turn_of_large = self._is_turn_of_large, False
            if large is not None and (is_turn_of_large or not small):
                group = [large.take(self._most_of(large))]
                waiting.remove(large)  # and to the end: other large ones come first
                waiting.append(large)
            else:
                group, self._is_turn_of_large = _some_of(small), large is not None
            self._gathered = [one for one in waiting if not one.is_over]
        return group

    def _most_of(self, large: _Waiting) -> int:
        """Return how many events of a large request are written at once: decisions all or none."""
        return len(large.events) if self._is_whole and large.is_decided else _MOST_OF_ONE

    def _append(self, log: EventLog, group: _Group) -> int:
        """Write a group, and answer who waits for it; return its size."""
        events = [event for _, part in group for event in part]
        try:
            outcomes = log.append(events)
        except LogUnavailableError as error:
            decided = [one for one in group if one[0].is_decided]
            if 0 < len(decided) < len(group):  # these may be taken all the same
                self._append(log, decided)
                group = [one for one in group if not one[0].is_decided]
            self._failed(group, error)
        except LogError as error:
            self._failed(group, error)
        else:
            self._loop.call_soon_threadsafe(self._succeed, group, outcomes)
        return len(events)

    def _failed(self, group: _Group, error: LogError) -> None:
        for one, _ in group:
            one.is_failed = True
        self._loop.call_soon_threadsafe(self._fail, group, error)

    # -- in the loop's thread

    def _succeed(self, group: _Group, outcomes: list[Outcome]) -> None:
        self.problem = None
        self.waiting -= len(outcomes)
        first = 0
        for one, part in group:
            one.outcomes += outcomes[first : first + len(part)]
            first += len(part)
            is_whole = len(one.outcomes) == len(one.events)
            if is_whole and not one.written.done():  # or its request was given up
                one.written.set_result(one.outcomes)

    def _fail(self, group: _Group, error: LogError) -> None:
        if not isinstance(error, LogUnavailableError):
            self.problem = error
        for one, _ in group:
            self.waiting -= len(one.events) - len(one.outcomes)
            if not one.written.done():
                one.written.set_exception(error)


def _some_of(small: Sequence[_Waiting]) -> _Group:
    """Take whole requests, until there are many events."""
    group, size = _Group(), 0
    for one in small:
        if size < _MOST_AT_ONCE:
            group.append(one.take(FEW))
            size += len(one.events)
    return group
