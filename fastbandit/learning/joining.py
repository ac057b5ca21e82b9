"""Joins decisions with what came of them: each arm of each decision becomes one pair.

A pair is ready when its reward is known for good: at the first reward that counts, or, where
rewards add up or none came, at the first event after the time for rewards. Pairs that get
ready at the same event come in the order of their decisions, then of their arms.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from fastbandit.storage.events import ArmId, DecisionMade, Event, RewardCame
from fastbandit.storage.snapshot_version import Cut


class Pair(NamedTuple):
    """An arm that was chosen for a context, its reward, and the events that made it a pair."""

    ready: int
    decision: int
    position: int
    context: list[float]
    arm: ArmId
    reward: float


@dataclass(slots=True)
class _Open:
    """A decision some of whose rewards are waited for: what a pair needs, in few bytes.

    `rewards` are those that came so far, by position.
    """

    seq: int
    context: bytes
    arms: tuple[ArmId, ...]
    default_reward: float
    adds_up: bool
    rewards: dict[int, float]

    @staticmethod
    def of(made: DecisionMade) -> _Open:
        context = array("d", made.context).tobytes()
        return _Open(made.seq, context, tuple(made.arms), made.default_reward, made.adds_up, {})

    @property
    def waiting(self) -> list[int]:
        """The positions whose rewards are not known for good."""
        return [n for n in range(len(self.arms)) if self.adds_up or n not in self.rewards]

    def pair(self, position: int, *, ready: int) -> Pair:
        """Give the pair of a position, which is ready at an event."""
        reward = self.rewards.get(position, self.default_reward)
        context = array("d", self.context).tolist()
        return Pair(ready, self.seq, position, context, self.arms[position], reward)


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
        joiner.seq, joiner.at, joiner.learned = cut.seq, cut.at, cut.interactions
        del joiner.pairs[: len(joiner.pairs) - cut.held]
        return joiner

    def feed(self, event: Event) -> None:
        """Take the next event."""
        ready = self._expired(event)
        if isinstance(event, DecisionMade):
            self._open[event.id] = _Open.of(event)
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
        return next((open.seq for open in self._open.values()), self.seq + 1) - 1

    def _expired(self, event: Event) -> list[Pair]:
        """Give what is ready because its time is over."""
        ready = []
        while self._until and self._until[0][0] < event.at:
            open = self._open.pop(heappop(self._until)[2], None)
            if open is not None:
                ready += [open.pair(position, ready=event.seq) for position in open.waiting]
        return ready

    def _rewarded(self, event: RewardCame) -> list[Pair]:
        """Take a reward that counts; give the pair that it makes ready, if any."""
        open = self._open.get(event.decision)
        if open is None:
            return []
        position = 0 if event.arm is None else open.arms.index(event.arm)
        is_first = position not in open.rewards
        open.rewards[position] = open.rewards.get(position, 0.0) + event.value
        if open.adds_up or not is_first:
            return []
        if not open.waiting:
            del self._open[event.decision]
        return [open.pair(position, ready=event.seq)]
