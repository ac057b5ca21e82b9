"""Why a request was refused, in one shape (RFC 9457): which field, what came, what to do."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fastbandit.errors import FastbanditError
from fastbandit.serving.schemas import Problem

PREFIX = "urn:fastbandit:"
_LONGEST = 200
_AT = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")
_UNKNOWN = re.compile(r"unknown field `(.*)`")


class Refusal(Exception):  # noqa: N818 - what is said to whom asked, not a failure
    """A request that gets no answer but the reason why."""

    def __init__(
        self,
        status: int,
        name: str,
        detail: str,
        *,
        fix: str,
        field: str | None = None,
        value: Any = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status, self.headers = status, headers
        self.problem = Problem(
            type=f"{PREFIX}{name.replace(' ', '-')}",
            title=name,
            status=status,
            detail=detail,
            fix=fix,
            field=field,
            value=None if value is None else shortened(value),
        )


def wrong_field(detail: str, *, fix: str, field: str, value: Any = None) -> Refusal:
    """Refuse a request one of whose fields cannot be used."""
    return Refusal(422, "wrong field", detail, fix=fix, field=field, value=value)


def shortened(value: Any) -> str:
    """Show what came, in at most so many characters that are safe to print anywhere."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def refusal_of_body(error: Exception, body: bytes) -> Refusal:
    """Say what is wrong with a body that is no JSON, or of another shape."""
    if isinstance(error, msgspec.ValidationError):
        text = str(error)
        at, unknown = _AT.search(text), _UNKNOWN.search(text)
        field = at[1] if at else ""
        if unknown:
            field = f"{field}.{unknown[1]}".lstrip(".")
        return Refusal(
            422,
            "wrong field",
            f"The body does not have the shape of this request: {_AT.sub('', text)}.",
            fix="Correct the field; /openapi.json describes the shape.",
            field=field or "body",
            value=_found(body, field),
        )
    return Refusal(
        400,
        "not JSON",
        f"The body needs to be JSON in UTF-8: {shortened(str(error) or type(error).__name__)}.",
        fix="Send a JSON object; numbers need to be finite.",
        field="body",
        value=body[:_LONGEST].decode("utf-8", "replace"),
    )


def refusal_of_error(error: FastbanditError, *, field: str, value: Any) -> Refusal:
    """Say why what was asked cannot be done, in the words of the library's error."""
    said, _, fix = str(error).rpartition(". ")
    return Refusal(
        422,
        "cannot be used",
        f"{said}." if said else str(error),
        fix=fix if said else "Correct the field.",
        field=field,
        value=value,
    )


def _found(body: bytes, field: str) -> str | None:
    """Give the value that a field has in a body, if it can be found."""
    try:
        value: Any = msgspec.json.decode(body)
        for step in re.findall(r"[^.\[\]]+", field):
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError, msgspec.MsgspecError):
        value = body[:_LONGEST].decode("utf-8", "replace")
    return shortened(value)
