"""Who may ask what: keys where there are some, this machine's own names where there are none."""

from __future__ import annotations

import time
from typing import Any

from fastbandit.errors import DataError
from fastbandit.serving.keys import KeyFault, KeyRing, Scope
from fastbandit.serving.problems import Rejection

_KEYS_SECONDS = 1.0  # a key that was revoked is rejected after so long
_LOOPBACK = frozenset({"", "localhost", "127.0.0.1", "::1"})


class Access:
    """Lets requests through, or rejects them; `problem` says what is wrong with the keys."""

    def __init__(self, keys: KeyRing) -> None:
        self.problem: str | None = None
        self._keys, self._read_at = keys, time.monotonic()

    def admit(self, scope: dict[str, Any], needed: Scope) -> None:
        """Reject who has no key for this; without any keys there is nothing to reject."""
        self._read_keys()
        if self._keys.is_open:
            _check_host(_header(scope, b"host"))
            return
        kind, _, key = _header(scope, b"authorization").partition(" ")
        fault = self._keys.check(key if kind.lower() == "bearer" else None, needed)
        if fault is None:
            return
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


def _header(scope: dict[str, Any], name: bytes) -> str:
    return next((v for key, v in scope["headers"] if key == name), b"").decode("latin-1")


def _check_host(host: str) -> None:
    """Reject a page of some other site that a browser on this machine was led here by."""
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
