"""How a learner that is far behind goes on: others join a stretch of the log at once.

A version is made at the same event, of the same pairs, as if the learner had read event by event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fastbandit.learning.joining import Joiner, Pair
from fastbandit.learning.schedule import Mark, Schedule
from fastbandit.storage.events import Event

FAR = 200_000
"""So many events behind are worth the start of workers."""
LONG = 5_000_000
"""So many events are joined at once."""
NEVER = 2**62

Numbers = NDArray[np.int64]
Between = Callable[[int, int], Iterable[Event]]
"""Gives the events after a number, up to another."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """What became of a stretch of the log.

    `seqs` and `ats` are of its events, in order, `pairs` what got ready at one of them. Its
    decisions, and those that were waited for before it, were `made` and then done with at the
    events `closed` (NEVER where they are waited for at its end).
    """

    seqs: Numbers
    ats: Numbers
    pairs: list[Pair]
    made: Numbers
    closed: Numbers

    def marked(self, mark: Mark) -> Mark:
        """Give the mark, in time: time is counted from the first event."""
        return replace(mark, at=int(self.ats[0])) if mark.at == 0 and len(self.ats) else mark

    def first_due(self, schedule: Schedule, mark: Mark, joiner: Joiner) -> int | None:
        """Give the event at which a version is due, if one is within the stretch."""
        ready = np.array([pair.ready for pair in (*joiner.pairs, *self.pairs)], dtype=np.int64)
        ready = ready[ready > mark.seq]
        needed, places = schedule.needed(joiner.learned), [len(self.seqs)]
        if len(ready) >= needed:
            places.append(int(np.searchsorted(self.seqs, ready[needed - 1])))
        if len(ready) and mark.at is not None:
            over = np.searchsorted(self.ats, mark.at + schedule.seconds * 1_000_000)
            places.append(int(max(over, np.searchsorted(self.seqs, ready[0]))))
        place = min(places)
        return int(self.seqs[place]) if place < len(self.seqs) else None

    def followed(self, joiner: Joiner, until: int, between: Between) -> Joiner:
        """Give the joiner as it is after an event of the stretch."""
        is_open = (self.made <= until) & (self.closed > until)
        oldest = int(self.made[is_open].min(initial=until + 1))
        after = Joiner()
        for event in between(oldest - 1, until):
            after.feed(event)
        after.seq, after.learned = until, joiner.learned
        after.at = int(self.ats[np.searchsorted(self.seqs, until)])
        after.pairs = joiner.pairs + [pair for pair in self.pairs if pair.ready <= until]
        return after


@runtime_checkable
class Join(Protocol):
    """Joins a stretch of a log on many workers."""

    def __call__(self, joiner: Joiner, *, until: int) -> Stretch:
        """Join what comes after a joiner, up to an event."""
        ...
