"""The requests of one connection in their turn: the next is read when the last was answered.

An answer is read by who asked before more is worked on, so that one who reads nothing holds a
connection and a few bytes, and no room of others.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fastbandit.serving.arrivals import Book
from fastbandit.serving.problems import Rejection
from fastbandit.serving.rejections import OVERLOADED

END = b"\r\n\r\n"  # of headers
_MOST_UNREAD = 2**15  # bytes of answers that wait in this process, for each connection


class Flow(FlowControl):
    """What may go over a connection; nothing is read while answers or requests wait."""

    def __init__(self, transport: Any) -> None:
        super().__init__(transport)
        transport.set_write_buffer_limits(high=_MOST_UNREAD)
        self.rest = bytearray()  # came with a request, and waits until that is answered

    def resume_reading(self) -> None:
        if not (self.write_paused or self.rest):
            super().resume_reading()


class PipeliningProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with one request at a time under way, and one answer unread."""

    flow: Flow
    book: Book | None = None
    _is_between = True  # no request is half read
    _has_headers = _is_ended = False
    _running: RequestResponseCycle | None = None
    _counted: Any = None  # the scope of the request that is worked on
    _in_line = b""  # a request that waits for room, unread
    _bytes = 0  # of all that is not answered yet

    def _read(self, data: bytes) -> None:
        """Read what holds the end of one request's headers at most."""
        raise NotImplementedError

    def _end(self, rejection: Rejection) -> None:
        """Answer a request that is not whole, and read no more of it."""
        raise NotImplementedError

    @property
    def _app(self) -> Any:
        return self.config.app

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.flow = Flow(transport)

    # -- requests that come at once

    @property
    def _is_answered(self) -> bool:
        """Whether no answer is under way, which would have to come first."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _is_free(self) -> bool:
        """Whether an answer could be sent now."""
        return not self.flow.write_paused and self._is_answered

    @property
    def _must_wait(self) -> bool:
        """Whether an answer has to come, or to be read, before anything else is."""
        if self.flow.write_paused or self.pipeline or self._in_line:
            return True
        return self._is_between and not self._is_answered

    def _queue(self, data: bytes) -> None:
        """Let wait what comes before its turn, but for a first request whose turn it is."""
        self.flow.pause_reading()
        self.flow.rest += data
        self._hold(len(data))
        arrivals = self._app.arrivals
        if 2 * arrivals.bytes > arrivals.limits.buffered_bytes:  # the rest is for bodies
            self._end(OVERLOADED)
        else:
            self.go_on()

    def go_on(self) -> None:
        """Read one more of the requests that came at once, unless an answer comes first."""
        rest = self.flow.rest
        if not rest or self._must_wait or self.transport.is_closing():
            return
        end = rest.find(END)
        piece = bytes(rest if end < 0 else rest[: end + len(END)])
        del rest[: len(piece)]
        self._hold(-len(piece))  # until it is counted as read
        self.flow.resume_reading()
        self._read(piece)
        if rest and not self._must_wait:
            self._app.arrivals.read_on(self, self.loop)

    def _hold(self, size: int) -> None:
        """Count so many bytes more."""
        self._bytes += size
        self._app.arrivals.bytes += size

    def _let_go(self) -> None:
        """Hold no bytes any more, but those that wait for their turn."""
        self._hold(len(self.flow.rest) - self._bytes)

    def _forget(self) -> None:
        """Wait for nothing, and hold nothing."""
        self._app.arrivals.move(self, None, self.loop)
        self.flow.rest.clear()
        self._in_line = b""
        self._let_go()

    # -- one that is under way

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a task, and count it until its answer is made.

        What asyncio knows of a task ends a turn of the loop later: whoever asks again at once would
        count twice.
        """
        self._app.capacity.under_way += 1
        self._counted = cycle.scope
        super()._start_asgi_task(cycle, self._work)

    async def _work(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self.app(scope, receive, send)
        finally:
            if self._counted is scope:
                self._uncount()

    def _uncount(self) -> None:
        if self._counted is not None:
            self._counted = None
            self._app.capacity.under_way -= 1

    def on_response_complete(self) -> None:
        """Wait for the next request, and hold nothing of this one."""
        self._uncount()
        super().on_response_complete()
        arrivals = self._app.arrivals
        if self.transport.is_closing():
            arrivals.move(self, arrivals.unread, self.loop)
            return
        if self._is_between and self._is_answered:
            self._let_go()
        self._settle()
        if self.flow.rest:
            arrivals.read_on(self, self.loop)

    # -- answers that are not read

    def pause_writing(self) -> None:
        """Read nothing more, and count nothing as under way: answers have to be read first."""
        super().pause_writing()
        self._uncount()
        self.flow.pause_reading()
        if not self._is_ended:
            self._settle()

    def resume_writing(self) -> None:
        """Go on with a request that had to wait, or with the next."""
        super().resume_writing()
        if self._is_ended or self.transport.is_closing():
            return
        if self.pipeline and (self._running is None or self._running.response_complete):
            self._start_asgi_task(*self.pipeline.pop())
        self._settle()
        self.flow.resume_reading()
        if self.flow.rest:
            self._app.arrivals.read_on(self, self.loop)

    def _settle(self) -> None:
        """Note what is waited for now."""
        arrivals = self._app.arrivals
        if self.flow.write_paused:
            waits = arrivals.unread
        elif not self._is_between:
            waits = arrivals.bodies if self._has_headers else arrivals.headers
        else:
            waits = arrivals.idle if self._is_answered and not self._in_line else None
        arrivals.move(self, waits, self.loop)

    def _close(self) -> None:
        """Close once all was read that was answered, within the time that there is for it."""
        self.transport.close()
        arrivals = self._app.arrivals
        arrivals.move(self, arrivals.unread, self.loop)
