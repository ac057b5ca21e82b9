"""What is done at each route of Personalizer: parse, ask the service, encode the answer."""

from __future__ import annotations

import asyncio
from functools import partial
from urllib.parse import unquote_to_bytes

import msgspec

from fastbandit.serving.capacity import Capacity
from fastbandit.serving.decider import Decider, not_ready
from fastbandit.serving.handlers import LARGE_BYTES, Answer, Table, read_body
from fastbandit.serving.personalizer import multi_slot, rank, rewards
from fastbandit.serving.personalizer.admin import AdminRoutes
from fastbandit.serving.personalizer.configuration import Stored
from fastbandit.serving.personalizer.events import decision_id, slot_id
from fastbandit.serving.personalizer.rank import Rank
from fastbandit.serving.personalizer.schemas import (
    MultiSlotRankRequest,
    MultiSlotRewardRequest,
    RewardRequest,
)
from fastbandit.serving.problems import wrong_field
from fastbandit.serving.quotas import Quotas
from fastbandit.serving.rejections import overloaded
from fastbandit.serving.request_limits import check_size
from fastbandit.serving.schemas import SelectRequest
from fastbandit.serving.select_reader import new_id
from fastbandit.serving.service import Service
from fastbandit.storage.deferral import deferred, revealed

_ENCODE = msgspec.json.Encoder().encode
_LONGEST = 256
_MANY_DRAWN = 20_000  # actions × draws, some milliseconds


class PersonalizerRoutes:
    """What a service answers to clients of Personalizer, by operation and method."""

    def __init__(self, service: Service, capacity: Capacity, quotas: Quotas) -> None:
        self.service, self.capacity, self.quotas = service, capacity, quotas
        self._config = service.config.personalizer
        self._read_reward = msgspec.json.Decoder(RewardRequest).decode
        self._read_slots = msgspec.json.Decoder(MultiSlotRankRequest).decode
        self._read_slot_rewards = msgspec.json.Decoder(MultiSlotRewardRequest).decode
        self._admin = AdminRoutes(service, Stored(service.config))

    def table(self) -> Table:
        """Return every route: path, method, the scope it needs, and what answers."""
        found: Table = {
            "/rank": {"POST": ("select", self.rank)},
            "/events/{id}/reward": {"POST": ("reward", self.reward)},
            "/events/{id}/activate": {"POST": ("reward", self.activate)},
            "/multislot/rank": {"POST": ("select", self.rank_slots)},
            "/multislot/events/{id}/reward": {"POST": ("reward", self.reward_slots)},
            "/multislot/events/{id}/activate": {"POST": ("reward", self.activate)},
            **self._admin.table(),
        }
        return {f"{self._config.prefix}{path}": methods for path, methods in found.items()}

    async def rank(self, body: bytes, key: str) -> Answer:
        came: Rank = await read_body(self._read_rank, body, self.service.large.do)
        request = came.request
        rank.check_actions(came.arms, self._config.max_actions)
        decider = self._decider()
        asked = rank.to_select(came, decider)
        check_size(asked, self.service.config.limits, len(body))
        self.quotas.take(key, "interactions", 1)
        draws = self._config.draws
        decide = partial(rank.decide, asked, decider, draws=draws, actions=came.arms)
        is_slow = len(body) > LARGE_BYTES or self._draws_much(asked)
        made, shares = await self.service.large.do(decide) if is_slow else decide()
        id = made.id
        if request.defer_activation:
            made = deferred(made, id)
        (made,) = await self.service.remember([made])
        event = id if request.event_id is None else request.event_id
        return 201, _ENCODE(rank.response(came, revealed(made), shares, event=event))

    def _read_rank(self, body: bytes) -> Rank:
        serving = self.service.decider.serving
        return rank.read_rank(body, {} if serving is None else serving.bandit.parts[2].offers)

    async def reward(self, body: bytes, key: str) -> Answer:
        event, body = _event_of(body)
        request = await read_body(self._read_reward, body, self.service.large.do)
        self._check_room()
        self.quotas.take(key, "interactions", 1)
        came = rewards.reward_of(decision_id(event), self._value(request.value))
        await self.service.reward([came])
        return 204, b""

    async def activate(self, body: bytes, key: str) -> Answer:
        event, _ = _event_of(body)
        self._check_room()
        await rewards.activate(self.service, event)
        return 204, b""

    # -- several slots

    async def rank_slots(self, body: bytes, key: str) -> Answer:
        request = await read_body(self._read_slots, body, self.service.large.do)
        rank.check_actions(request.actions, self._config.max_actions)
        multi_slot.check_slots(request)
        multi_slot.check_written(request, self.service.config.limits, len(body))
        decider = self._decider()
        self.quotas.take(key, "interactions", len(request.slots))
        event = new_id() if request.event_id is None else request.event_id
        stored = await asyncio.to_thread(multi_slot.stored_actions, self.service, request)
        decide = partial(multi_slot.decide, event=event, draws=self._config.draws, stored=stored)
        made = await asyncio.to_thread(decide, request, decider)
        if request.defer_activation:
            made = multi_slot.as_deferred(made, event)
        made = [revealed(one) for one in await self.service.remember(made)]
        return 201, _ENCODE(multi_slot.response(request.slots, made, event))

    async def reward_slots(self, body: bytes, key: str) -> Answer:
        event, body = _event_of(body)
        request = await read_body(self._read_slot_rewards, body, self.service.large.do)
        self._check_room()
        self.quotas.take(key, "interactions", len(request.reward))
        came = [
            rewards.reward_of(slot_id(event, one.slot_id), self._value(one.value))
            for one in request.reward
        ]
        await self.service.reward(came)
        return 204, b""

    # -- what they share

    def _decider(self) -> Decider:
        """Return what decides, by what clients set."""
        self._admin.follow()
        decider = self.service.decider
        if decider.serving is None:
            raise not_ready(self.service.reasons())
        return decider

    def _draws_much(self, asked: SelectRequest) -> bool:
        """Return whether a rank takes so long that others on the event loop would notice."""
        return len(asked.arms or ()) * self._config.draws > _MANY_DRAWN

    def _value(self, value: float) -> float:
        if self.service.config.reward.kind == "binary" and value not in (0, 1):
            raise wrong_field(
                "This service takes binary rewards: 0 or 1.",
                fix='Send 0 or 1, or set reward.kind = "real".',
                field="value",
                value=value,
            )
        return value

    def _check_room(self) -> None:
        if self.service.writer.waiting >= 2 * self.capacity.most_rows:
            self.service.metrics.rejected += 1
            raise overloaded()


def _event_of(given: bytes) -> tuple[str, bytes]:
    """Return the id within a path, and the body after it."""
    id, _, body = given.partition(b"&")
    event = unquote_to_bytes(id.removeprefix(b"id=")).decode("utf-8", "replace")
    if not 0 < len(event) <= _LONGEST:
        raise wrong_field(
            f"An event needs an id of 1 to {_LONGEST} characters: got {len(event)}.",
            fix="Send the eventId that rank answered.",
            field="eventId",
            value=event,
        )
    return event, body
