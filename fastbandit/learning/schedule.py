"""Where in the log the next version is made: at an event at which one is due.

A learner that keeps up makes one at each such event, by the log alone. One that is behind leaves
out all but the newest: what a version holds is the log up to its cut, whichever that is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Mark:
    """The event from which fresh interactions are counted: the last cut, published or refused.

    `at` is None after a refusal: then only interactions count, not time.
    """

    seq: int
    at: int | None


@dataclass(frozen=True)
class Schedule:
    """Enough fresh interactions, or any after enough time (see `LearnConfig`)."""

    fresh: int
    growth: float
    seconds: float

    def is_behind(self, *, due_at: int, last_at: int) -> bool:
        """Return whether the log went on for so long since a version was due that more may be."""
        return last_at - due_at > self.seconds * 1_000_000

    def needed(self, learned: int) -> int:
        return max(self.fresh, math.ceil(self.growth * learned))

    def is_due(self, mark: Mark, *, fresh: int, learned: int, at: int) -> bool:
        is_old = mark.at is not None and at - mark.at >= self.seconds * 1_000_000
        return fresh >= self.needed(learned) or (fresh >= 1 and is_old)
