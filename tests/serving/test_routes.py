"""What each route answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.settings.service import Config
from fastbandit.storage.events import RewardCame
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import CONTEXT, Caller, config_in, run


def log_of(config: Config) -> list[Any]:
    log = SqliteLog(Path(config.server.data_dir) / "events.db", is_reader=True)
    events = list(log.read())
    log.close()
    return events


def test_a_batch_gives_one_decision_for_each_context(config: Config) -> None:
    async def story(ask: Caller) -> None:
        told = {"contexts": [CONTEXT] * 20, "ids": [f"visit-{n}" for n in range(20)], "k": 2}
        reply = await ask("POST", "/v1/select", told)
        assert [one["decision"] for one in reply.body["decisions"]] == told["ids"]
        assert {len(one["arms"]) for one in reply.body["decisions"]} == {2}

    run(config, story)


def test_each_kind_of_reward_has_its_own_answer_and_all_are_stored(config: Config) -> None:
    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1", k=2)
        sent = [("visit-1", 1.0), ("visit-1", 1.0), ("visit-1", 0.0), ("nobody", 1.0)]
        replies = [
            await ask("POST", "/v1/reward", {"decision": id, "value": value}) for id, value in sent
        ]
        told = [(reply.status, reply.body["status"]) for reply in replies]
        assert told == [
            (200, "counted"),
            (200, "duplicate"),
            (409, "conflicting"),
            (404, "unknown"),
        ]
        assert sum(isinstance(event, RewardCame) for event in log_of(config)) == 4

    run(config, story)


def test_a_reward_after_the_wait_is_late(first_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")

    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1")
        reply = await ask("POST", "/v1/reward", {"decision": "visit-1", "value": 1})
        assert (reply.status, reply.body["status"]) == (202, "late")

    run(config_in(tmp_path, reward__wait_seconds=1e-6), story)


def test_many_rewards_are_answered_in_their_order(config: Config) -> None:
    async def story(ask: Caller) -> None:
        answer = await ask.select(id="visit-1", k=2)
        rewards = [
            {"decision": "visit-1", "value": 1, "arm": answer["arms"][1]},
            {"decision": "nobody", "value": 1},
            {"decision": "visit-1", "value": 0, "arm": "nothing"},
        ]
        reply = await ask("POST", "/v1/reward", {"rewards": rewards})
        told = [one["status"] for one in reply.body["rewards"]]
        assert told == ["counted", "unknown", "unknown arm"]

    run(config, story)


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({}, "rewards"),
        ({"decision": "a"}, "rewards"),
        ({"decision": "a", "value": 0.5}, "value"),
        ({"decision": "a", "value": True}, "value"),
        ({"decision": "a", "value": None}, "value"),
        ({"rewards": [{"decision": "a", "value": 2}]}, "rewards[0].value"),
        ({"rewards": []}, "rewards"),
        ({"decision": "a", "value": 1, "rewards": [{"decision": "a", "value": 1}]}, "rewards"),
    ],
)
def test_a_wrong_reward_names_the_field(config: Config, told: Any, field: str) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/reward", told)
        assert (reply.status, reply.body["field"]) == (422, field), reply

    run(config, story)
    assert log_of(config) == []


WEIGHS = {"reward__kind": "real", "reward__weights": (("quality", 1.0), ("cost", -0.5))}


def test_outcomes_are_stored_by_name_each_once(first_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")
    config = config_in(tmp_path, **WEIGHS)

    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1")
        sent = ({"cost": 0.2, "seconds": 1.5}, {"quality": 0.8}, {"quality": 0.7, "cost": 0.2})
        told = [
            await ask("POST", "/v1/reward", {"decision": "visit-1", "outcomes": outcomes})
            for outcomes in sent
        ]
        assert [[one["status"] for one in reply.body["rewards"]] for reply in told] == [
            ["counted", "counted"],
            ["counted"],
            ["conflicting", "duplicate"],
        ]

    run(config, story)
    came = [event for event in log_of(config) if isinstance(event, RewardCame)]
    counted = {one.part: one.value for one in came if one.status == "counted"}
    assert counted == {"cost": 0.2, "seconds": 1.5, "quality": 0.8}


@pytest.mark.parametrize(
    "told",
    [
        {"outcomes": {"quality": 1.0}},
        {"decision": "visit-1", "outcomes": {"": 1.0}},
        {"decision": "visit-1", "outcomes": {"quality": 1.0}, "value": 1.0},
        {"decision": "visit-1", "outcomes": {"quality": 1.0}, "part": "x"},
    ],
)
def test_outcomes_stand_alone(first_folder: Path, tmp_path: Path, told: Any) -> None:
    (tmp_path / "snapshots").symlink_to(first_folder / "snapshots")

    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1")
        reply = await ask("POST", "/v1/reward", told)
        assert (reply.status, reply.body["field"]) == (422, "outcomes")

    run(config_in(tmp_path, **WEIGHS), story)


def test_outcomes_need_a_service_that_weighs_them(config: Config) -> None:
    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1")
        told = {"decision": "visit-1", "outcomes": {"quality": 1.0}}
        reply = await ask("POST", "/v1/reward", told)
        assert reply.status == 422
        assert "reward.weights" in reply.body["fix"]

    run(config, story)
