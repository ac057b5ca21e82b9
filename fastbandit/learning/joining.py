"""Joins decisions with what came of them: each arm of each decision becomes one pair.

A pair is ready when its reward is known for good: at the first reward that counts, or, where
rewards add up or none came, at the first event after the time for rewards. Pairs that get
ready at the same event come in the order of their decisions, then of their arms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from fastbandit.events import ArmId, DecisionMade, Event, RewardCame
from fastbandit.storage.snapshot_store import Cut


class Pair(NamedTuple):
    """An arm that was chosen for a context, its reward, and the events that made it a pair."""

    ready: int
    decision: int
    position: int
    context: list[float]
    arm: ArmId
    reward: float


@dataclass
class _Open:
    """A decision some of whose rewards are waited for: the sums so far, by position."""

    made: DecisionMade
    waiting: set[int]
    sums: dict[int, float]


class Joiner:
    """Takes events in their order, and holds the pairs that are ready and not yet learned.

    It remembers only decisions that still wait for a reward.
    """

    def __init__(self) -> None:
        self.seq = self.at = self.learned = 0
        self.pairs: list[Pair] = []
        self._open: dict[str, _Open] = {}
        self._until: list[tuple[int, int, str]] = []

    @staticmethod
    def resumed(cut: Cut, events: Iterable[Event]) -> Joiner:
        """Give a joiner as it was after a cut, from the events after `cut.since` up to it."""
        joiner = Joiner()
        for event in events:
            joiner.feed(event)
        joiner.seq, joiner.at, joiner.learned = cut.seq, cut.at, cut.pairs
        del joiner.pairs[: len(joiner.pairs) - cut.held]
        return joiner

    def feed(self, event: Event) -> None:
        """Take the next event."""
        ready = self._expired(event)
        if isinstance(event, DecisionMade):
            self._open[event.id] = _Open(event, set(range(len(event.arms))), {})
            heappush(self._until, (event.until, event.seq, event.id))
        elif isinstance(event, RewardCame) and event.status == "counted":
            ready += self._rewarded(event)
        self.pairs += sorted(ready)
        self.seq, self.at = event.seq, event.at

    def cut(self, count: int) -> Cut:
        """Count the first pairs as learned, and tell how far that is."""
        del self.pairs[:count]
        self.learned += count
        oldest = min([self.since + 1, *(pair.decision for pair in self.pairs)])
        return Cut(self.seq, self.at, oldest - 1, self.learned, len(self.pairs))

    @property
    def since(self) -> int:
        """The number before the oldest decision that is waited for."""
        return next((open.made.seq for open in self._open.values()), self.seq + 1) - 1

    def _expired(self, event: Event) -> list[Pair]:
        """Give what is ready because its time is over."""
        ready = []
        while self._until and self._until[0][0] < event.at:
            open = self._open.pop(heappop(self._until)[2], None)
            if open is not None:
                ready += [self._pair(open, position, event) for position in open.waiting]
        return ready

    def _rewarded(self, event: RewardCame) -> list[Pair]:
        """Take a reward that counts; give the pair that it makes ready, if any."""
        open = self._open.get(event.decision)
        if open is None:
            return []
        position = 0 if event.arm is None else open.made.arms.index(event.arm)
        open.sums[position] = open.sums.get(position, 0.0) + event.value
        if open.made.sums or position not in open.waiting:
            return []
        open.waiting.remove(position)
        if not open.waiting:
            del self._open[event.decision]
        return [self._pair(open, position, event)]

    def _pair(self, open: _Open, position: int, event: Event) -> Pair:
        made = open.made
        reward = open.sums.get(position, made.otherwise)
        return Pair(event.seq, made.seq, position, made.context, made.arms[position], reward)
