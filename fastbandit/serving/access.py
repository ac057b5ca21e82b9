"""Who may ask what: keys where there are some, this machine's own names where there are none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from fastbandit.errors import DataError
from fastbandit.serving.keys import KeyFault, KeyRing, Scope
from fastbandit.serving.problems import Rejection

_KEYS_SECONDS = 1.0  # a key that was revoked is rejected after so long
_LOOPBACK = frozenset({"", "localhost", "127.0.0.1", "::1"})
_OWN_SITES = frozenset({"", "same-origin", "none"})  # none: a person typed the address
SUBSCRIPTION = b"ocp-apim-subscription-key"
"""The header in which clients of Personalizer send a key."""
_ONCE = (b"host", b"authorization", b"content-type", b"origin", b"sec-fetch-site", SUBSCRIPTION)
_SECRET = (b"authorization", SUBSCRIPTION)
Headers = Mapping[bytes, bytes]


class Access:
    """Lets requests through, or rejects them; `problem` says what is wrong with the keys."""

    def __init__(self, keys: KeyRing) -> None:
        self.problem: str | None = None
        self._keys, self._read_at = keys, time.monotonic()

    def admit(self, headers: Headers, needed: Scope, *, is_change: bool) -> str:
        """Return the id of the key, or reject who has none for this.

        Without any keys there is nothing to reject but what other sites' pages send.
        """
        self._read_keys()
        if self._keys.is_open:
            _check_host(headers)
            _check_site(headers)
            if is_change and SUBSCRIPTION not in headers:  # no page sends that without asking
                _check_type(headers)
            return ""
        key = _key_of(headers)
        fault = self._keys.check(key or None, needed)
        if fault is None:
            return key.split("_", 2)[1]
        is_foreign = fault is not KeyFault.LACKS_SCOPE
        said = f"the key is {fault.value}" if is_foreign else "the key lacks it"
        raise Rejection(
            401 if is_foreign else 403,
            "no key" if is_foreign else "no right",
            f"This route needs a key with the scope {needed!r}: {said}.",
            fix="Send the header Authorization: Bearer fb_…; `fastbandit keys create` makes one.",
            field="authorization",
            headers=((b"www-authenticate", b"Bearer"),) if is_foreign else (),
        )

    def _read_keys(self) -> None:
        """Read the keys anew if their file changed; a damaged one changes nothing."""
        now = time.monotonic()
        if now - self._read_at > _KEYS_SECONDS:
            self._read_at = now
            try:
                self._keys = self._keys.reload()
                self.problem = None
            except DataError as error:
                self.problem = " ".join(str(error).split())


def headers_of(scope: dict[str, Any]) -> Headers:
    """Return headers by name, or reject those that may come once and came twice."""
    given = scope["headers"]
    headers = dict(given)
    if len(headers) < len(given):
        names = [name for name, _ in given]
        twice = next((name for name in _ONCE if names.count(name) > 1), None)
        if twice is not None:
            name = twice.decode()
            values = [value for one, value in given if one == twice]
            raise Rejection(
                400,
                "header twice",
                f"A request needs one header {name}: got {len(values)}.",
                fix="Send it once; a proxy in between may have added another.",
                field=name,
                value="…" if twice in _SECRET else b", ".join(values).decode("latin-1"),
            )
    return headers


def _key_of(headers: Headers) -> str:
    """Return the key that a request has, "" where it has none."""
    kind, _, key = _text(headers, b"authorization").partition(" ")
    return key if kind.lower() == "bearer" else _text(headers, SUBSCRIPTION)


def _text(headers: Headers, name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")


def _check_host(headers: Headers) -> None:
    """Reject a page of some other site that a browser on this machine was led here by."""
    host = _text(headers, b"host")
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if name.strip("[]") not in _LOOPBACK:
        raise Rejection(
            403,
            "foreign host",
            "A service without keys answers requests to this machine's own names only.",
            fix="Ask for localhost or 127.0.0.1, or make keys: `fastbandit keys create`.",
            field="host",
            value=host,
        )


def _check_site(headers: Headers) -> None:
    """Reject what a page of another site has a browser send."""
    origin, site = _text(headers, b"origin"), _text(headers, b"sec-fetch-site")
    is_own = not origin or origin.partition("://")[2].lower() == _text(headers, b"host").lower()
    if is_own and site in _OWN_SITES:
        return
    raise Rejection(
        403,
        "foreign page",
        "A service without keys answers programs and its own pages, not those of other sites.",
        fix="Ask from a program, or make keys: `fastbandit keys create`.",
        field="sec-fetch-site" if is_own else "origin",
        value=site if is_own else origin,
    )


def _check_type(headers: Headers) -> None:
    """Reject what pages can send anywhere without asking: forms and plain texts."""
    came = _text(headers, b"content-type")
    if came.partition(";")[0].strip().lower() != "application/json":
        raise Rejection(
            415,
            "not JSON",
            "A service without keys needs the header Content-Type: application/json.",
            fix="Send that header.",
            field="content-type",
            value=came,
        )
