"""When a request is sent again, and how long to wait before that."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from random import Random
from time import time

from fastbandit.errors import SettingError


@dataclass(frozen=True)
class Answer:
    """What the service answered."""

    status: int
    body: bytes
    retry_after: str = ""


@dataclass(frozen=True)
class NoAnswer:
    """Why none came."""

    why: str


@dataclass(frozen=True)
class Retries:
    """How often a request is sent, and the pauses in between.

    A pause is drawn evenly between zero and `first_seconds`, and up to twice as long after
    each try, at most `most_seconds`. All tries but the last may take `share` of the time that
    is left until the deadline. A `seed` makes the pauses repeatable.
    """

    tries: int = 4
    first_seconds: float = 0.02
    most_seconds: float = 1.0
    share: float = 0.5
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.tries < 1 or not 0 <= self.first_seconds <= self.most_seconds:
            raise SettingError(
                f"Retries need one try or more, and pauses of 0 seconds up to most_seconds: got "
                f"{self}. Give tries=1 to send each request once."
            )
        if not 0 < self.share <= 1:
            raise SettingError(
                f"A try needs a share of the time that is left, above 0 and up to 1: got "
                f"{self.share}. Leave it at 0.5 if unsure."
            )

    def pause(self, tried: int, rng: Random) -> float:
        """Return the seconds to wait after so many tries, on top of what the service asks for."""
        return rng.uniform(0.0, min(self.first_seconds * 2.0**tried, self.most_seconds))


def is_worth_another(outcome: Answer | NoAnswer) -> bool:
    """Return whether the same request may fare better a moment later."""
    if isinstance(outcome, NoAnswer):
        return True
    return outcome.status in (408, 429) or outcome.status >= 500


def seconds_until(retry_after: str) -> float:
    """Read the header Retry-After, seconds or a date; 0 where it says nothing."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    except ValueError:
        return 0.0
