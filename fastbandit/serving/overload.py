"""Rejections that cost little: under overload requests wait, and are rejected, before any work.

uvicorn starts a task for each request as soon as its headers are read. Here a task is started
once the body is there too, so that the tasks are the requests that are being worked on, and
not those that arrive slowly. With more of them than can be answered soon, the ones begun are
finished, and a select that comes waits in line, not even parsed, for a moment at most: it begins
when there is room, or is rejected. What is rejected at once, as it cannot wait so, has a connection
that is not read for that long, so that rejections never take most of the time.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from fastbandit.serving.capacity import Capacity
from fastbandit.serving.pipelining import END, PipeliningProtocol
from fastbandit.serving.problems import Rejection
from fastbandit.serving.rejections import (
    MOST_HEADERS,
    NO_HTTP,
    OVERLOADED,
    long_headers,
    on_wire,
    too_slow,
)

_SELECT = b"/v1/select"
_LINE = b"POST /v1/select HTTP/1.1\r\n"
_KEEP_ALIVE = b"\r\nconnection: keep-alive"
_LINGER_SECONDS = 1.0  # for who reads an answer before all was sent
_MOST_DISCARDED = 2**22


class OverloadProtocol(PipeliningProtocol):
    """HTTP as uvicorn speaks it, with limits on what arrives and on what is under way.

    The limits and the metrics are those of the app: see `App.capacity` and `App.arrivals`. A
    request is admitted, or not, when its headers are in. Rewards, of which nothing may be lost,
    have twice the room of selects.
    """

    _has_begun = False  # a request, with what was read last
    _rejection: Rejection | None = None  # of the request that is being read
    _held: Any = None  # the app, for a request whose body is not there yet
    _rejected_at = 0.0
    _head_bytes = _body_bytes = 0  # of the headers that are read, and of bodies read last
    _tail = b""  # of headers that are not whole

    # -- what comes over the wire

    def connection_made(self, transport: Any) -> None:
        """Take a connection, if need be in place of one that is silent."""
        arrivals = self._app.arrivals
        if arrivals.make_room(len(self.connections)):
            super().connection_made(transport)
            arrivals.move(self, arrivals.headers, self.loop)
        else:
            self.transport = transport
            self._write(OVERLOADED, is_last=True)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Read on; where there is no room a whole select is not even parsed."""
        if self._is_ended:
            self._discard(len(data))
        elif self._must_wait:
            self._queue(data)
        elif self._app.capacity.is_crowded and self._is_between and is_whole_select(data):
            self._line_up(data)
        elif data.count(END) > 1:
            self._queue(data)
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """Read what holds the end of one request's headers at most."""
        if self._has_long_head(data):
            self._end(long_headers(self._app.arrivals.limits.header_bytes))
            return
        self._has_begun, self._body_bytes = False, 0
        super().data_received(data)
        self._note(data)

    def _has_long_head(self, data: bytes) -> bool:
        """Return whether headers would be longer than they may, before they are parsed."""
        most = self._app.arrivals.limits.header_bytes - self._head_bytes
        if len(data) <= most or (self._has_headers and not self._is_between):
            return False
        return END not in self._tail + data[:most]

    def _note(self, data: bytes) -> None:
        """Count what came, and note what is waited for now."""
        arrivals = self._app.arrivals
        if self._is_ended or self.transport.is_closing():
            return
        rejection = self._rejection
        if rejection is None:
            self._hold(len(data))
        if self._is_between:
            self._head_bytes, self._tail = 0, b""
            if self._is_answered:
                self._let_go()
        elif (
            rejection is not None
            and not self.flow.rest
            and (rejection is not OVERLOADED or self.expect_100_continue)
        ):
            self._end(rejection)
            return
        else:
            self._head_bytes += self._head_bytes_of(data)
            self._tail = b"" if self._has_headers else data[-3:]
            if self._head_bytes > arrivals.limits.header_bytes:
                self._end(long_headers(arrivals.limits.header_bytes))
                return
            if arrivals.is_full:
                self._end(OVERLOADED)
                return
        self._settle()

    def _head_bytes_of(self, data: bytes) -> int:
        """Return how much of what came belongs to the headers that are read, or to trailers."""
        if not self._has_begun:
            return 0 if self._body_bytes else len(data)
        return max(0, len(data.rpartition(END)[2]) - self._body_bytes)

    def on_message_begin(self) -> None:
        self._is_between = self._has_headers = False
        self._has_begun, self._head_bytes = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= MOST_HEADERS:
            self._end(long_headers(self._app.arrivals.limits.header_bytes))
            raise ValueError("too many headers")  # which ends the parsing
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin a request, or see that it will be rejected."""
        self._has_headers = True
        if self._is_free and self._has_no_room():
            self._rejection = OVERLOADED
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._rejection is not None:
            return
        if self._held is None:
            super().on_body(body)
            return
        self.cycle.body += body
        admitted = self.cycle.scope["admitted"]  # type: ignore[typeddict-item]
        if len(self.cycle.body) > admitted.most_bytes:
            self._rejection, self._held = admitted.too_large(), None
            self.cycle.body.clear()
            self.cycle.response_complete = True

    def on_message_complete(self) -> None:
        """End a request: reject it, if that is how it began."""
        self._is_between = True
        rejection, self._rejection = self._rejection, None
        if rejection is not None:
            is_old = self.parser.get_http_version() == "1.0"
            is_last = is_old or not self.parser.should_keep_alive()
            self._reject(rejection, path=self._path, is_last=is_last)
            return
        super().on_message_complete()
        if self._held is not None:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a request that is under way know that its answer is not waited for."""
        if self.flow is not None:
            self._forget()
        self._give_up()
        super().connection_lost(exc)

    # -- in line

    def _line_up(self, data: bytes) -> None:
        """Let a request wait for room, unless too much waits already."""
        arrivals = self._app.arrivals
        if 2 * (arrivals.bytes + len(data)) > arrivals.limits.buffered_bytes:
            self._reject(OVERLOADED, path=_SELECT)
            return
        self._in_line = data
        self._hold(len(data))
        self._unset_keepalive_if_required()
        arrivals.move(self, None, self.loop)
        self._app.capacity.line_up(self)

    def begin_request(self) -> None:
        """Read what waited in line, or on, where that was rejected before."""
        data = self._leave_line()
        if data:
            self._read(data)
        self._go_on_later()

    def reject_late(self) -> None:
        """Reject what waited in line; read on, where that was rejected before."""
        if self._leave_line():
            self._write(OVERLOADED, is_last=False, path=_SELECT)
            self._stay()
        self._go_on_later()

    def _leave_line(self) -> bytes:
        data, self._in_line = self._in_line, b""
        self._hold(-len(data))
        return b"" if self.transport.is_closing() else data

    def _go_on_later(self) -> None:
        """Read what came meanwhile, or will come."""
        if self.flow.read_paused and not self.transport.is_closing():
            self.flow.resume_reading()
            if self.flow.rest:
                self._app.arrivals.read_on(self, self.loop)

    # -- tasks

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self.flow.write_paused:
            self.pipeline.append((cycle, app))
            return
        self._running = cycle
        if cycle.more_body and cycle is self.cycle:
            try:
                cycle.scope["admitted"] = self._app.admit(cycle.scope)  # type: ignore[typeddict-unknown-key]
            except Rejection as rejection:
                self._rejection, cycle.response_complete = rejection, True
                return
            if not cycle.waiting_for_100_continue:
                self._held = app
                return
        super()._start_asgi_task(cycle, app)

    def _begin(self) -> None:
        """Start the task of the request that was held."""
        self._held = None
        super()._start_asgi_task(self.cycle, self.app)
        if self._path == _SELECT:
            self._app.capacity.begin(self.loop)

    def _give_up(self) -> None:
        """Send nothing more for the request that is under way."""
        self._held = None
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()

    # -- rejections

    def _has_no_room(self) -> bool:
        capacity: Capacity = self._app.capacity
        if self._name in (b"select", b"rank"):
            return capacity.is_full
        return self._name == b"reward" and capacity.under_way >= 2 * capacity.most

    @property
    def _name(self) -> bytes:
        """The last part of the path, which says what is asked for."""
        return self._path.rpartition(b"/")[2]

    @property
    def _path(self) -> bytes:
        return self.url.partition(b"?")[0]

    def _reject(self, rejection: Rejection, *, path: bytes, is_last: bool = False) -> None:
        """Answer a request that is whole, or was answered for before it was parsed."""
        if self.transport.is_closing():
            return
        self._write(rejection, is_last=is_last, path=path)
        if is_last:
            self._close()
            return
        self._stay()
        if rejection is OVERLOADED:
            self.flow.pause_reading()
            self._app.capacity.line_up(self)

    def _stay(self) -> None:
        """Keep a connection whose request was rejected, as after any answer."""
        self._rejected_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._close_after(self.timeout_keep_alive)
        self._settle()

    def _end(self, rejection: Rejection) -> None:
        """Answer a request that is not whole; what still comes of it is not looked at."""
        self._give_up()
        self._is_ended = True
        self._forget()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._unset_keepalive_if_required()
        self._write(rejection, is_last=True)
        if self.transport.can_write_eof():
            self.transport.write_eof()  # an answer is lost where what was sent is not read
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _discard(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _MOST_DISCARDED:
            self.transport.abort()
        elif not self.transport.is_closing():
            self._app.arrivals.read_later(self, self.loop)

    def _write(self, rejection: Rejection, *, is_last: bool, path: bytes = b"other") -> None:
        app, asked = self._app, path.decode("latin-1")
        app.count(asked, rejection.status)
        app.service.metrics.rejected += rejection is OVERLOADED
        self.transport.write(on_wire(app.shaped(rejection, asked), is_last=is_last))

    def end_late(self) -> None:
        """End what takes too long; without a word where nothing came, or no answer is read."""
        self.book, limits = None, self._app.arrivals.limits
        if self.flow.write_paused or self.transport.is_closing():
            self.transport.abort()
        elif self._is_between:
            self.transport.close()
        elif self._has_headers:
            self._end(too_slow("body", limits.body_seconds))
        else:
            self._end(too_slow("header", limits.header_seconds))

    def end_silent(self) -> None:
        """End, to make room for another."""
        self.book = None
        self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that was quiet for long, unless a rejection went over it meanwhile."""
        left = self._rejected_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._close_after(left)
        elif self.transport.get_write_buffer_size():
            self.transport.abort()  # who does not read an answer will not let it end either
        else:
            super().timeout_keep_alive_handler()

    def _close_after(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def send_400_response(self, msg: str) -> None:
        """Say that what came is no HTTP, and end the connection."""
        self._give_up()
        if not (self._is_ended or self.transport.is_closing()):
            self._write(NO_HTTP, is_last=True)
            self._close()


def is_whole_select(data: bytes) -> bool:
    """Return whether these bytes are one select, whole and plain, and nothing else."""
    end = data.find(b"\r\n\r\n") if data.startswith(_LINE) else -1
    if end < 0:
        return False
    head = data[:end].lower()
    at = head.find(b"\r\ncontent-length:")
    if at < 0 or b"\r\nexpect:" in head or b"\r\ntransfer-encoding:" in head:
        return False
    if b"\r\nconnection:" in head and _KEEP_ALIVE not in head:
        return False
    length = head[at + 17 :].partition(b"\r\n")[0].strip()
    return length.isdigit() and len(data) == end + 4 + int(length)
