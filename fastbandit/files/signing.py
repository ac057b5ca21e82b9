"""Signatures of manifests: HMAC-SHA256 of their hash, by a key of who reads and writes them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path

from fastbandit.errors import SettingError

Keys = Sequence[bytes]
"""Of which the first signs, and any vouches: so that keys can be exchanged one by one."""
_SHORTEST = 16


def read_keys(path: str) -> Keys:
    """Read the keys in a file, one a line; no path is no key."""
    if not path:
        return ()
    try:
        lines = [line.strip() for line in Path(path).expanduser().read_bytes().splitlines()]
    except OSError as error:
        raise SettingError(
            f"Signing snapshots needs a file of keys that can be read: {path} cannot ({error}). "
            f"Correct snapshots.signing_key_file, or let it be read."
        ) from error
    keys = [line for line in lines if line]
    if not keys or min(map(len, keys)) < _SHORTEST:
        raise SettingError(
            f"Signing snapshots needs keys of at least {_SHORTEST} characters, one a line: "
            f"{path} has {len(keys)}, or a shorter one. Write one with: openssl rand -hex 32"
        )
    return keys


def signature_of(digest: str, key: bytes) -> str:
    """Return the signature of a hash."""
    return hmac.new(key, digest.encode(), hashlib.sha256).hexdigest()


def is_signed(digest: str, signature: str, keys: Keys) -> bool:
    """Return whether a hash has the signature by one of some keys."""
    wanted = (signature_of(digest, key).encode() for key in keys)
    return any(hmac.compare_digest(signature.encode(), one) for one in wanted)
