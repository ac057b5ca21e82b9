"""Rewards and activations of events."""

from __future__ import annotations

import asyncio

from fastbandit.serving.personalizer.events import decision_id
from fastbandit.serving.select_reader import new_id
from fastbandit.serving.service import Service
from fastbandit.storage.deferral import activated, deferred_id
from fastbandit.storage.events import DecisionMade, RewardCame


def reward_of(decision: str, value: float) -> RewardCame:
    """Return a reward as the log takes it, a part of its own.

    The decision says whether parts add up, by what was set when it was made; else the first counts.
    """
    return RewardCame(decision, value, part=new_id())


async def activate(service: Service, event: str) -> None:
    """Let a deferred event be learned from, once; one that is none is left as it is."""
    found = await asyncio.to_thread(_deferred, service, event)
    if found:
        await service.append(found)  # again it is a repeated decision, and changes nothing


def _deferred(service: Service, event: str) -> list[DecisionMade]:
    """Return what was deferred of an event: one decision, or one for each slot."""
    id = decision_id(event)
    one = service.decision(deferred_id(id))
    if one is not None:
        return [activated(one)]
    found: list[DecisionMade] = []
    while (slot := service.decision(deferred_id(f"{id} {len(found)}"))) is not None:
        found.append(activated(slot))
    return found
