"""Writes events in groups from one thread: who hands some in waits until they are synced."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fastbandit.errors import FastbanditError, LogError, LogUnavailableError
from fastbandit.storage.events import DecisionMade, Event, EventLog, Outcome

Written: TypeAlias = "asyncio.Future[list[Outcome]]"
_MOST_AT_ONCE = 1024
_BUSY = 16
_GATHERING_SECONDS = 0.002
"""After a group of so many events the next gathers for so long: each wakes two threads, which
costs more than the events themselves. Where requests come one by one, none waits."""


@dataclass(slots=True)
class _Waiting:
    """Events of one request, and who waits for them."""

    events: Sequence[Event]
    written: Written


class Writer:
    """Appends to a log what requests of one event loop hand in.

    While one group is synced the next gathers. `waiting` counts the events that are not
    synced yet. An error of the log goes to all who wait for the group, and is in
    `problem` until an append succeeds again, unless the log is unavailable, which it says itself.
    """

    def __init__(self, open_log: Callable[[], EventLog], loop: asyncio.AbstractEventLoop) -> None:
        self._open_log, self._loop = open_log, loop
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
            if self._gathered:
                self._wake.set()
        log.close()

    def _take(self) -> list[_Waiting]:
        with self._lock:
            count = size = 0
            while count < len(self._gathered) and size < _MOST_AT_ONCE:
                size += len(self._gathered[count].events)
                count += 1
            group, self._gathered = self._gathered[:count], self._gathered[count:]
        return group

    def _append(self, log: EventLog, group: list[_Waiting]) -> int:
        """Write a group, and answer who waits for it; return its size."""
        events = [event for one in group for event in one.events]
        try:
            outcomes = log.append(events)
        except LogUnavailableError as error:
            decided = [one for one in group if _is_decided(one)]
            if 0 < len(decided) < len(group):  # these may be taken all the same
                self._append(log, decided)
                group = [one for one in group if not _is_decided(one)]
            self._loop.call_soon_threadsafe(self._fail, group, error)
        except LogError as error:
            self._loop.call_soon_threadsafe(self._fail, group, error)
        else:
            self._loop.call_soon_threadsafe(self._succeed, group, outcomes)
        return len(events)

    # -- in the loop's thread

    def _succeed(self, group: list[_Waiting], outcomes: list[Outcome]) -> None:
        self.problem = None
        self.waiting -= len(outcomes)
        first = 0
        for one in group:
            last = first + len(one.events)
            if not one.written.done():  # or its request was given up
                one.written.set_result(outcomes[first:last])
            first = last

    def _fail(self, group: list[_Waiting], error: LogError) -> None:
        if not isinstance(error, LogUnavailableError):
            self.problem = error
        for one in group:
            self.waiting -= len(one.events)
            if not one.written.done():
                one.written.set_exception(error)


def _is_decided(one: _Waiting) -> bool:
    return all(isinstance(event, DecisionMade) for event in one.events)
