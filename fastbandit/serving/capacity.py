"""How much may be under way at once, and how long those that find no room wait for it."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_ROWS = 8
_NEARLY = 32  # rows: a request of so many contexts would find no room
_WEIGHT = 1 / 16  # of the last request in what is usual
_TICK_SECONDS = 0.002
_MOST_BEGUN = 128  # in a tick: who has no key takes no room, and not all the time either
_PATIENCE_SECONDS = 0.07
_MOST_REJECTED = 6_000
"""Who waits in line is rejected after that time, unless more than so many a second would be: each
rejection takes some 15 microseconds, all of them a tenth of a core at most."""


class _InLine(Protocol):
    """A connection whose request waits for room."""

    loop: AbstractEventLoop

    def begin_request(self) -> None:
        """Read the request: there is room."""

    def reject_late(self) -> None:
        """Reject the request: it waited for long enough."""


class Capacity:
    """How many requests may be under way, and the line of those that wait for room.

    Requests with many contexts may hold `most_rows` of them together. How many a request has is
    known once it is read: until then it counts as usual.
    """

    def __init__(self, most: int) -> None:
        self.most, self.most_rows = most, _ROWS * most
        self.under_way = self.rows = self._unread = 0
        self._usual = 1.0
        self._line: deque[tuple[float, _InLine]] = deque()
        self._ticked, self._is_ticking = 0.0, False

    @property
    def is_crowded(self) -> bool:
        """Whether a select that comes now has to wait: for room, or behind others."""
        return bool(self._line) or self.is_full

    @property
    def is_full(self) -> bool:
        """Whether there is no room for one more select, or for nearly any."""
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

    def line_up(self, one: _InLine) -> None:
        """Let a connection wait for its turn, behind those that came before."""
        self._line.append((one.loop.time(), one))
        if not self._is_ticking:
            self._ticked = one.loop.time()
            self._tick_later(one.loop)

    def _tick_later(self, loop: AbstractEventLoop) -> None:
        self._is_ticking = bool(self._line)
        if self._is_ticking:
            loop.call_later(_TICK_SECONDS, self._tick, loop)

    def _tick(self, loop: AbstractEventLoop) -> None:
        """Let as many begin as there is room for, and reject those that came too long ago.

        What is rejected is known a turn of the loop later, and that may take as long as this one.
        """
        now = loop.time()
        turn, self._ticked = now - self._ticked, now
        try:
            self._move_on(now, turn)
        finally:  # whatever one request does, the others wait no longer for it
            self._tick_later(loop)

    def _move_on(self, now: float, turn: float) -> None:
        for _ in range(min(_MOST_BEGUN, len(self._line))):
            if self.is_full:
                break
            self._line.popleft()[1].begin_request()
        late, left = now - _PATIENCE_SECONDS + 2 * turn, max(1, int(turn * _MOST_REJECTED))
        while self._line and self._line[0][0] <= late and left:
            self._line.popleft()[1].reject_late()
            left -= 1
