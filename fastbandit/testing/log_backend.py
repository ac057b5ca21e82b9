"""How logs of one kind are opened for the contract of event logs, and the clock they go by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastbandit.storage.events import EventLog


@dataclass
class Clock:
    """A clock that stands still until its time is set, in microseconds."""

    time: int = 1_000_000

    def __call__(self) -> int:
        return self.time


@dataclass(frozen=True)
class LogBackend:
    """How logs of one kind are opened.

    `make` returns an empty log that goes by a clock. `reopen` closes a log and opens it again.
    `beside` returns another log that reads what a first writes.
    """

    make: Callable[[Clock], EventLog]
    reopen: Callable[[EventLog], EventLog]
    beside: Callable[[EventLog], EventLog]
