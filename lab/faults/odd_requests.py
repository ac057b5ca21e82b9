"""Requests, valid ones, and every way in which they can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Headers = tuple[tuple[bytes, bytes], ...]
_JSON: Headers = ((b"content-type", b"application/json"),)
_DEEP = 20_000
_TOO_LONG = "a number of more digits than Python reads"


@dataclass(frozen=True)
class Asked:
    """A request, and the kind of fault that it was made to have."""

    kind: str
    method: str
    path: str
    body: bytes = b""
    headers: Headers = _JSON
    query: bytes = b""
    pieces: int = 1
    is_cut_off: bool = False


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class OddRequests:
    """Draws requests for a service whose arms have the ids "a0" to "a(arms - 1)".

    `most_bytes` is the limit of its bodies. Decisions that it made can be noted with `saw`,
    so that rewards for them follow.
    """

    def __init__(
        self, *, features: int, arms: int, most_bytes: int, rng: np.random.Generator
    ) -> None:
        self._features, self._arms, self._most_bytes = features, arms, most_bytes
        self._rng = rng
        self._decisions: list[str] = ["unknown"]
        self._kinds: list[Callable[[], Asked]] = [
            self._valid,
            self._valid,
            self._one_odd_value,
            self._one_odd_value,
            self._one_odd_value,
            self._predicate,
            self._without_a_field,
            self._with_an_unknown_field,
            self._twice_the_field,
            self._odd_top,
            self._broken_text,
            self._nested,
            self._long,
            self._too_large,
            self._wrong_route,
            self._odd_headers,
            self._cut_off,
            self._repeated_id,
        ]

    def draw(self) -> Asked:
        """Return the next request."""
        asked = self._kinds[int(self._rng.integers(len(self._kinds)))]()
        if asked.pieces == 1 and self._happens(0.1):
            asked = replace(asked, pieces=int(self._rng.integers(2, 6)))
        return asked

    def saw(self, decision: str) -> None:
        """Remember a decision that was made."""
        if len(self._decisions) < 1_000:
            self._decisions.append(decision)
        else:
            self._decisions[int(self._rng.integers(1_000))] = decision

    # -- what can be drawn

    def _happens(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _one_of(self, things: Any) -> Any:
        return things[int(self._rng.integers(len(things)))]

    def _numbers(self, count: int) -> list[float]:
        drawn: list[float] = self._rng.normal(size=count).round(3).tolist()
        return drawn

    def _arm(self) -> str | int:
        return f"a{self._rng.integers(self._arms)}"

    def _select(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"context": self._numbers(self._features)}
        if self._happens(0.3):
            count = int(self._rng.integers(1, 12))
            fields = {"contexts": [self._numbers(self._features) for _ in range(count)]}
            if self._happens(0.3):
                fields["ids"] = [self._rng.bytes(6).hex() for _ in range(count)]
        elif self._happens(0.3):
            fields["id"] = self._rng.bytes(6).hex()
        if self._happens(0.3):
            fields["k"] = int(self._rng.integers(1, 8))
        if self._happens(0.3):
            fields["eligible"] = self._one_of(
                [
                    [self._arm() for _ in range(3)],
                    {"price": {"<=": 20}},
                    {"kind": "even", "price": {">": 2, "not in": [5, 7]}},
                    {"is_new": True, "kind": {"in": ["even", "odd"]}},
                    None,
                ]
            )
        if self._happens(0.2):
            fields["explore"] = self._happens(0.5)
        if self._happens(0.05):
            fields["propensity"] = True
        return fields

    def _reward(self) -> dict[str, Any]:
        one: dict[str, Any] = {
            "decision": self._one_of(self._decisions),
            "value": self._one_of([0, 1, 0.5, -2.0]),
        }
        if self._happens(0.2):
            one["arm"] = self._arm()
        if self._happens(0.1):
            one["part"] = "x"
        if self._happens(0.3):
            return {"rewards": [{**one, "value": n} for n in range(self._rng.integers(1, 5))]}
        return one

    def _put(self) -> dict[str, Any]:
        def one(id: Any) -> dict[str, Any]:
            columns = {"price": 1.5, "kind": "odd", "is_new": self._happens(0.5)}
            return {"id": id, "features": self._numbers(3), "columns": columns}

        ids = {self._one_of([self._arm(), f"new{self._rng.integers(30)}"]) for _ in range(3)}
        return {"arms": [one(id) for id in sorted(ids)]}

    def _delete(self) -> dict[str, Any]:
        return {"ids": [self._one_of([self._arm(), f"new{self._rng.integers(30)}", 7])]}

    def _any(self) -> tuple[str, str, dict[str, Any]]:
        """Draw a method, a path and a body that go together."""
        drawn = self._rng.random()
        if drawn < 0.5:
            return "POST", "/v1/select", self._select()
        if drawn < 0.75:
            return "POST", "/v1/reward", self._reward()
        if drawn < 0.9:
            return "PUT", "/v1/arms", self._put()
        return "DELETE", "/v1/arms", self._delete()

    # -- the kinds

    def _valid(self) -> Asked:
        if self._happens(0.1):
            paths = ("/v1/status", "/live", "/ready", "/metrics", "/openapi.json")
            return Asked("valid", "GET", self._one_of(paths))
        method, path, fields = self._any()
        return Asked("valid", method, path, _text(fields))

    def _one_odd_value(self) -> Asked:
        method, path, fields = self._any()
        odd = replaced(fields, self._one_of(_ODD), rng=self._rng)
        return Asked("an odd value", method, path, _text(odd, is_ascii=self._happens(0.5)))

    def _predicate(self) -> Asked:
        fields, odd = self._select(), self._one_of(_ODD)
        names = ("price", "kind", "is_new", "colour", "", "__class__", "a" * 500, "\x00")
        signs = ("<=", "==", "in", "not in", "not", ">", "=<", "$gt", "", "\n")
        fields["eligible"] = self._one_of(
            [
                {self._one_of(names): odd},
                {self._one_of(names): {self._one_of(signs): odd}},
                {"price": {self._one_of(signs): [odd, 1]}},
                {"kind": {"in": [odd]}},
                [odd],
                [self._arm(), odd],
                {"price": {"<=": {"<=": {"<=": {"<=": 1}}}}},
                dict.fromkeys(names, odd),
                {f"c{n}": n for n in range(500)},
            ]
        )
        return Asked("a predicate", "POST", "/v1/select", _text(fields))

    def _without_a_field(self) -> Asked:
        method, path, fields = self._any()
        fields.pop(self._one_of(sorted(fields)))
        return Asked("a field left out", method, path, _text(fields))

    def _with_an_unknown_field(self) -> Asked:
        method, path, fields = self._any()
        fields[self._one_of(_NAMES)] = self._one_of(_ODD)
        return Asked("an unknown field", method, path, _text(fields))

    def _twice_the_field(self) -> Asked:
        method, path, fields = self._any()
        text, name = _text(fields), self._one_of(sorted(fields))
        twice = _text({name: self._one_of(_ODD)})
        return Asked("a field twice", method, path, text[:-1] + b"," + twice[1:])

    def _odd_top(self) -> Asked:
        method, path, fields = self._any()
        body = self._one_of([_text(odd) for odd in _ODD] + [_text([fields]), b"", b" ", b"\n\n"])
        return Asked("no object", method, path, body)

    def _broken_text(self) -> Asked:
        method, path, fields = self._any()
        text, position = bytearray(_text(fields)), int(self._rng.integers(1, 30))
        position = min(position, len(text) - 1)
        match self._rng.integers(6):
            case 0:
                text[position] = int(self._rng.integers(256))
            case 1:
                text[position:position] = self._one_of(_BYTES)
            case 2:
                text[:0] = b"\xef\xbb\xbf"
            case 3:
                del text[position:]
            case 4:
                text += self._one_of(_BYTES)
            case _:
                text = bytearray(bytes(text).decode().encode(self._one_of(("utf-16", "utf-32"))))
        return Asked("broken text", method, path, bytes(text))

    def _nested(self) -> Asked:
        method, path, fields = self._any()
        depth = int(self._one_of((10, 100, 1_000, _DEEP)))
        deep = (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth)
        name = self._one_of([*sorted(fields), "eligible"]).encode()
        body = b'{"' + name + b'":' + self._one_of(deep) + b"}"
        if name != b"context" and path == "/v1/select" and self._happens(0.5):
            body = _text({"context": self._numbers(self._features)})[:-1] + b"," + body[1:]
        return Asked("deeply nested", method, path, self._one_of((body, deep[0], b"[" * depth)))

    def _long(self) -> Asked:
        method, path, fields = self._any()
        many = int(self._one_of((1_001, 10_001)))
        odd = self._one_of(("x" * many, [0] * many, ["y"] * many, {f"{n}": n for n in range(many)}))
        return Asked("very long", method, path, _text(replaced(fields, odd, rng=self._rng)))

    def _too_large(self) -> Asked:
        method, path, fields = self._any()
        more = int(self._rng.integers(1, 1_000))
        body = _text(fields) + b" " * (self._most_bytes + more)
        return Asked("too large", method, path, body, pieces=int(self._rng.integers(1, 8)))

    def _wrong_route(self) -> Asked:
        method, path, fields = self._any()
        if self._happens(0.5):
            method = self._one_of(("GET", "HEAD", "OPTIONS", "PATCH", "TRACE", "post", "É", ""))
        else:
            path = self._one_of(_PATHS)
        query = self._one_of((b"", b"a=1", b"%00&&==", b"\xff\xfe"))
        return Asked("a wrong route", method, path, _text(fields), query=query)

    def _odd_headers(self) -> Asked:
        method, path, fields = self._any()
        headers = tuple(self._one_of(_HEADERS) for _ in range(int(self._rng.integers(0, 4))))
        return Asked("odd headers", method, path, _text(fields), headers)

    def _cut_off(self) -> Asked:
        method, path, fields = self._any()
        return Asked("cut off", method, path, _text(fields), pieces=3, is_cut_off=True)

    def _repeated_id(self) -> Asked:
        fields = self._select()
        fields.pop("ids", None)
        if "contexts" in fields:
            count = len(fields["contexts"])
            fields["ids"] = [f"same{self._rng.integers(5)}" for _ in range(count)]
        else:
            fields["id"] = f"same{self._rng.integers(5)}"
        return Asked("an id again", "POST", "/v1/select", _text(fields))


def replaced(value: Any, odd: Any, *, rng: np.random.Generator) -> Any:
    """Return a copy of JSON in which one value, anywhere, is another."""
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    if isinstance(value, list):
        keys = list(range(len(value)))
    if not keys:
        return odd
    key = keys[int(rng.integers(len(keys)))]
    copy = dict(value) if isinstance(value, dict) else list(value)
    inner = copy[key]
    goes_deeper = isinstance(inner, dict | list) and inner and rng.random() < 0.7
    copy[key] = replaced(inner, odd, rng=rng) if goes_deeper else odd
    return copy


def _text(fields: Any, *, is_ascii: bool = True) -> bytes:
    """Write JSON, with what JSON must not have where that is asked for."""
    text = json.dumps(fields, ensure_ascii=is_ascii).replace(f'"{_TOO_LONG}"', "9" * 5_000)
    return text.encode("utf-8", "surrogatepass")


_ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    -0.0,
    1e308,
    1e38,
    1e39,
    1e-320,
    float("nan"),
    float("inf"),
    float("-inf"),
    2**53 + 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    _TOO_LONG,
    "",
    "NaN",
    "x" * 5_000,
    "\x00",
    "a\nb",
    "\x7f\x1b[31m",
    "\ud800",
    "\udfff tail",
    "‮‭",
    "😀" * 100,
    "'; DROP TABLE decisions; --",
    '" OR 1=1 --',
    "../../../../etc/passwd",
    "<script>alert(1)</script>",
    "{{7*7}}${7*7}%s%n",
    [],
    {},
    [[]],
    [None],
    [float("nan")],
    [1e308, 1e308, 1e308, 1e308],
    [True, False, True],
    {"": None},
    {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}},
    ["a0", "a0"],
    ["nobody"],
    [10**400],
]
_BYTES = (b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf5\x80", b",", b"}", b"//", b"NaN")
_NAMES = ("contxt", "K", "", "__proto__", "constructor", "x" * 300, "\x00", "\ud800", "a.b[0]")
_PATHS = (
    "/",
    "",
    "/v1",
    "/v1/",
    "/v1/select/",
    "/V1/SELECT",
    "//v1/select",
    "/v1/select\x00",
    "/v1/sélect",
    "/v2/select",
    "/v1/../v1/select",
    "/" + "x" * 10_000,
    "/%00",
    "/\ud800",
    "*",
    "/console/../../etc/passwd",
    "/openapi.yaml",
)
_HEADERS = (
    (b"content-type", b"text/plain"),
    (b"content-type", b""),
    (b"content-type", b"application/json; charset=latin-1"),
    (b"content-encoding", b"gzip"),
    (b"content-length", b"-1"),
    (b"transfer-encoding", b"chunked"),
    (b"accept", b"image/png"),
    (b"authorization", b"Bearer \xff\xfe"),
    (b"authorization", b""),
    (b"authorization", b"Basic YTpi"),
    (b"authorization", b"Bearer fb_00000000_" + b"x" * 43),
    (b"host", b"evil.example"),
    (b"cookie", b"a=b" * 2_000),
    (b"x-forwarded-for", b"'; DROP TABLE decisions; --"),
    (b"expect", b"100-continue"),
    (b"x-" + b"y" * 5_000, b"z"),
)
