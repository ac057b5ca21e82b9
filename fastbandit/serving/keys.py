"""API keys: who may select, send rewards, or do anything.

A key is `fb_<id>_<secret>`. The file holds a salted SHA-256 of each secret: a key can be checked
by it, and not be made of it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from fastbandit.declaration import known_name
from fastbandit.errors import DataError, SettingError
from fastbandit.files.atomic import mark_of, raising, rename
from fastbandit.files.manifest import digest_of
from fastbandit.settings.service import ServerConfig

KEYS_FILE = "keys.json"
FORMAT = 1
Scope: TypeAlias = Literal["select", "reward", "admin"]
SCOPES: tuple[Scope, ...] = ("select", "reward", "admin")
_FORM = re.compile(r"fb_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_LONGEST_NAME = 100


def keys_path(server: ServerConfig) -> Path:
    """Return the file of a service's keys: its own, or one that services share."""
    return Path(server.keys_file or Path(server.data_dir) / KEYS_FILE)


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the file holds it; `expires` is the last day on which it is taken, in UTC."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created: date
    expires: date | None = None
    salt: bytes = field(default=b"", repr=False)
    digest: bytes = field(default=b"", repr=False)

    @property
    def until(self) -> float:
        """The time, in seconds since 1970, from which it is not taken any more."""
        if self.expires is None:
            return float("inf")
        midnight = datetime(self.expires.year, self.expires.month, self.expires.day, tzinfo=UTC)
        return midnight.timestamp() + timedelta(days=1).total_seconds()

    @property
    def granted(self) -> tuple[str, ...]:
        """The scopes that it grants: "admin" includes the others."""
        return SCOPES if "admin" in self.scopes else self.scopes

    def to_json(self) -> dict[str, Any]:
        """Return all that may be shown of it."""
        return {
            "id": self.id,
            "name": self.name,
            "scopes": list(self.scopes),
            "created": self.created.isoformat(),
            "expires": self.expires.isoformat() if self.expires else None,
        }


class KeyFault(Enum):
    """Why a key does not open a route."""

    MISSING = "missing"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    LACKS_SCOPE = "lacks the scope"


class KeyRing:
    """The keys of a service, as its file had them when it was read.

    `is_open` says that there is no such file. `check` then rejects every key all the same:
    whether anything may be done without one is for the server to say.
    """

    def __init__(
        self,
        keys: Sequence[Key] = (),
        *,
        path: Path | None = None,
        is_open: bool = False,
        mark: tuple[int, int] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.keys, self.path, self.is_open = tuple(keys), path, is_open
        self._mark, self._clock = mark, clock
        self._held = {key.id: (key.salt, key.digest, key.until, key.granted) for key in keys}
        # For ids of no key: work as for the others, which no secret passes.
        self._no_key = (secrets.token_bytes(16), secrets.token_bytes(32), 0.0, ())

    @classmethod
    def load(cls, path: Path, *, clock: Callable[[], float] = time.time) -> KeyRing:
        """Read the keys of a file, or say that it is damaged; no file is an open ring."""
        try:
            mark, text = mark_of(path), path.read_bytes()  # a change in between is read again
        except FileNotFoundError:
            return cls(path=path, is_open=True, clock=clock)
        except OSError as error:
            raise _damaged(path, str(error)) from error
        return cls(_read(path, text), path=path, mark=mark, clock=clock)

    def reload(self) -> KeyRing:
        """Return the keys that the file holds now: these, if it is the same file.

        A file that is gone leaves a ring that rejects all: a service never opens by itself.
        """
        if self.path is None or mark_of(self.path) == self._mark:
            return self
        ring = KeyRing.load(self.path, clock=self._clock)
        if ring.is_open and not self.is_open:
            return KeyRing(path=self.path, clock=self._clock)
        return ring

    def check(self, presented: str | None, scope: Scope) -> KeyFault | None:
        """Return why a key does not open a scope; as fast for an id that is known as for others."""
        if not presented:
            return KeyFault.MISSING
        parts = _FORM.fullmatch(presented)
        if parts is None:
            return KeyFault.MALFORMED
        id, secret = parts.groups()
        salt, digest, until, granted = self._held.get(id, self._no_key)
        is_same = hmac.compare_digest(_digest(salt, secret), digest)
        if not is_same or id not in self._held:
            return KeyFault.UNKNOWN
        if self._clock() >= until:
            return KeyFault.EXPIRED
        return None if scope in granted else KeyFault.LACKS_SCOPE


# -- changing the file


def create_key(
    path: Path,
    *,
    name: str,
    scopes: Sequence[str],
    expires: date | None = None,
    today: date | None = None,
) -> tuple[str, Key]:
    """Add a key to a file; return the text to show once, and the key as it is held."""
    today = today or datetime.now(UTC).date()
    _check_new(name, scopes, expires, today=today)
    with _replacing(path) as file:
        keys = KeyRing.load(path).keys
        id = secrets.token_hex(4)
        while any(key.id == id for key in keys):
            id = secrets.token_hex(4)
        secret, salt = secrets.token_urlsafe(32), secrets.token_bytes(16)
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        key = Key(id, name, ordered, today, expires, salt, _digest(salt, secret))
        file.write(_to_bytes([*keys, key]))
    return f"fb_{id}_{secret}", key


def revoke_key(path: Path, id: str) -> Key:
    if not KeyRing.load(path).keys:
        raise SettingError(
            f"A key to revoke needs to exist: {path} holds none. Name the data folder of the "
            f"service with --config or --data-dir."
        )
    with _replacing(path) as file:
        keys = {key.id: key for key in KeyRing.load(path).keys}
        known_name("id of a key", id, tuple(keys))
        revoked = keys.pop(id)
        file.write(_to_bytes(keys.values()))
    return revoked


def _check_new(name: str, scopes: Sequence[str], expires: date | None, *, today: date) -> None:
    if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
        raise SettingError(
            f"The name of a key needs 1 to {_LONGEST_NAME} printable characters: got {name!r}. "
            f"Name who will use it."
        )
    if not scopes:
        raise SettingError(f"A key needs scopes: got none. Give some of {', '.join(SCOPES)}.")
    for scope in scopes:
        known_name("scope of a key", scope, SCOPES)
    if expires is not None and expires < today:
        raise SettingError(
            f"A new key needs to expire later: got {expires}, and today is {today} (UTC). Name a "
            f"later day, or none."
        )


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside, which replaces `path` in the end unless something is raised.

    Only one at a time can: so no key that was just revoked comes back.
    """
    beside = path.with_name(f"{path.name}.part")
    needs = f"The keys need a folder that can be written to: {path.parent} cannot"
    with raising(DataError, needs, fix="Make room there, or name another with --data-dir."):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError as error:
            raise DataError(
                f"The keys need one writer at a time: {beside} is there already. Wait for the "
                f"other command; if there is none, remove that file."
            ) from error
        try:
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(descriptor)
            rename(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


# -- the file's layout


def _to_bytes(keys: Iterable[Key]) -> bytes:
    held: dict[str, Any] = {"format": FORMAT, "keys": [_held(key) for key in keys]}
    return json.dumps({**held, "sha256": digest_of(held)}, indent=1).encode()


def _held(key: Key) -> dict[str, Any]:
    return {**key.to_json(), "salt": key.salt.hex(), "sha256": key.digest.hex()}


def _from_json(raw: dict[str, Any]) -> Key:
    return Key(
        id=raw["id"],
        name=raw["name"],
        scopes=tuple(raw["scopes"]),
        created=date.fromisoformat(raw["created"]),
        expires=date.fromisoformat(raw["expires"]) if raw["expires"] else None,
        salt=bytes.fromhex(raw["salt"]),
        digest=bytes.fromhex(raw["sha256"]),
    )


def _read(path: Path, text: bytes) -> list[Key]:
    """Turn what a file holds into keys, if it is what was written."""
    try:
        held = json.loads(text)
        if held.pop("sha256") != digest_of(held):
            raise _damaged(path, "another SHA-256 than was written")
        if held["format"] != FORMAT:
            raise DataError(
                f"This version reads keys of format {FORMAT}: {path} has {held['format']!r}. "
                f"Install the version of fastbandit that wrote it, or a newer one."
            )
        return [_from_json(raw) for raw in held["keys"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _damaged(path: Path, found: str) -> DataError:
    return DataError(
        f"The keys in {path} need to be as they were written: got {found}. Restore a copy; or "
        f"move the file away, and create new keys."
    )


def _digest(salt: bytes, secret: str) -> bytes:
    return hashlib.sha256(salt + secret.encode()).digest()
