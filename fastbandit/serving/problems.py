"""Why a request was rejected, in one shape (RFC 9457): which field, what came, what to do."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from fastbandit.errors import FastbanditError
from fastbandit.serving.schemas import Problem

PREFIX = "urn:fastbandit:"
MOST_BYTES = 4096  # of an answer to a wrong request
_LONGEST, _LONG = 200, 1_000
_AT = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")
_UNKNOWN = re.compile(r"unknown field `(.*)`$")
_GOT = re.compile(r", got `(\w+)`$")
_SOME_KEY = "[...]"  # of an object whose keys may be any
_KINDS: dict[str, type] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


class Rejection(Exception):  # noqa: N818 - what is said to whom asked, not a failure
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
        self.kind, self.written = b"application/problem+json", b""  # in another shape, if any
        self.problem = Problem(
            type=f"{PREFIX}{name.replace(' ', '-')}",
            title=name,
            status=status,
            detail=_cut(detail, _LONG),
            fix=_cut(fix, _LONG),
            field=None if field is None else _cut(field, _LONGEST),
            value=None if value is None else shortened(value),
        )

    @property
    def body(self) -> bytes:
        """The answer: at most so many bytes, whatever came."""
        if self.written:
            return self.written
        problem = self.problem
        written = msgspec.json.encode(problem)
        if len(written) <= MOST_BYTES:
            return written
        texts = {name: getattr(problem, name) or "" for name in ("detail", "fix", "field", "value")}
        cut = {name: _cut(text, _LONGEST // 2) for name, text in texts.items()}
        return msgspec.json.encode(msgspec.structs.replace(problem, **cut))


def wrong_field(detail: str, *, fix: str, field: str, value: Any = None) -> Rejection:
    """Reject a request one of whose fields cannot be used."""
    return Rejection(422, "wrong field", detail, fix=fix, field=field, value=value)


def shortened(value: Any) -> str:
    """Show what came, in at most so many characters that are safe to print anywhere."""
    text = value if isinstance(value, str) else repr(_few(value))
    text = text[: 2 * _LONGEST].encode("ascii", "backslashreplace").decode()
    return _cut(text, _LONGEST)


def _few(value: Any) -> Any:
    """Return the first items of a long list: all of it would take long to write."""
    return value[:_LONGEST] if isinstance(value, list) and len(value) > _LONGEST else value


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def rejection_of_body(error: Exception, body: bytes) -> Rejection:
    """Say what is wrong with a body that is no JSON, or of another shape."""
    if isinstance(error, msgspec.ValidationError):
        text = _AT.sub("", str(error))
        field, value = _field_of(error, body)
        return Rejection(
            422,
            "wrong field",
            f"The body does not have the shape of this request: {text}.",
            fix="Correct the field; /openapi.json describes the shape.",
            field=field or "body",
            value=value,
        )
    return Rejection(
        400,
        "not JSON",
        f"The body needs to be JSON in UTF-8: {shortened(str(error) or type(error).__name__)}.",
        fix="Send a JSON object; numbers need to be finite.",
        field="body",
        value=body[:_LONGEST].decode("utf-8", "replace"),
    )


def rejection_of_error(error: FastbanditError, *, field: str, value: Any) -> Rejection:
    """Say why what was asked cannot be done, by the library's error."""
    said, _, fix = str(error).rpartition(". ")
    return Rejection(
        422,
        "cannot be used",
        f"{said}." if said else str(error),
        fix=fix if said else "Correct the field.",
        field=field,
        value=value,
    )


def _field_of(error: msgspec.ValidationError, body: bytes) -> tuple[str, str]:
    """Return the field that an error speaks of, and what came in it."""
    at, said = _AT.search(str(error)), _AT.sub("", str(error))
    field, is_some_key, _ = (at[1] if at else "").partition(_SOME_KEY)
    unknown, got = _UNKNOWN.search(said), _GOT.search(said)
    key = unknown[1] if unknown else None
    try:
        value: Any = _within(msgspec.json.decode(body), field)
        if is_some_key and got:
            key = _key_of_kind(value, got[1])
        if key is not None:
            value = value[key]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError, msgspec.MsgspecError):
        value = body[:_LONGEST].decode("utf-8", "replace")
    return ".".join(part for part in (field, key) if part), shortened(value)


def _within(value: Any, field: str) -> Any:
    """Return what lies within a value, where a field says."""
    for step in re.findall(r"[^.\[\]]+", field):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _key_of_kind(found: dict[str, Any], kind: str) -> str | None:
    """Return the first key whose value is of a kind."""
    return next((key for key, value in found.items() if type(value) is _KINDS.get(kind)), None)
