"""Connections that wait: how long, how many of them and how much of their requests there may be.

Who has shown no key can do no more than fill what is counted here.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import OrderedDict, deque
from typing import Any, Protocol

from fastbandit.settings.limits import LimitsConfig

_SWEEP_SECONDS = 0.5
_AT_ONCE = 8  # connections ended in one go: with unread answers each takes near a millisecond
_PAUSE_SECONDS = 0.002
_TURNS = 8  # connections that read one more of their pipelined requests, at once


class Arrival(Protocol):
    """A connection, the book that it is noted in, and how it ends."""

    book: Book | None
    transport: Any
    flow: Any

    def go_on(self) -> None:
        """Read one more of the requests that came at once."""

    def end_late(self) -> None:
        """End what takes too long, with an answer that says so."""

    def end_silent(self) -> None:
        """End, to make room for another."""


Book = OrderedDict[Arrival, float]
"""Connections, and since when they wait: the earliest first."""


class Arrivals:
    """The connections that wait for `headers`, for the rest of `bodies`, or for a next request.

    Those in `unread` wait until who asked reads the answers.

    `bytes` are those of all requests that are not answered yet.
    """

    def __init__(self, limits: LimitsConfig) -> None:
        self.limits, self.bytes = limits, 0
        self.headers: Book = OrderedDict()
        self.bodies: Book = OrderedDict()
        self.unread: Book = OrderedDict()
        self.idle: Book = OrderedDict()
        self._behind: Book = OrderedDict()
        self._is_sweeping = False
        self._refused: deque[Arrival] = deque()

    @property
    def is_full(self) -> bool:
        """Whether requests hold more bytes than they may."""
        return self.bytes > self.limits.buffered_bytes

    def move(self, one: Arrival, book: Book | None, loop: AbstractEventLoop) -> None:
        """Note what a connection waits for, unless that is known; None for nothing."""
        if one.book is book:
            return
        if one.book is not None:
            one.book.pop(one, None)
        one.book = book
        if book is not None:
            book[one] = loop.time()
            if not self._is_sweeping and book is not self.idle:
                self._is_sweeping = True
                loop.call_later(_SWEEP_SECONDS, self._sweep, loop)

    def make_room(self, connections: int) -> bool:
        """Return whether one more may come: if need be, for the one that is silent for longest."""
        if connections < self.limits.connections:
            return True
        books = (self.headers,) if self.headers else (self.unread, self.idle)
        book = min((one for one in books if one), key=_earliest, default=None)
        if book:
            book.popitem(last=False)[0].end_silent()
            return True
        return False

    def read_on(self, one: Arrival, loop: AbstractEventLoop) -> None:
        """Let a connection read the next request that came with others, when it is its turn.

        As fast as they can be answered they would take a core from who sends one at a time.
        """
        self._behind[one] = 0.0
        if len(self._behind) == 1:
            loop.call_later(_PAUSE_SECONDS, self._go_on, loop)

    def _go_on(self, loop: AbstractEventLoop) -> None:
        count = min(_TURNS, len(self._behind))
        some = [self._behind.popitem(last=False)[0] for _ in range(count)]
        if self._behind:
            loop.call_later(_PAUSE_SECONDS, self._go_on, loop)
        for one in some:
            one.go_on()

    def read_later(self, one: Arrival, loop: AbstractEventLoop) -> None:
        """Read a little more of what nobody wants, when it is its turn: one at a time.

        As fast as it comes it would take a core from others, and so would who sends it.
        """
        one.flow.pause_reading()
        self._refused.append(one)
        if len(self._refused) == 1:
            loop.call_later(_PAUSE_SECONDS, self._read, loop)

    def _read(self, loop: AbstractEventLoop) -> None:
        while self._refused and self._refused[0].transport.is_closing():
            self._refused.popleft()
        if self._refused:
            self._refused.popleft().flow.resume_reading()
        if self._refused:
            loop.call_later(_PAUSE_SECONDS, self._read, loop)

    def _sweep(self, loop: AbstractEventLoop) -> None:
        """End what took too long, a few at a time."""
        left, now, limits = _AT_ONCE, loop.time(), self.limits
        for book, most in (
            (self.headers, limits.header_seconds),
            (self.bodies, limits.body_seconds),
            (self.unread, limits.body_seconds),
        ):
            while left and book and _earliest(book) + most <= now:
                book.popitem(last=False)[0].end_late()
                left -= 1
        self._is_sweeping = bool(self.headers or self.bodies or self.unread)
        if self._is_sweeping:
            loop.call_later(_SWEEP_SECONDS if left else _PAUSE_SECONDS, self._sweep, loop)


def _earliest(book: Book) -> float:
    return next(iter(book.values()))
