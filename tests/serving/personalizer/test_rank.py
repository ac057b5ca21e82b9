"""A rank chooses one of the actions that it brings, and says how likely each was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fastbandit.settings.service import Config
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import Client, rank_of, tell


def test_one_of_the_actions_is_chosen_and_the_probabilities_sum_to_one(config: Config) -> None:
    async def story(client: Client) -> None:
        found = await client.rank("x", "y", "z", eventId="one")

        assert found["eventId"] == "one"
        assert found["rewardActionId"] == found["ranking"][0]["id"]
        assert sorted(one["id"] for one in found["ranking"]) == ["x", "y", "z"]
        assert sum(one["probability"] for one in found["ranking"]) == pytest.approx(1)

    tell(config, story)
    (made,) = events_of(config)
    assert (made.id, made.propensities) == ("one", [pytest.approx(1 / 3)])
    assert made.context == {"age": 31, "country": "DE", "likes": ["jazz"], "member": True}


def test_an_excluded_action_stays_at_its_place_and_is_never_chosen(config: Config) -> None:
    async def story(client: Client) -> None:
        for _ in range(20):
            found = await client.rank("x", "y", "z", excludedActions=["x", "unknown"])
            assert found["ranking"][0] == {"id": "x", "probability": 0.0}
            assert found["rewardActionId"] == found["ranking"][1]["id"]
            assert sum(one["probability"] for one in found["ranking"]) == pytest.approx(1)

    tell(config, story)


def test_an_event_without_an_id_gets_one_that_a_reward_can_name(config: Config) -> None:
    async def story(client: Client) -> None:
        event = (await client.rank("x", "y"))["eventId"]
        assert (await client("POST", f"/events/{event}/reward", {"value": 0.5})).status == 204

    tell(config, story)
    made, came = events_of(config)
    assert (came.decision, came.value, came.status) == (made.id, 0.5, "counted")


@pytest.mark.parametrize("more", [{}, {"deferActivation": True}])
def test_a_rank_may_say_whom_it_is_about(more: dict[str, bool], config: Config) -> None:
    async def story(client: Client) -> None:
        await client.rank("x", "y", eventId="one", subject="ann", **more)
        assert (await client("POST", "/events/one/activate")).status == 204

    tell(config, story)
    assert {one.subject for one in events_of(config)} == {"ann"}


@pytest.mark.parametrize("event", ["a b/ü", "a\nb", "&=%", "/reward"])
def test_an_event_may_be_called_anything(config: Config, event: str) -> None:
    async def story(client: Client) -> None:
        assert (await client.rank("x", "y", eventId=event))["eventId"] == event
        assert (await client("POST", f"/events/{event}/reward", {"value": 1})).status == 204

    tell(config, story)
    made, came = events_of(config)
    assert (came.decision, came.status) == (made.id, "counted")


@pytest.mark.parametrize(("count", "draws", "is_beside"), [(20, 100, False), (30, 1_000, True)])
def test_a_large_rank_is_decided_beside_the_event_loop(
    make: Callable[..., Config],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    draws: int,
    is_beside: bool,
) -> None:
    async def story(client: Client) -> None:
        done, do = list[Any](), client.service.large.do

        def noted(work: Any) -> Any:
            done.append(work)
            return do(work)

        monkeypatch.setattr(client.service.large, "do", noted)
        await client.rank(*(f"a{n}" for n in range(count)))
        assert bool(done) == is_beside

    tell(make(personalizer__draws=draws), story)


def test_a_retry_gets_the_same_answer(config: Config) -> None:
    async def story(client: Client) -> None:
        first = await client.rank("x", "y", "z", eventId="one")
        assert await client.rank("x", "y", "z", eventId="one") == first
        other = await client("POST", "/rank", rank_of("x", "w", eventId="one"))
        error = other.body["error"]
        assert (other.status, error["code"], error["target"]) == (409, "BadRequest", "eventId")
        assert error["innerError"] == {"code": "InvalidRankRequest"}

    tell(config, story)
    assert len(events_of(config)) == 1


def test_the_probabilities_of_a_retry_sum_to_one_where_the_baseline_decides_by_now(
    config: Config,
) -> None:
    async def story(client: Client) -> None:
        first = [await client.rank("x", "y", "z", eventId=f"n{n}") for n in range(9)]
        assert "x" in {one["rewardActionId"] for one in first}
        shown = (await client("GET", "/configurations/service")).body
        asked = shown | {"learningMode": "Apprentice"}
        assert (await client("PUT", "/configurations/service", asked)).status == 200
        for one in first:
            again = await client.rank("x", "y", "z", eventId=one["eventId"])
            assert again["rewardActionId"] == one["rewardActionId"]
            assert sum(found["probability"] for found in again["ranking"]) == pytest.approx(1)

    tell(config, story)
