"""The deciders that a client may ask: in their order, but for those that failed a moment ago."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic

import httpx

from fastbandit.errors import SettingError

_FIRST_REST, _LONGEST_REST = 1.0, 30.0


@dataclass
class _Decider:
    """An address, how long it rests after the next failure, and until when it rests now."""

    url: str
    rest: float = _FIRST_REST
    until: float = 0.0


class Deciders:
    """Addresses of deciders that share a log: any may be asked, and knows the same decisions.

    One that fails rests for a second, twice as long after each further failure, or as long as
    it asks for. While others are there it is not asked, unless they fail as well.
    """

    def __init__(self, urls: Sequence[str], *, clock: Callable[[], float] = monotonic) -> None:
        self._deciders = [_Decider(url) for url in urls]
        self._lock, self._clock = Lock(), clock

    def __str__(self) -> str:
        return ", ".join(one.url for one in self._deciders)

    def order(self) -> list[str]:
        """Return all addresses, those that rest last."""
        now = self._clock()
        with self._lock:
            return [one.url for one in sorted(self._deciders, key=lambda one: one.until > now)]

    def note(self, url: str, *, is_well: bool, rest: float = 0.0) -> None:
        """Note whether one answered; if not, it rests for so many seconds at least."""
        with self._lock:
            one = next(one for one in self._deciders if one.url == url)
            if is_well:
                one.rest, one.until = _FIRST_REST, 0.0
            else:
                one.until = self._clock() + max(one.rest, rest)
                one.rest = min(2.0 * one.rest, _LONGEST_REST)


def check_urls(urls: str | Sequence[str]) -> list[str]:
    """Return the addresses of a service, each once, without the slash at their end."""
    named = [urls] if isinstance(urls, str) else urls
    wrong = next((url for url in named if not _is_address(url)), None)
    if wrong is not None or not named:
        got = "an empty list" if wrong is None else repr(wrong)
        raise SettingError(
            f"A client needs the address of a service, such as http://127.0.0.1:8080: got {got}. "
            f"Give one that begins with http:// or https://."
        )
    return list(dict.fromkeys(url.rstrip("/") for url in named))


def _is_address(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.host)
