"""Refusals that cost little: under overload a request is refused before any work is begun.

uvicorn starts a task for each request as it is read. With more requests under way than can be
answered soon, those that come are told so at once, and the ones begun are finished.
"""

from __future__ import annotations

from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fastbandit.serving.problems import Refusal

_SELECT = b"/v1/select"


class RefusingProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with a limit on the selects that are under way.

    The limit and the measures are those of the app: see `App.most_under_way`.
    """

    _is_refusing = False

    def on_headers_complete(self) -> None:
        """Begin a request, or see that it will be refused."""
        app: Any = self.config.app
        is_free = self.cycle is None or self.cycle.response_complete
        if is_free and self.url == _SELECT and len(self.tasks) >= app.most_under_way:
            self._is_refusing = True
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        if not self._is_refusing:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request: refuse it, if that is how it began."""
        if not self._is_refusing:
            super().on_message_complete()
            return
        self._is_refusing = False
        measures = self.config.app.service.measures  # type: ignore[union-attr]
        measures.refused += 1
        measures.answers["/v1/select", 503] += 1
        self.transport.write(OVERLOADED)
        if not self.parser.should_keep_alive():
            self.transport.close()


def overloaded() -> Refusal:
    """Say that too many requests are under way."""
    return Refusal(
        503,
        "overloaded",
        "More requests are under way than can be answered soon.",
        fix="Send the request again after the time in Retry-After.",
        headers=((b"retry-after", b"1"),),
    )


def _written(refusal: Refusal) -> bytes:
    """Write a refusal as it goes over the wire."""
    body = msgspec.json.encode(refusal.problem)
    headers = [*refusal.headers, (b"content-type", b"application/problem+json")]
    headers += [(b"cache-control", b"no-store"), (b"content-length", str(len(body)).encode())]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return b"HTTP/1.1 503 Service Unavailable\r\n" + lines + b"\r\n" + body


OVERLOADED = _written(overloaded())
