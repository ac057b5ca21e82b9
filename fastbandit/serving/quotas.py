"""How much each key may ask for in a second: what is over it waits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from fastbandit.serving.problems import Rejection
from fastbandit.settings.limits import LimitsConfig

_BURST_SECONDS = 1.0  # what was not asked for lately can be asked for at once


class Quotas:
    """Counts the requests and interactions of each key; a large request is paid for afterwards.

    A service without keys has one quota, for all who ask.
    """

    def __init__(
        self, limits: LimitsConfig, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rates = {
            "requests": limits.requests_per_second,
            "interactions": limits.interactions_per_second,
        }
        self._clock, self._paid_at = clock, dict[tuple[str, str], float]()

    def take(self, key: str, what: str, count: int = 1) -> None:
        """Count what a key asks for, or reject it until what it asked for before is paid."""
        rate = self._rates[what]
        if not rate:
            return
        now = self._clock()
        paid_at = max(self._paid_at.get((key, what), 0.0), now)
        wait = paid_at - now - _BURST_SECONDS
        if wait > 0:
            raise Rejection(
                429,
                "quota used up",
                f"A key may ask for {rate:g} {what} a second, and this one asked for more.",
                fix=f"Send it again after Retry-After, or raise limits.{what}_per_second.",
                field="authorization",
                headers=((b"retry-after", str(math.ceil(wait)).encode()),),
            )
        self._paid_at[key, what] = paid_at + count / rate
