"""Evaluations compare what was chosen with the first action and with chance, on the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastbandit.serving.personalizer.evaluations import latest_decisions
from fastbandit.settings.service import Config
from tests.serving.personalizer.little_personalizer import NEW, Client, rank_of, tell

ASKED = {
    "name": "first",
    "startTime": "2020-01-01T00:00:00Z",
    "endTime": "2100-01-01T00:00:00Z",
    "policies": [],
}


async def play(client: Client, *, rounds: int = 40) -> None:
    for _ in range(rounds):
        found = await client.rank("x", "y")
        value = float(found["rewardActionId"] == "y")
        await client("POST", f"/events/{found['eventId']}/reward", {"value": value})


def test_each_policy_is_judged_by_what_it_would_have_chosen(config: Config) -> None:
    async def story(client: Client) -> Any:
        await play(client)
        reply = await client("POST", "/evaluations", ASKED)
        assert reply.status == 201, reply
        return reply.body

    found = tell(config, story, base=NEW)
    totals = {one["name"]: one["totalSummary"] for one in found["policyResults"]}
    assert totals["Baseline"]["averageReward"] == 0.0  # x never earns anything
    online = totals["Online"]["averageReward"]
    assert totals["Online"]["ipsEstimatorDenominator"] == 40
    assert totals["Random"]["averageReward"] == pytest.approx(online)  # it was uniform
    assert (found["status"], found["evaluationType"]) == ("completed", "Manual")
    windows = next(one for one in found["policyResults"] if one["name"] == "Online")["summary"]
    assert sum(one["ipsEstimatorDenominator"] for one in windows) == 40
    assert {name for name, _ in found["featureImportance"]} <= {
        *("age", "country", "likes", "member", "title", "price", "genre", "since", "arm")
    }


async def play_slots(client: Client, *slots: dict[str, str], rounds: int = 40) -> Any:
    """Reward each slot that holds its baseline action; return the sums of each policy."""
    for _ in range(rounds):
        found = (await client("POST", "/multislot/rank", rank_of("x", "y", "z", slots=slots))).body
        rewards = [
            {
                "slotId": wanted["id"],
                "value": float(got["rewardActionId"] == wanted["baselineAction"]),
            }
            for wanted, got in zip(slots, found["slots"], strict=True)
        ]
        path = f"/multislot/events/{found['eventId']}/reward"
        assert (await client("POST", path, {"reward": rewards})).status == 204
    reply = await client("POST", "/evaluations", ASKED)
    return {one["name"]: one["totalSummary"] for one in reply.body["policyResults"]}


def test_the_baseline_of_a_slot_is_its_baseline_action(config: Config) -> None:
    slots = [{"id": "top", "baselineAction": "y"}, {"id": "side", "baselineAction": "x"}]

    async def story(client: Client) -> Any:
        return await play_slots(client, *slots)

    totals = tell(config, story, base=NEW)
    assert totals["Baseline"]["averageReward"] == 1.0
    assert totals["Baseline"]["nonZeroProbability"] < totals["Online"]["nonZeroProbability"]
    assert totals["Online"]["averageReward"] < 0.8


def test_where_the_baseline_decides_it_is_what_was_chosen(config: Config) -> None:
    async def story(client: Client) -> Any:
        shown = (await client("GET", "/configurations/service")).body
        asked = shown | {"learningMode": "Apprentice"}
        assert (await client("PUT", "/configurations/service", asked)).status == 200
        return await play_slots(client, {"id": "top", "baselineAction": "y"}, rounds=4)

    totals = tell(config, story, base=NEW)
    assert totals["Baseline"] == totals["Online"]
    assert totals["Baseline"]["snipsEstimatorDenominator"] == 4


def test_an_evaluation_of_more_decisions_than_are_allowed_is_rejected(
    make: Callable[..., Config],
) -> None:
    async def story(client: Client) -> None:
        await play(client, rounds=3)
        assert (await client("POST", "/evaluations", ASKED)).status == 201
        await play(client, rounds=1)
        reply = await client("POST", "/evaluations", ASKED)
        assert (reply.status, reply.body["error"]["code"]) == (400, "LogsSizeExceedAllowedLimit")
        assert "at most 3 decisions: got 4" in reply.body["error"]["message"]

    tell(make(personalizer__max_decisions=3), story, base=NEW)


def test_they_are_listed_read_and_deleted(config: Config) -> None:
    async def story(client: Client) -> None:
        await play(client, rounds=4)
        reply = await client("POST", "/evaluations", ASKED)
        made = reply.body
        assert reply.headers["location"] == f"{NEW}/evaluations/{made['id']}"
        assert (await client("GET", "/evaluations")).body == [made]
        assert (await client("GET", f"/evaluations/{made['id']}")).body == made
        assert (await client("DELETE", f"/evaluations/{made['id']}")).status == 204
        assert (await client("GET", "/evaluations")).body == []
        for method in ("GET", "DELETE"):
            reply = await client(method, f"/evaluations/{made['id']}")
            assert (reply.status, reply.body["error"]["code"]) == (404, "EvaluationNotFound")
        for id in ("..%2F..", "../snapshots", "x"):
            assert (await client("GET", f"/evaluations/{id}")).status == 404

    tell(config, story, base=NEW)


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2020-01-01T00:00:00", "2100-01-01T00:00:00"),
        ("2020-01-01T02:00:00+02:00", "2100-01-01T02:00:00+02:00"),
    ],
)
def test_times_without_a_zone_are_of_utc(config: Config, since: str, until: str) -> None:
    async def story(client: Client) -> None:
        await play(client, rounds=4)
        reply = await client("POST", "/evaluations", ASKED | {"startTime": since, "endTime": until})
        assert reply.status == 201, reply
        assert reply.body["startTime"] == "2020-01-01T00:00:00.000000Z"

    tell(config, story, base=NEW)


def test_a_time_before_all_years_is_rejected(config: Config) -> None:
    async def story(client: Client) -> None:
        asked = ASKED | {"startTime": "0001-01-01T00:00:00+14:00"}
        reply = await client("POST", "/evaluations", asked)
        assert (reply.status, reply.body["error"]["target"]) == (400, "startTime")

    tell(config, story, base=NEW)


def test_an_evaluation_of_nothing_or_of_other_learning_settings_is_rejected(
    config: Config,
) -> None:
    async def story(client: Client) -> None:
        reply = await client("POST", "/evaluations", ASKED)
        assert (reply.status, reply.body["error"]["code"]) == (400, "NoLogsExistInDateRange")
        other = ASKED | {"policies": [{"name": "vw", "arguments": "--cb_explore_adf"}]}
        reply = await client("POST", "/evaluations", other)
        assert (reply.status, reply.body["error"]["code"]) == (501, "OperationNotAllowed")

    tell(config, story, base=NEW)


def test_feature_importances_are_those_of_the_last_decisions(config: Config) -> None:
    async def story(client: Client) -> Any:
        await play(client, rounds=3)
        return (await client("GET", "/featureImportances")).body

    found = tell(config, story, base=NEW)
    sizes = [one["importance"] for one in found]
    assert sizes == sorted(sizes, reverse=True)


def test_what_was_deferred_and_never_activated_counts_nowhere(config: Config) -> None:
    slots = [{"id": "top", "baselineAction": "y"}]

    async def look(client: Client) -> dict[str, Any]:
        found = {"log": (await client("GET", "/logs/properties")).body}
        found["explained"] = latest_decisions(Path(config.server.data_dir))
        found["results"] = (await client("POST", "/evaluations", ASKED)).body["policyResults"]
        shown = (await client.ask("GET", "/v1/console")).body["summary"]
        return found | {name: shown[name] for name in ("decisions", "reward")}

    async def story(client: Client) -> None:
        await play(client, rounds=3)
        before = await look(client)
        for n in range(25):  # more than feature importances are of
            one = {"eventId": f"e{n}", "deferActivation": True}
            assert (await client("POST", "/rank", rank_of("x", "y", **one))).status == 201
            body = rank_of("x", "y", slots=slots, **one)
            assert (await client("POST", "/multislot/rank", body)).status == 201
            await client("POST", f"/events/e{n}/reward", {"value": 1})
            told = {"reward": [{"slotId": "top", "value": 1}]}
            await client("POST", f"/multislot/events/e{n}/reward", told)
        assert len(before["explained"]) == 3
        assert await look(client) == before

    tell(config, story, base=NEW)
