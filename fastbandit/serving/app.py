"""HTTP in front of a service: raw ASGI. Every request gets an answer, whatever happens.

The limits stand here: the bytes of a body, who may ask, and how many may wait.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from fastbandit import __version__
from fastbandit.errors import LogError
from fastbandit.serving.access import Access, headers_of
from fastbandit.serving.arrivals import Arrivals
from fastbandit.serving.capacity import Capacity
from fastbandit.serving.console import CONTENT_SECURITY_POLICY, STATIC
from fastbandit.serving.handlers import Handler, Route
from fastbandit.serving.keys import KeyRing
from fastbandit.serving.personalizer.errors import as_error
from fastbandit.serving.personalizer.paths import OLD, operation_of
from fastbandit.serving.problems import Rejection
from fastbandit.serving.quotas import Quotas
from fastbandit.serving.rejections import too_large
from fastbandit.serving.routes import Routes
from fastbandit.serving.service import Service

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_LOGGER = logging.getLogger("fastbandit.serving")
_EXPLANATION = "/explanation"
_LITTLE = 4096  # bytes of a body that nobody reads
_NOTHING = 204  # an answer without a body
_JSON = (b"content-type", b"application/json")
_SAFE = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_OCTETS = (b"content-type", b"application/octet-stream")
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


class Admitted(NamedTuple):
    """A request that may be made: what answers it, for whom, and how large its body may be."""

    handle: Handler
    path: str
    given: bytes
    key: str
    most_bytes: int
    setting: str
    shaped: Callable[[Rejection], Rejection]

    def too_large(self) -> Rejection:
        return self.shaped(too_large(self.most_bytes, self.setting))


class App:
    """The routes of a service, as an ASGI application."""

    def __init__(self, service: Service, keys: KeyRing) -> None:
        self.service, config = service, service.config
        self.capacity, self.arrivals = Capacity(config.server.max_waiting), Arrivals(config.limits)
        self.access, self.quotas = Access(keys), Quotas(config.limits)
        service.access = self.access
        self.routes = Routes(service, self.capacity, self.quotas).table()
        own = config.personalizer
        self._prefix = own.prefix if own.enabled else "//"  # which no path begins with
        self._headers = _HEADERS | {f"{self._prefix}/model": (_OCTETS, *_SAFE)}
        self._selects = {"/v1/select": 200, f"{self._prefix}/rank": 201}
        self._rewards = {"/v1/reward", f"{self._prefix}/events/{{id}}/reward"}
        self._most = min(
            (config.limits.body_bytes, "limits.body_bytes"),
            (config.server.max_body_bytes, "server.max_body_bytes"),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)

    def admit(self, scope: Scope) -> Admitted:
        """Let a request through, by its headers alone, or reject it."""
        try:
            return self._admit(scope)
        except Rejection as rejection:
            raise self.shaped(rejection, scope["path"]) from rejection

    def _admit(self, scope: Scope) -> Admitted:
        path, given = self._template_of(scope["path"])
        shaped = partial(self.shaped, path=scope["path"])
        headers, method = headers_of(scope), scope["method"]
        needed, handle = self._route(scope, path)
        key = ""
        if needed:
            key = self.access.admit(headers, needed, is_change=method != "GET")
            self.quotas.take(key, "requests")
        most, setting = self._most
        if method == "GET":
            most = min(most, _LITTLE)
        elif needed == "admin":
            most, setting = self.service.config.server.max_body_bytes, "server.max_body_bytes"
        admitted = Admitted(handle, path, given, key, most, setting, shaped)
        length = headers.get(b"content-length", b"")
        if length.isdigit() and (len(length) > 18 or int(length) > most):
            raise admitted.too_large()
        return admitted

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        path = self._template_of(scope["path"])[0]
        headers: tuple[tuple[bytes, bytes], ...] = (_JSON, *_SAFE)
        try:
            admitted = scope.get("admitted") or self.admit(scope)  # by the server, or here
            body = admitted.given + await _body(scope, receive, admitted)
            status, body, *created = await admitted.handle(body, admitted.key)
            headers = self._headers.get(path, headers)
            if created:
                headers = (*headers, (b"location", f"{scope['path']}/{created[0]}".encode()))
        except Exception as error:
            rejection = self.shaped(_rejection_of(error, path), scope["path"])
            status, body = rejection.status, rejection.body
            headers = ((b"content-type", rejection.kind), *_SAFE, *rejection.headers)
        size = (b"content-length", str(len(body)).encode())
        sent = _SAFE if status == _NOTHING else (*headers, size)
        await send({"type": "http.response.start", "status": status, "headers": [*sent]})
        await send({"type": "http.response.body", "body": body})
        self.count(path, status, time.perf_counter() - began)

    def count(self, path: str, status: int, seconds: float | None = None) -> None:
        """Count an answer, and how long it took where it was worked for."""
        metrics = self.service.metrics
        metrics.answers[(path if path in self.routes else "other", status)] += 1
        if seconds is None:
            return
        if self._selects.get(path) == status:
            metrics.selected(seconds)
        elif path in self._rewards:
            metrics.reward_times.add(seconds)

    def _template_of(self, path: str) -> tuple[str, bytes]:
        """Return the path of a route, and an id that stands in its place as a part of the query."""
        found = operation_of(path, self._prefix)
        return _template_of(path) if found is None else (self._prefix + found[0], found[1])

    def shaped(self, rejection: Rejection, path: str) -> Rejection:
        """Return a rejection in the shape that whoever asks for a path can read."""
        found = operation_of(path, self._prefix)
        if found is None or rejection.written:
            return rejection
        return as_error(rejection, found[0], is_old=path.startswith(self._prefix + OLD))

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


async def _body(scope: Scope, receive: Receive, admitted: Admitted) -> bytes:
    """Read the body, but never more than the limit."""
    if scope["method"] == "GET":
        query: bytes = scope["query_string"]
        return query
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body") and len(body) <= admitted.most_bytes:
        message = await receive()
        body += message.get("body", b"")
    if len(body) > admitted.most_bytes:
        raise admitted.too_large()
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
