"""Joins decisions with their rewards: each arm of each decision becomes one interaction.

An interaction is ready when its reward is final: at the first reward that counts, or, where
rewards add up or none came, at the first event after the time for rewards, to which outages of
the log do not count. Interactions that get ready at the same event come in the order of their
decisions, then of their arms. Which are ready when does not depend on the weights of outcomes: with
others, the same interactions have other rewards.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from msgspec import json
from numpy.typing import NDArray

from fastbandit.errors import SnapshotError
from fastbandit.settings.rewards import RewardConfig
from fastbandit.storage.events import ArmId, Context, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.snapshot_version import Cut
from fastbandit.types import Features

PLAIN = RewardConfig()
"""Rewards that are numbers, with a default where none came."""


class Interaction(NamedTuple):
    """A context, an arm that was chosen for it, its reward, and the event that made that final.

    An arm that came with its request is called by its `offer_name`. A decision that was forgotten
    has an empty context, and a reward that is not known is NaN: such are counted, and nothing is
    learned of them.
    """

    ready: int
    decision: int
    position: int
    context: Context
    arm: ArmId
    reward: float


def known(interactions: Iterable[Interaction]) -> list[Interaction]:
    """Return those that were not forgotten, and whose reward is known."""
    return [one for one in interactions if one.context != [] and not isnan(one.reward)]


def to_numbers(contexts: Sequence[Context], kind: Features) -> NDArray[np.float32]:
    """Return contexts of a log as numbers; those by name are encoded by the schema of a bandit."""
    if not contexts:
        return np.zeros((0, getattr(kind, "dim", 0)), dtype=np.float32)
    if isinstance(contexts[0], list):
        return np.array(contexts, dtype=np.float32)
    schema: Any = getattr(kind, "schema", None)
    if schema is None:
        raise SnapshotError(
            f"Contexts by name need a version with a schema: got {sorted(contexts[0])[:5]}, and "
            f"the version knows no names. Set context.schema, and begin with a new data folder."
        )
    encoded: NDArray[np.float32] = schema.encode(contexts, what="contexts")
    return encoded


def to_arrays(
    interactions: Sequence[Interaction], kind: Features
) -> tuple[NDArray[np.float32], list[ArmId], NDArray[np.float64]]:
    """Return contexts of a kind as numbers, ids of arms and rewards, as a bandit takes them."""
    return (
        to_numbers([one.context for one in interactions], kind),
        [one.arm for one in interactions],
        np.array([one.reward for one in interactions], dtype=np.float64),
    )


def _packed(context: Context) -> bytes | str:
    is_named = isinstance(context, dict)
    return json.encode(context).decode() if is_named else array("d", context).tobytes()


@dataclass(slots=True)
class _Unresolved:
    """A decision some of whose rewards are not final: what an interaction needs, in few bytes.

    `rewards` are those that came so far, by position and part. A context by name is JSON text.
    `learned` is what the arms are called where they are learned.
    """

    seq: int
    context: bytes | str
    arms: tuple[ArmId, ...]
    learned: tuple[ArmId, ...]
    default_reward: float
    sums: bool
    rewards: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def waiting(self) -> list[int]:
        """The positions whose rewards are not final."""
        return [n for n in range(len(self.arms)) if self.sums or n not in self.rewards]

    def interaction(self, position: int, config: RewardConfig, *, ready: int) -> Interaction:
        reward = self._reward(self.rewards.get(position, {}), config)
        packed = self.context
        context = json.decode(packed) if isinstance(packed, str) else array("d", packed).tolist()
        return Interaction(ready, self.seq, position, context, self.learned[position], reward)

    def _reward(self, came: dict[str, float], config: RewardConfig) -> float:
        """Return what came as one number: a sum, by weights where outcomes have some."""
        needed = [(name, weight) for name, weight in config.weights if weight and self.sums]
        if came and all(name in came for name, _ in needed):
            weighed = (weight * came[name] for name, weight in needed)
            return sum(weighed if needed else came.values(), 0.0)
        return nan if config.missing == "skip" else self.default_reward


class Joiner:
    """Takes events in their order, and holds the interactions that are ready and not yet learned.

    It remembers only decisions that still wait for a reward. The settings of rewards say how
    outcomes are weighed, and what a decision without them is.
    """

    def __init__(self, reward: RewardConfig = PLAIN) -> None:
        self.reward = reward
        self.seq = self.at = self.learned = 0
        self.interactions: list[Interaction] = []
        self._unresolved: dict[str, _Unresolved] = {}
        self._deadlines: list[tuple[int, int, str]] = []  # in time less the outages by then
        self._outages = 0

    @staticmethod
    def resumed(cut: Cut, events: Iterable[Event], reward: RewardConfig = PLAIN) -> Joiner:
        """Return a joiner as it was after a cut, from the events after `cut.since` up to it."""
        joiner = Joiner(reward)
        for event in events:
            joiner.feed(event)
        joiner.seq, joiner.at, joiner.learned = cut.seq, cut.at, cut.interactions
        del joiner.interactions[: max(0, len(joiner.interactions) - cut.held)]
        return joiner

    def copy(self) -> Joiner:
        """Return one in the same state that goes its own way."""
        other = Joiner(self.reward)
        other.seq, other.at, other.learned = self.seq, self.at, self.learned
        other.interactions, other._deadlines = [*self.interactions], [*self._deadlines]
        other._outages = self._outages
        other._unresolved = {
            id: replace(one, rewards={n: {**parts} for n, parts in one.rewards.items()})
            for id, one in self._unresolved.items()
        }
        return other

    def feed(self, event: Event) -> None:
        ready: list[Interaction] = []
        if isinstance(event, TimePassed):
            self._outages += event.outage
        while self._deadlines and self._deadlines[0][0] < event.at - self._outages:
            expired = self._unresolved.pop(heappop(self._deadlines)[2], None)
            if expired is not None:
                ready += [
                    expired.interaction(n, self.reward, ready=event.seq) for n in expired.waiting
                ]
        if isinstance(event, DecisionMade):
            context, arms, offers = _packed(event.context), tuple(event.arms), event.offers
            learned = tuple(offers[arm].id if arm in offers else arm for arm in arms)
            terms = event.default_reward, event.adds_up
            self._unresolved[event.id] = _Unresolved(event.seq, context, arms, learned, *terms)
            heappush(self._deadlines, (event.until - self._outages, event.seq, event.id))
        elif isinstance(event, RewardCame) and event.status == "counted":
            ready += self._rewarded(event)
        self.interactions += sorted(ready)
        self.seq, self.at = event.seq, event.at

    def cut(self, count: int) -> Cut:
        """Count the first interactions as learned, and return how far that is."""
        del self.interactions[:count]
        self.learned += count
        oldest = min([self.since + 1, *(one.decision for one in self.interactions)])
        return Cut(self.seq, self.at, oldest - 1, self.learned, len(self.interactions))

    @property
    def since(self) -> int:
        """The number before the oldest unresolved decision."""
        return next((one.seq for one in self._unresolved.values()), self.seq + 1) - 1

    def _rewarded(self, event: RewardCame) -> list[Interaction]:
        """Take a reward that counts; return the interaction that it makes ready, if any."""
        decision = self._unresolved.get(event.decision)
        if decision is None:
            return []
        position = 0 if event.arm is None else decision.arms.index(event.arm)
        is_first = position not in decision.rewards
        if decision.sums or is_first:
            decision.rewards.setdefault(position, {})[event.part] = event.value
        if decision.sums or not is_first:
            return []
        if not decision.waiting:
            del self._unresolved[event.decision]
        return [decision.interaction(position, self.reward, ready=event.seq)]
