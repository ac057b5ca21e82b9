"""Hands the events of a worker to the process that writes the log: who hands some in waits.

It stands in the place of a `Writer`, without a thread: frames go out with the event loop, and
answers come back with it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from fastbandit.errors import LogError
from fastbandit.serving.frames import (
    FAILED,
    STEPPED,
    WRITTEN,
    Frames,
    SentArms,
    outcomes_in,
)
from fastbandit.serving.writer import Written
from fastbandit.storage.events import Event
from fastbandit.storage.log_clock import ClockSteps

_ENDED = (
    "A worker needs the process that writes the log of its service: it ended, and is started "
    "again. Wait a moment."
)


class LogClient(asyncio.Protocol):
    """Sends events to the writer over a socket; without one, who hands some in is refused.

    `waiting` counts the events that are not synced yet. `problem` says why none can be written.
    `ask` is called when a socket is needed, which `join` brings; `is_joined` says whether it has.
    `changed` is set when arms may have changed.
    """

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask, self.changed = ask, asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._frames, self._arms, self._out = Frames(), SentArms(), list[bytes]()
        self._waiting: dict[int, tuple[int, Written]] = {}
        self._number = self.waiting = 0
        self.seen = ClockSteps()  # of the clock of the machine, by the writer
        self.is_joined = False
        self.problem: LogError | None = LogError(_ENDED)

    async def start(self) -> int:
        """Wait for a writer; return the number of its last event."""
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[int] = self._loop.create_future()
        self._ask()
        return await self._opened

    async def join(self, to_writer: socket.socket) -> None:
        """Send over a socket from now on, unless there is one."""
        if self.is_joined:
            to_writer.close()
            return
        self.is_joined = True
        await self._loop.create_unix_connection(lambda: self, sock=to_writer)

    def submit(self, events: Sequence[Event]) -> Written:
        """Hand in events of one request; the answer comes when they are synced."""
        written: Written = self._loop.create_future()
        if self._transport is None:
            written.set_exception(LogError(_ENDED))
            return written
        if not events:
            written.set_result([])
            return written
        self._number = (self._number + 1) % 2**32 or 1
        self._out.append(self._arms.frame_of_events(self._number, events))
        if len(self._out) == 1:
            self._loop.call_soon(self._flush)
        self._waiting[self._number] = (len(events), written)
        self.waiting += len(events)
        return written

    async def stop(self) -> None:
        """Wait for what was handed in, and let go of the socket."""
        left = [written for _, written in self._waiting.values()]
        await asyncio.gather(*left, return_exceptions=True)
        if self._transport is not None:
            self._transport.close()

    # -- the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._frames, self._arms = Frames(), SentArms()

    def _flush(self) -> None:
        frames, self._out = self._out, []
        if self._transport is not None:
            self._transport.write(b"".join(frames))

    def data_received(self, data: bytes) -> None:
        for number, kind, body in self._frames.feed(data):
            if kind == STEPPED:
                self.seen = msgspec.json.decode(body, type=ClockSteps)
            elif number == 0:
                self._hear(int(body))
            else:
                self._answer(number, kind, body)

    def _hear(self, last: int) -> None:
        """Take it that the writer is there, and that arms may have changed."""
        self.problem = None
        self.changed.set()
        if not self._opened.done():
            self._opened.set_result(last)

    def _answer(self, number: int, kind: int, body: bytes) -> None:
        count, written = self._waiting.pop(number)
        self.waiting -= count
        if kind == WRITTEN:
            self.problem = None
            if not written.done():  # or its request was given up
                written.set_result(outcomes_in(body))
            return
        assert kind == FAILED
        self.problem = LogError(body.decode())
        if not written.done():
            written.set_exception(self.problem)

    def connection_lost(self, error: Exception | None) -> None:
        """Refuse all who wait: whether their events were written, only a retry can tell."""
        self._transport, self.is_joined, self.problem = None, False, LogError(_ENDED)
        waiting, self._waiting, self._out, self.waiting = self._waiting, {}, [], 0
        for _, written in waiting.values():
            if not written.done():
                written.set_exception(LogError(_ENDED))
        self._ask()
