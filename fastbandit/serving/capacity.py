"""How much may be under way at once, and how often those that find no room may ask again."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from uvicorn.server import ServerState

_ROWS = 8
_NEARLY = 32  # rows: a request of so many contexts would find no room
_WEIGHT = 1 / 16  # of the last request in what is usual
_TICK_SECONDS = 0.005
_FREE = 5  # rejections in a tick that hold up no connection
_HELD_SECONDS = 0.07
_MOST_LATE = 6_000
"""A connection is rejected again so long after it was, unless more than so many a second would be:
each rejection takes some 15 microseconds, all of them a tenth of a core at most."""


class _Held(Protocol):
    """A connection that may not be read for a while."""

    server_state: ServerState
    loop: AbstractEventLoop
    transport: Any
    flow: Any


class Capacity:
    """How many requests may be under way, and the connections that wait to be read again.

    Requests with many contexts may hold `most_rows` of them together. How many a request has is
    known once it is read: until then it counts as usual.
    """

    def __init__(self, most: int) -> None:
        self.most, self.most_rows = most, _ROWS * most
        self.under_way = self.rows = self._unread = 0
        self._usual = 1.0
        self._held: deque[tuple[float, _Held]] = deque()
        self._is_ticking, self._left, self._answered, self._ticked = False, 0, 0, 0.0

    @property
    def is_full(self) -> bool:
        """Whether a select that comes now would be rejected, or nearly any."""
        if self.under_way >= self.most:
            return True
        rows = self.rows + self._unread * self._usual
        return rows >= max(self.most_rows - _NEARLY, self.most_rows // 2 + 1)

    def has_no_room(self, rows: int) -> bool:
        """Return whether so many contexts are too many beside those under way."""
        return self.rows > 0 and self.rows + rows > self.most_rows

    def begin(self, loop: AbstractEventLoop) -> None:
        """Count a request whose task was just started, until the loop has run that once."""
        self._unread += 1
        loop.call_soon(self._read)

    def _read(self) -> None:
        self._unread -= 1

    @contextmanager
    def taken(self, rows: int) -> Iterator[None]:
        """Let so many contexts be under way."""
        self._usual += (rows - self._usual) * _WEIGHT
        self.rows += rows
        try:
            yield
        finally:
            self.rows -= rows

    def hold(self, one: _Held) -> None:
        """Count a rejection; where there were too many, do not read that connection for a while."""
        if not self._is_ticking:
            self._is_ticking, self._left = True, _FREE
            self._answered, self._ticked = one.server_state.total_requests, one.loop.time()
            one.loop.call_later(_TICK_SECONDS, self._tick, one.loop, one.server_state)
        self._left -= 1
        if self._left < 0:
            one.flow.pause_reading()
            self._held.append((one.loop.time(), one))

    def _tick(self, loop: AbstractEventLoop, state: ServerState) -> None:
        """Read connections again: one for eight answers since the last tick, or as room allows.

        What is read again is answered in the next turn of the loop, which may take as long as this.
        """
        now = loop.time()
        turn, self._ticked = now - self._ticked, now
        answered, self._answered = self._answered, state.total_requests
        rows = int((self.most_rows - self.rows) / max(_ROWS, self._usual))
        free = min(self.most - self.under_way, rows)
        count, self._left = max(_FREE, (self._answered - answered) // 8, free), _FREE
        late, most_late = now - _HELD_SECONDS + 2 * turn, int(turn * _MOST_LATE)
        while self._held and (count > 0 or (self._held[0][0] <= late and count > -most_late)):
            count -= 1
            one = self._held.popleft()[1]
            if not one.transport.is_closing():
                one.flow.resume_reading()
        self._is_ticking = bool(self._held)
        if self._is_ticking:
            loop.call_later(_TICK_SECONDS, self._tick, loop, state)
