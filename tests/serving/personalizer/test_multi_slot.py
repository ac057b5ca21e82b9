"""A rank of several slots fills each with another action."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fastbandit.settings.limits import LimitsConfig
from fastbandit.settings.service import Config
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import NEW, Client, rank_of, tell
from tests.serving.personalizer.test_rewards import joined

SLOTS = [
    {"id": "top", "baselineAction": "x", "excludedActions": ["z"]},
    {"id": "the side", "baselineAction": "y", "features": [{"age": 40}]},
]


def test_each_slot_gets_an_action_of_its_own_and_a_reward_of_its_own(config: Config) -> None:
    async def story(client: Client) -> None:
        reply = await client("POST", "/multislot/rank", rank_of("x", "y", "z", slots=SLOTS))
        assert reply.status == 201, reply
        assert [slot["id"] for slot in reply.body["slots"]] == ["top", "the side"]
        top, side = (slot["rewardActionId"] for slot in reply.body["slots"])
        assert top in ("x", "y")
        assert side != top
        rewards = [{"slotId": "top", "value": 1}, {"slotId": "the side", "value": -0.5}]
        path = f"/multislot/events/{reply.body['eventId']}/reward"
        assert (await client("POST", path, {"reward": rewards})).status == 204

    tell(config, story, base=NEW)
    made, other, *came = events_of(config)
    assert (made.context["age"], other.context["age"]) == (31, 40)
    assert [(one.value, one.status) for one in came] == [(1, "counted"), (-0.5, "counted")]


def test_all_slots_may_say_whom_they_are_about(config: Config) -> None:
    async def story(client: Client) -> None:
        body = rank_of("x", "y", "z", slots=SLOTS, subject="ann")
        assert (await client("POST", "/multislot/rank", body)).status == 201

    tell(config, story, base=NEW)
    assert [one.subject for one in events_of(config)] == ["ann", "ann"]


def test_a_deferred_event_of_slots_counts_once_it_is_activated(config: Config) -> None:
    async def story(client: Client) -> None:
        body = rank_of("x", "y", "z", slots=SLOTS, eventId="one", deferActivation=True)
        first = await client("POST", "/multislot/rank", body)
        assert (await client("POST", "/multislot/rank", body)).body == first.body

    async def later(client: Client) -> None:
        for _ in range(2):
            assert (await client("POST", "/multislot/events/one/activate")).status == 204

    tell(config, story, base=NEW)
    assert joined(config) == []
    tell(config, later, base=NEW)
    assert [reward for _, reward in joined(config)] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("slots", "target"),
    [
        ([], "slots"),
        ([*SLOTS, *SLOTS], "slots"),
        ([SLOTS[0], SLOTS[0]], "slots[1].id"),
        ([{"id": "top", "baselineAction": "w"}], "slots[0].baselineAction"),
        ([{"id": "top"}], "slots[0]"),
    ],
)
def test_slots_that_cannot_be_filled_are_rejected(
    config: Config, slots: list[dict[str, Any]], target: str
) -> None:
    async def story(client: Client) -> None:
        reply = await client("POST", "/multislot/rank", rank_of("x", "y", "z", slots=slots))
        error = reply.body["error"]
        assert (reply.status, error["code"]) == (400, "InvalidRankRequest")
        assert error["target"] == target

    tell(config, story, base=NEW)
    assert events_of(config) == []


@pytest.mark.parametrize("is_deferred", [False, True])
def test_a_retry_of_slots_gets_the_same_answer_though_another_decides_by_now(
    config: Config, is_deferred: bool
) -> None:
    async def story(client: Client) -> None:
        slots = [{"id": f"s{n}", "baselineAction": "xyz"[n]} for n in range(2)]
        bodies = [
            rank_of("x", "y", "z", slots=slots, eventId=f"n{n}", deferActivation=is_deferred)
            for n in range(9)
        ]
        first = [await client("POST", "/multislot/rank", body) for body in bodies]
        shown = (await client("GET", "/configurations/service")).body
        asked = shown | {"learningMode": "Apprentice"}
        assert (await client("PUT", "/configurations/service", asked)).status == 200
        again = [await client("POST", "/multislot/rank", body) for body in bodies]
        assert [one.body for one in again] == [one.body for one in first]

    tell(config, story, base=NEW)
    assert len(events_of(config)) == 18


def test_slots_may_not_write_more_to_the_log_than_a_select(config: Config) -> None:
    config = replace(config, limits=LimitsConfig(log_bytes=3_000))

    async def story(client: Client) -> None:
        actions = [f"a{n}" for n in range(8)]
        slots = [{"id": f"s{n}", "baselineAction": f"a{n}"} for n in range(8)]
        one = await client("POST", "/multislot/rank", rank_of(*actions, slots=slots[:1]))
        assert one.status == 201, one
        all_of_them = await client("POST", "/multislot/rank", rank_of(*actions, slots=slots))
        assert all_of_them.status == 400
        assert "limits.log_bytes" in all_of_them.body["error"]["message"]

    tell(config, story, base=NEW)
    assert len(events_of(config)) == 1
