"""How a learner that is far behind catches up: workers join a range of the log at once.

A version is made at the same event, of the same interactions, as if the learner had read event by
event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fastbandit.learning.joining import Interaction, Joiner
from fastbandit.learning.schedule import Mark, Schedule
from fastbandit.storage.events import Event

FAR = 200_000
"""So many events behind are worth the start of workers."""
LONG = 5_000_000
"""So many events are joined at once."""
NEVER = 2**62

Numbers = NDArray[np.int64]
Between = Callable[..., Iterable[Event]]
"""Called with `after` and `until`: returns the events after a number, up to another."""


@dataclass(frozen=True, eq=False)
class JoinedRange:
    """A range of the log whose decisions were joined with their rewards.

    `seqs` and `ats` are of its events, in order, `interactions` what got ready at one of them. Its
    decisions, and those that were unresolved before it, were `made` and then `resolved` at these
    events (NEVER where they are unresolved at its end).
    """

    seqs: Numbers
    ats: Numbers
    interactions: list[Interaction]
    made: Numbers
    resolved: Numbers

    def marked(self, mark: Mark) -> Mark:
        """Return the mark with a time: time is counted from the first event."""
        return replace(mark, at=int(self.ats[0])) if mark.at == 0 and len(self.ats) else mark

    def first_due(self, schedule: Schedule, mark: Mark, joiner: Joiner) -> int | None:
        """Return the event at which a version is due, if one is within the range."""
        every = (*joiner.interactions, *self.interactions)
        ready = np.array([one.ready for one in every if one.ready > mark.seq], dtype=np.int64)
        needed, positions = schedule.needed(joiner.learned), [len(self.seqs)]
        if len(ready) >= needed:
            positions.append(int(np.searchsorted(self.seqs, ready[needed - 1])))
        if len(ready) and mark.at is not None:
            over = np.searchsorted(self.ats, mark.at + schedule.seconds * 1_000_000)
            positions.append(int(max(over, np.searchsorted(self.seqs, ready[0]))))
        position = min(positions)
        return int(self.seqs[position]) if position < len(self.seqs) else None

    def followed(self, joiner: Joiner, until: int, between: Between) -> Joiner:
        """Return the joiner as it is after an event of the range."""
        is_unresolved = (self.made <= until) & (self.resolved > until)
        oldest = int(self.made[is_unresolved].min(initial=until + 1))
        after = Joiner(joiner.reward)
        for event in between(after=oldest - 1, until=until):
            after.feed(event)
        after.seq, after.learned = until, joiner.learned
        after.at = int(self.ats[np.searchsorted(self.seqs, until)])
        ready = [one for one in self.interactions if one.ready <= until]
        after.interactions = joiner.interactions + ready
        return after


@runtime_checkable
class JoinRange(Protocol):
    """Joins a range of a log on many workers."""

    def __call__(self, joiner: Joiner, *, until: int) -> JoinedRange:
        """Join what comes after a joiner, up to an event."""
