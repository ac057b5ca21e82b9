"""What happens in a service, as its log holds it: decisions, rewards, changes of the arms.

An event has a number (`seq`, from 1 on, one count for all kinds) and a time (`at`, in
microseconds since 1970, never earlier than that of the event before). The log sets
both. A decision carries the terms on which rewards are taken: until when, what counts if none
comes, and whether several add up. So what was learned is a function of the log alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from msgspec import Raw, Struct, structs

from fastbandit.arms.offers import offer_name

ArmId: TypeAlias = str | int
Context: TypeAlias = list[float] | dict[str, Any]
"""Numbers in their order, or values of any kind by name, as they came."""
RewardStatus: TypeAlias = Literal[
    "counted", "duplicate", "conflicting", "late", "unknown", "unknown arm"
]
REWARD_STATUSES: tuple[RewardStatus, ...] = get_args(RewardStatus)
Status: TypeAlias = Literal["written", "repeated", "spooled"] | RewardStatus
Who: TypeAlias = Literal["bandit", "baseline"]
"""Who decides: in shadow mode a baseline does, and the bandit only learns."""
WHO: tuple[Who, ...] = get_args(Who)


class DecisionMade(Struct, frozen=True, array_like=True):
    """Arms chosen for a context, best first, and all that is needed to choose them again.

    `catalogue` is the number of the last change of the arms that it knew of. `wait` is the
    time for rewards, in microseconds; an arm without one then gets the `default_reward`. The
    rewards of an arm add up where `adds_up`; else the first counts.

    `arms` and `propensities` are those of who decided. `other` is the arm that the other one
    would have taken, where that is known; `scores` are the bandit's in either case. `offered` are
    the arms that came with the request, as they came. `made_at` is its own time, where that is not
    `at`: it was spooled, and came to the log later. `subject` is whom the decision is about; once
    that one was forgotten it is None, and the context is empty.
    """

    id: str
    context: Context
    arms: list[ArmId]
    scores: list[float]
    seed: int
    version: int
    catalogue: int
    wait: int
    default_reward: float = 0.0
    adds_up: bool = False
    explored: bool = True
    epsilon: float = 0.0
    propensities: list[float] | None = None
    eligible: Any = None
    degraded: bool = False
    decided_by: Who = "bandit"
    other: ArmId | None = None
    seq: int = 0
    at: int = 0
    offered: list[Arm] | None = None
    made_at: int | None = None
    subject: str | None = None

    @property
    def until(self) -> int:
        """The time after which a reward is late, unless an outage comes between."""
        return self.at + self.wait

    @property
    def offers(self) -> dict[ArmId, Arm]:
        """The arms taken that came with the request, by id, called as they are learned."""
        taken = [arm for arm in self.offered or () if arm.id in self.arms]
        return {arm.id: Arm(offer_name(arm.id, arm.features), arm.features) for arm in taken}


class WrittenDecision(DecisionMade, frozen=True, array_like=True):
    """A decision on its way to a log, less what is only handed on: that is text already."""

    context: Raw  # type: ignore[assignment]
    offered: Any = None


class RewardCame(Struct, frozen=True, array_like=True):
    """A reward of an arm of a decision: of the first arm, unless one is named.

    Rewards of one arm that are meant to add up differ in `part`. `status` is what the log
    made of it: only "counted" ones are learned from.
    """

    decision: str
    value: float
    arm: ArmId | None = None
    part: str = ""
    status: RewardStatus | None = None
    seq: int = 0
    at: int = 0


class Arm(Struct, frozen=True, array_like=True):
    """An arm that may be chosen from now on, in place of any of the same id.

    Its features are numbers in their order (none where ids alone are known), or values by name.
    """

    id: ArmId
    features: list[float] | dict[str, Any]
    columns: dict[str, Any] | None = None


class ArmsChanged(Struct, frozen=True, array_like=True):
    """Arms that were upserted, and the ids of those that were discarded."""

    upserted: list[Arm] = []
    discarded: list[ArmId] = []
    seq: int = 0
    at: int = 0


class TimePassed(Struct, frozen=True, array_like=True):
    """Nothing happened, but time went on: rewards that were waited for are late now.

    After an outage of the log, `outage` is how long nobody could write, in microseconds: no more
    than the time since the event before. It does not count as time for rewards.
    """

    seq: int = 0
    at: int = 0
    outage: int = 0


Event: TypeAlias = DecisionMade | RewardCame | ArmsChanged | TimePassed


def numbered(events: Sequence[Event], *, last: int, at: int, before: int) -> list[Event]:
    """Return events as they follow the number `last` at the time `at`.

    An outage ends with the first of them, and is no longer than the time since that of `before`.
    """
    found: list[Event] = []
    for seq, event in enumerate(events, start=last + 1):
        if isinstance(event, TimePassed):
            found.append(TimePassed(seq, at, min(event.outage, at - before)))
        else:
            found.append(structs.replace(event, seq=seq, at=at))
        before = at
    return found


class Outcome(Struct, frozen=True):
    """What the log made of an event: its number, and its status.

    A decision whose id the log holds already is "repeated": it is not written again, and the
    number is that of the first. One that is "spooled" has no number yet, which is 0: it stays on
    this machine until the server of the log is back.
    """

    seq: int
    status: Status


@runtime_checkable
class EventLog(Protocol):
    """Remembers events in their order; what it acknowledged is never lost.

    One writer at a time appends; any number may read meanwhile.
    """

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        """Write events in their order, all or none: on return they outlive a power cut."""

    def decision(self, id: str) -> DecisionMade | None:
        """Return the decision of an id."""

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return the events that come after a number, in their order, at most so many."""

    @property
    def last(self) -> int:
        """The number of the last event, 0 where there is none."""

    @property
    def identity(self) -> str:
        """What tells this log from all others, "" where it cannot say."""

    def close(self) -> None:
        """Let go of what is held open."""
