"""Rejections that cost little: under overload a request is rejected before any work on it.

uvicorn starts a task for each request as soon as its headers are read. Here a task is started
once the body is there too, so that the tasks are the requests that are being worked on, and
not those that arrive slowly. With more of them than can be answered soon, those that come are
rejected at once, and the ones begun are finished. Where more are rejected than answered, their
connections are not read for a moment, so that rejections never take most of the time.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from fastbandit.serving.problems import Rejection

_SELECT, _REWARD = b"/v1/select", b"/v1/reward"
_LINE = b"POST /v1/select HTTP/1.1\r\n"
_KEEP_ALIVE = b"\r\nconnection: keep-alive"
_ROWS = 8
_NEARLY = 32  # rows: a request of so many contexts would find no room
_TICK_SECONDS = 0.005
_FREE = 5  # rejections in a tick that hold up no connection


class Capacity:
    """How many requests may be under way, and the connections that wait to be read again.

    Requests with many contexts may hold `most_rows` of them together.
    """

    def __init__(self, most: int) -> None:
        self.most, self.most_rows = most, _ROWS * most
        self._nearly_all = max(self.most_rows - _NEARLY, self.most_rows // 2 + 1)
        self.rows = 0
        self._held: deque[OverloadProtocol] = deque()
        self._is_ticking, self._left, self._answered = False, 0, 0

    def is_full(self, under_way: int) -> bool:
        """Return whether a select that comes now would be rejected, or nearly any."""
        return under_way >= self.most or self.rows >= self._nearly_all

    def hold(self, one: OverloadProtocol) -> None:
        """Count a rejection; where there were too many, do not read that connection for a while."""
        if not self._is_ticking:
            self._is_ticking, self._left = True, _FREE
            self._answered = one.server_state.total_requests
            one.loop.call_later(_TICK_SECONDS, self._tick, one.loop, one.server_state)
        self._left -= 1
        if self._left < 0:
            one.flow.pause_reading()
            self._held.append(one)

    def _tick(self, loop: AbstractEventLoop, state: ServerState) -> None:
        """Read connections again: one for two answers since the last tick, or as room allows."""
        answered, self._answered = self._answered, state.total_requests
        free = min(self.most - len(state.tasks), (self.most_rows - self.rows) // _ROWS)
        count, self._left = max(_FREE, (self._answered - answered) // 2, free), _FREE
        for _ in range(min(count, len(self._held))):
            one = self._held.popleft()
            if not one.transport.is_closing():
                one.flow.resume_reading()
        self._is_ticking = bool(self._held)
        if self._is_ticking:
            loop.call_later(_TICK_SECONDS, self._tick, loop, state)


class OverloadProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with a limit on the requests that are under way.

    The limit and the metrics are those of the app: see `App.capacity`. Rewards, of which
    nothing may be lost, have twice the room of selects.
    """

    _is_between = True  # no request is half read
    _is_rejecting = False
    _running: RequestResponseCycle | None = None
    _held: Any = None  # the app, for a request whose body is not there yet
    _rejected_at = 0.0

    # -- what comes over the wire

    def data_received(self, data: bytes) -> None:
        """Read on; a whole request that will be rejected is not even parsed."""
        app: Any = self.config.app
        is_full = app.capacity.is_full(len(self.tasks))
        if is_full and self._is_between and self._is_free and is_whole_select(data):
            self._reject(_SELECT)
        else:
            super().data_received(data)

    def on_message_begin(self) -> None:
        self._is_between = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin a request, or see that it will be rejected."""
        if not (self._is_free and self._has_no_room()):
            super().on_headers_complete()
        elif self.expect_100_continue:  # its body will not come, or be taken for a request
            self._is_rejecting = True
            self._reject(self._path, is_last=True)
        else:
            self._is_rejecting = True

    def on_body(self, body: bytes) -> None:
        if self._is_rejecting:
            return
        if self._held is None:
            super().on_body(body)
            return
        self.cycle.body += body
        service = self.config.app.service  # type: ignore[union-attr]
        if len(self.cycle.body) > service.config.server.max_body_bytes:
            self._begin()

    def on_message_complete(self) -> None:
        """End a request: reject it, if that is how it began."""
        self._is_between = True
        if self._is_rejecting:
            self._is_rejecting = False
            is_old = self.parser.get_http_version() == "1.0"
            self._reject(self._path, is_last=is_old or not self.parser.should_keep_alive())
            return
        super().on_message_complete()
        if self._held is not None:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a request that is under way know that its answer is not waited for."""
        self._give_up()
        super().connection_lost(exc)

    # -- tasks

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        if cycle.more_body and not cycle.waiting_for_100_continue:
            self._held = app
        else:
            super()._start_asgi_task(cycle, app)

    def _begin(self) -> None:
        """Start the task of the request that was held."""
        app, self._held = self._held, None
        super()._start_asgi_task(self.cycle, app)

    def _give_up(self) -> None:
        """Send nothing more for the request that is under way."""
        self._held = None
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()

    # -- rejections

    @property
    def _is_free(self) -> bool:
        """Whether no answer is under way, which would have to come first."""
        return self.cycle is None or self.cycle.response_complete

    def _has_no_room(self) -> bool:
        most = self.config.app.capacity.most  # type: ignore[union-attr]
        limit = {_SELECT: most, _REWARD: 2 * most}.get(self._path)
        return limit is not None and len(self.tasks) >= limit

    @property
    def _path(self) -> bytes:
        return self.url.partition(b"?")[0]

    def _reject(self, path: bytes, *, is_last: bool = False) -> None:
        if self.transport.is_closing():
            return
        metrics = self.config.app.service.metrics  # type: ignore[union-attr]
        metrics.rejected += 1
        metrics.answers[path.decode(), 503] += 1
        self._rejected_at = self.loop.time()
        self.transport.write(OVERLOADED_LAST if is_last else OVERLOADED)
        if is_last:
            self.transport.close()
            return
        if self.timeout_keep_alive_task is None:
            self._close_after(self.timeout_keep_alive)
        self.config.app.capacity.hold(self)  # type: ignore[union-attr]

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that was quiet for long, unless a rejection went over it meanwhile."""
        left = self._rejected_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._close_after(left)
        else:
            super().timeout_keep_alive_handler()

    def _close_after(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def send_400_response(self, msg: str) -> None:
        """Say that what came is no HTTP, and end the connection."""
        self._give_up()
        if not self.transport.is_closing():
            self.transport.write(NO_HTTP)
            self.transport.close()


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


def overloaded() -> Rejection:
    """Say that too many requests are under way."""
    return Rejection(
        503,
        "overloaded",
        "More requests are under way than can be answered soon.",
        fix="Send the request again after the time in Retry-After.",
        headers=((b"retry-after", b"1"),),
    )


def _written(line: bytes, rejection: Rejection, *, is_last: bool = False) -> bytes:
    """Write a rejection as it goes over the wire."""
    body = msgspec.json.encode(rejection.problem)
    headers = [*rejection.headers, (b"content-type", b"application/problem+json")]
    headers += [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
    headers += [(b"connection", b"close")] if is_last else []
    headers += [(b"content-length", str(len(body)).encode())]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return b"HTTP/1.1 " + line + b"\r\n" + lines + b"\r\n" + body


OVERLOADED = _written(b"503 Service Unavailable", overloaded())
OVERLOADED_LAST = _written(b"503 Service Unavailable", overloaded(), is_last=True)
NO_HTTP = _written(
    b"400 Bad Request",
    Rejection(
        400,
        "not HTTP",
        "What came is not a request of HTTP/1.1.",
        fix="Speak plain HTTP/1.1; where TLS is set up, https.",
        field="request",
        headers=((b"connection", b"close"),),
    ),
)
