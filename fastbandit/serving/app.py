"""HTTP in front of a service: raw ASGI. Every request gets an answer, whatever happens.

The limits stand here: the bytes of a body, who may ask, and how many may wait.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import msgspec

from fastbandit import __version__
from fastbandit.errors import LogError
from fastbandit.serving.access import Access
from fastbandit.serving.console import CONTENT_SECURITY_POLICY, STATIC
from fastbandit.serving.keys import KeyRing
from fastbandit.serving.overload import Capacity
from fastbandit.serving.problems import Rejection
from fastbandit.serving.routes import Route, Routes
from fastbandit.serving.service import Service

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_LOGGER = logging.getLogger("fastbandit.serving")
_ENCODE = msgspec.json.Encoder().encode
_EXPLANATION = "/explanation"
_JSON = (b"content-type", b"application/json")
_PROBLEM = (b"content-type", b"application/problem+json")
_SAFE = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_PAGE = (
    *_SAFE,
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
)
_CONSOLE = ((b"location", b"/console/"), (b"content-type", b"text/plain"))
_HEADERS = {"/metrics": (_METRICS, *_SAFE), "/": (*_CONSOLE, *_SAFE)} | {
    path: ((b"content-type", kind.encode()), *_PAGE) for path, (_, kind) in STATIC.items()
}
"""What is sent with answers that are not JSON."""


class App:
    """The routes of a service, as an ASGI application."""

    def __init__(self, service: Service, keys: KeyRing) -> None:
        self.service, self.capacity = service, Capacity(service.config.server.max_waiting)
        self.access = service.access = Access(keys)
        self.routes = Routes(service, self.capacity).table()
        self._most_bytes = service.config.server.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        path, given = _template_of(scope["path"])
        headers: tuple[tuple[bytes, bytes], ...] = (_JSON, *_SAFE)
        try:
            needed, handle = self._route(scope, path)
            if needed:
                self.access.admit(scope, needed)
            status, body = await handle(given + await self._body(scope, receive))
            headers = _HEADERS.get(path, headers)
        except Exception as error:
            rejection = _rejection_of(error, path)
            status, body = rejection.status, _ENCODE(rejection.problem)
            headers = (_PROBLEM, *_SAFE, *rejection.headers)
        size = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, size]})
        await send({"type": "http.response.body", "body": body})
        self._count(path, status, time.perf_counter() - began)

    def _count(self, path: str, status: int, seconds: float) -> None:
        metrics = self.service.metrics
        metrics.answers[(path if path in self.routes else "other", status)] += 1
        if path == "/v1/select" and status == 200:
            metrics.selected(seconds)
        elif path == "/v1/reward":
            metrics.reward_times.add(seconds)

    def _route(self, scope: Scope, path: str) -> Route:
        methods = self.routes.get(path)
        if methods is None:
            raise Rejection(
                404,
                "no such route",
                "Nothing is served under this path.",
                fix=f"Use one of {', '.join(self.routes)}.",
                field="path",
                value=scope["path"],
            )
        found = methods.get(scope["method"])
        if found is None:
            raise Rejection(
                405,
                "wrong method",
                f"This path takes {', '.join(methods)}.",
                fix=f"Send {next(iter(methods))}.",
                field="method",
                value=scope["method"],
                headers=((b"allow", ", ".join(methods).encode()),),
            )
        return found

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, but never more than the limit."""
        if scope["method"] == "GET":
            return scope["query_string"]
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body") and len(body) <= self._most_bytes:
            message = await receive()
            body += message.get("body", b"")
        if len(body) > self._most_bytes:
            raise Rejection(
                413,
                "too large",
                f"A body may have at most {self._most_bytes} bytes.",
                fix="Send fewer at a time, or raise server.max_body_bytes.",
                field="body",
                headers=((b"connection", b"close"),),
            )
        return body


def _template_of(path: str) -> tuple[str, bytes]:
    """Return the path of a route, and an id that stands in its place as a part of the query."""
    if path.endswith(_EXPLANATION):
        for start in ("/v1/decisions/", "/v1/arms/"):
            id = path.removeprefix(start).removesuffix(_EXPLANATION)
            if path.startswith(start) and id:
                return f"{start}{{id}}{_EXPLANATION}", f"id={quote(id, safe='')}&".encode()
    return path, b""


def _rejection_of(error: Exception, path: str) -> Rejection:
    """Return what is answered in place of what was asked for."""
    if isinstance(error, Rejection):
        return error
    if isinstance(error, LogError):
        return Rejection(
            503,
            "not written",
            f"Nothing was acknowledged: {' '.join(str(error).split())}",
            fix="Send it again, with the same id, when /ready says ready.",
            headers=((b"retry-after", b"1"),),
        )
    _LOGGER.error("a request failed", exc_info=error, extra={"path": path})
    return Rejection(
        500,
        "internal error",
        "The service failed at this request; its log says where.",
        fix=f"Report it with that log; this is fastbandit {__version__}.",
    )
