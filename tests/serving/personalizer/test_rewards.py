"""Rewards are taken as they come, and a deferred event counts once it is activated."""

from __future__ import annotations

from collections.abc import Callable

from fastbandit.learning.joining import Joiner
from fastbandit.settings.service import Config
from fastbandit.storage.events import TimePassed
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import Client, tell
from tests.serving.personalizer.test_configuration import ASKED


def joined(config: Config) -> list[tuple[str, float]]:
    """Return what is learned of a log once all time for rewards is over."""
    joiner, events = Joiner(), events_of(config)
    for event in events:
        joiner.feed(event)
    joiner.feed(TimePassed(events[-1].seq + 1, events[-1].at + 10**12))
    return [(str(one.arm).partition("#")[0], one.reward) for one in joiner.interactions]


def test_a_deferred_event_is_not_learned_from_until_it_is_activated(config: Config) -> None:
    async def story(client: Client) -> str:
        found = await client.rank("x", "y", eventId="one", deferActivation=True)
        assert (await client("POST", "/events/one/reward", {"value": 1})).status == 204
        return str(found["rewardActionId"])

    tell(config, story)
    assert joined(config) == []

    async def rest(client: Client) -> None:
        again = await client.rank("x", "y", eventId="one", deferActivation=True)
        assert again["rewardActionId"] == chosen
        assert (await client("POST", "/events/one/activate")).status == 204
        assert (await client("POST", "/events/one/activate")).status == 204
        assert (await client("POST", "/events/one/reward", {"value": 0.5})).status == 204

    chosen = events_of(config)[0].eligible["deferred"]["arms"][0]
    tell(config, rest)
    assert [reward for _, reward in joined(config)] == [0.5]
    made = events_of(config)[2]
    assert (made.arms, made.made_at) == ([chosen], events_of(config)[0].at)


def test_an_activated_event_without_a_reward_gets_the_default_one(config: Config) -> None:
    async def story(client: Client) -> None:
        await client.rank("x", "y", eventId="one", deferActivation=True)
        await client("POST", "/events/one/activate")

    tell(config, story)
    assert [reward for _, reward in joined(config)] == [0.0]


def test_events_that_are_not_known_or_active_already_are_left_as_they_are(config: Config) -> None:
    async def story(client: Client) -> None:
        await client.rank("x", "y", eventId="one")
        for event in ("one", "never"):
            assert (await client("POST", f"/events/{event}/activate")).status == 204
        assert (await client("POST", "/events/never/reward", {"value": 1})).status == 204

    tell(config, story)
    assert [getattr(one, "status", "made") for one in events_of(config)] == ["made", "unknown"]


def test_rewards_add_up_where_the_service_sums_them(make: Callable[..., Config]) -> None:
    config = make(reward__combine="sum")

    async def story(client: Client) -> None:
        await client.rank("x", "y", eventId="one")
        for _ in range(3):
            await client("POST", "/events/one/reward", {"value": 0.25})

    tell(config, story)
    assert [reward for _, reward in joined(config)] == [0.75]


def test_rewards_add_up_by_what_was_set_when_the_event_was_ranked(config: Config) -> None:
    async def story(client: Client) -> None:
        for event, way in (("one", "sum"), ("two", "earliest")):
            asked = ASKED | {"rewardAggregation": way}
            assert (await client("PUT", "/configurations/service", asked)).status == 200
            await client.rank("x", "y", eventId=event)
        for value in (0.25, 0.25, 0.5):
            await client("POST", "/events/one/reward", {"value": value})
        assert (await client("PUT", "/configurations/service", ASKED)).status == 200
        for value in (0.25, 0.5):
            await client("POST", "/events/two/reward", {"value": value})

    tell(config, story)
    assert sorted(reward for _, reward in joined(config)) == [0.25, 1.0]


def test_the_console_shows_what_is_active_and_nothing_deferred_is_explained(config: Config) -> None:
    async def story(client: Client) -> None:
        for event in ("one", "two"):
            await client.rank("x", "y", eventId=event, deferActivation=True)
        await client("POST", "/events/one/activate")
        shown = await client.ask("GET", "/v1/console")
        assert shown.status == 200, shown
        assert [one["id"] for one in shown.body["latest"]] == ["one"]
        assert shown.body["summary"]["decisions"] == 1
        reply = await client.ask("GET", "/v1/decisions/deferred two/explanation")
        assert reply.status == 404

    tell(config, story)
