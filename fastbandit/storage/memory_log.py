"""An event log in memory, for tests and notebooks: the plainest account of what a log does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from secrets import token_hex

from msgspec import json, structs

from fastbandit.storage.events import (
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    RewardStatus,
    TimePassed,
    numbered,
)
from fastbandit.storage.log_clock import LogClock
from fastbandit.storage.log_input import check_events, text_of


class MemoryLog:
    """Remembers events as long as it lives; `clock` returns the time in microseconds."""

    def __init__(self, *, clock: Callable[[], int] | None = None) -> None:
        self._clock, self.identity = clock or LogClock(), token_hex(16)
        self._events: list[Event] = []

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        check_events(events)
        copies = [json.decode(text_of(event), type=type(event)) for event in events]
        at = max(self.last_at, self._clock())
        following = numbered(copies, last=self.last, at=at, before=self.last_at)
        return [self._write(event) for event in following]

    def decision(self, id: str) -> DecisionMade | None:
        made = (event for event in self._events if isinstance(event, DecisionMade))
        return next((event for event in made if event.id == id), None)

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        return [event for event in self._events if event.seq > after][:limit]

    @property
    def last(self) -> int:
        return self._events[-1].seq if self._events else 0

    @property
    def last_at(self) -> int:
        return self._events[-1].at if self._events else 0

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def _write(self, event: Event) -> Outcome:
        if isinstance(event, DecisionMade):
            made = self.decision(event.id)
            if made is not None:
                return Outcome(made.seq, "repeated")
        if not isinstance(event, RewardCame):
            self._events.append(event)
            return Outcome(event.seq, "written")
        made = self.decision(event.decision)
        first = made.arms[0] if made and made.arms else None
        named = structs.replace(event, arm=first if event.arm is None else event.arm)
        status = self._judge(named, made)
        self._events.append(structs.replace(named, status=status))
        return Outcome(event.seq, status)

    def _judge(self, came: RewardCame, made: DecisionMade | None) -> RewardStatus:
        """Return the status of a reward, by its decision and by the rewards before it."""
        if made is None:
            return "unknown"
        if came.arm not in made.arms:
            return "unknown arm"
        for earlier in self._events:
            if isinstance(earlier, RewardCame) and earlier.status == "counted":
                is_same_arm = (earlier.decision, earlier.arm) == (came.decision, came.arm)
                if is_same_arm and (not made.adds_up or earlier.part == came.part):
                    return "duplicate" if earlier.value == came.value else "conflicting"
        ticks = (event for event in self._events if isinstance(event, TimePassed))
        outages = sum(tick.outage for tick in ticks if tick.seq > made.seq)
        return "late" if came.at > made.until + outages else "counted"
