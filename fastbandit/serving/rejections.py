"""Rejections of requests that no route has seen, and how they go over the wire."""

from __future__ import annotations

from functools import cache

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from fastbandit.serving.problems import Rejection

MOST_HEADERS = 256
_CLOSE = (b"connection", b"close")


def overloaded() -> Rejection:
    """Say that too many requests are under way."""
    return Rejection(
        503,
        "overloaded",
        "More requests are under way than can be answered soon.",
        fix="Send the request again after the time in Retry-After.",
        headers=((b"retry-after", b"1"),),
    )


def too_large(most: int, setting: str) -> Rejection:
    """Say that a body is larger than a setting allows."""
    return Rejection(
        413,
        "too large",
        f"A body may have at most {most} bytes.",
        fix=f"Send fewer at a time, or raise {setting}.",
        field="body",
        headers=(_CLOSE,),
    )


def long_headers(most: int) -> Rejection:
    """Say that headers are longer, or more, than they may be."""
    return Rejection(
        431,
        "headers too large",
        f"A request may have at most {MOST_HEADERS} headers, of {most} bytes with its first line.",
        fix="Send fewer or shorter ones, or raise limits.header_bytes.",
        field="headers",
    )


def too_slow(what: str, seconds: float) -> Rejection:
    """Say that a part of a request took too long."""
    return Rejection(
        408,
        "too slow",
        f"The {what} of a request needs to come within {seconds:g} seconds.",
        fix=f"Send it faster, or raise limits.{what}_seconds.",
        field=what,
    )


OVERLOADED = overloaded()
NO_HTTP = Rejection(
    400,
    "not HTTP",
    "What came is not a request of HTTP/1.1.",
    fix="Speak plain HTTP/1.1; where TLS is set up, https.",
    field="request",
    headers=(_CLOSE,),
)


def on_wire(rejection: Rejection, *, is_last: bool) -> bytes:
    """Return a rejection as it goes over the wire."""
    return _overloaded(is_last) if rejection is OVERLOADED else _written(rejection, is_last)


@cache
def _overloaded(is_last: bool) -> bytes:
    return _written(OVERLOADED, is_last)


def _written(rejection: Rejection, is_last: bool) -> bytes:
    body = rejection.body
    own = [one for one in rejection.headers if is_last or one != _CLOSE]
    headers = [*own, (b"content-type", rejection.kind)]
    headers += [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
    headers += [_CLOSE] if is_last and _CLOSE not in own else []
    headers += [(b"content-length", str(len(body)).encode())]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return STATUS_LINE[rejection.status] + lines + b"\r\n" + body
