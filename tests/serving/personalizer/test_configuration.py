"""What clients set holds at once, for all workers and after a restart, and discards no model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastbandit.errors import SettingError
from fastbandit.serving.personalizer.configuration import check_carried_over, configured, store
from fastbandit.serving.personalizer.schemas import ServiceConfiguration
from fastbandit.serving.problems import Rejection
from fastbandit.serving.promotion import read_promotion
from fastbandit.settings.service import Config
from fastbandit.storage.backups import PERSONALIZER_FILE
from tests.serving.little_named import CONTEXT, events_of
from tests.serving.personalizer.little_personalizer import NEW, Client, rank_of, tell

ASKED: dict[str, Any] = {
    "rewardWaitTime": "PT20M",
    "defaultReward": 0.25,
    "rewardAggregation": "sum",
    "explorationPercentage": 0.2,
    "modelExportFrequency": "PT2M",
    "logRetentionDays": 90,
}


def test_it_shows_the_settings_of_the_service(make: Callable[..., Config]) -> None:
    async def story(client: Client) -> Any:
        return (await client("GET", "/configurations/service")).body

    shown = tell(make(reward__wait_seconds=90.0, select__epsilon=0.1), story)

    assert shown["rewardWaitTime"] == "PT1M30S"
    assert (shown["defaultReward"], shown["rewardAggregation"]) == (0.0, "earliest")
    assert (shown["explorationPercentage"], shown["learningMode"]) == (0.1, "Online")
    assert (shown["modelExportFrequency"], shown["logRetentionDays"]) == ("PT1M", -1)


def test_what_is_set_holds_for_the_next_rank_and_after_a_restart(config: Config) -> None:
    async def story(client: Client) -> Any:
        reply = await client("PUT", "/configurations/service", ASKED)
        assert reply.status == 200, reply
        assert {name: reply.body[name] for name in ASKED} == ASKED
        assert reply.body["lastConfigurationEditDate"] > "2020"
        await client.rank("x", "y")
        return reply.body

    async def later(client: Client) -> Any:
        return (await client("GET", "/configurations/service")).body

    said = tell(config, story)
    (made,) = events_of(config)
    assert (made.wait, made.default_reward, made.adds_up) == (1_200_000_000, 0.25, True)
    assert made.epsilon == 0.2
    assert tell(config, later) == said
    assert configured(config).learn.seconds == 120
    assert configured(config).log.retain_days == 90


def test_in_apprentice_mode_the_first_action_is_taken_and_the_bandit_only_compared(
    config: Config,
) -> None:
    async def story(client: Client) -> None:
        await client("PUT", "/configurations/service", ASKED)
        asked = ASKED | {"learningMode": "Apprentice"}
        reply = await client("PUT", "/configurations/service", asked)
        assert reply.body["learningMode"] == "Apprentice"
        found = await client.rank("x", "y", "z", excludedActions=["x"])
        assert found["rewardActionId"] == "y"
        assert [one["probability"] for one in found["ranking"]] == [0.0, 1.0, 0.0]
        reply = await client("PUT", "/configurations/service", ASKED | {"learningMode": "Online"})
        assert reply.body["learningMode"] == "Online"
        chosen = [(await client.rank("x", "y", "z"))["rewardActionId"] for _ in range(20)]
        assert {*chosen} > {"x"}

    tell(config, story)
    made = events_of(config)
    assert [one.decided_by for one in made[:2]] == ["baseline", "bandit"]
    assert {one.other for one in made[1:]} == {"x"}


def test_the_first_action_of_a_rank_is_the_baseline_where_that_of_selects_is_drawn(
    make: Callable[..., Config],
) -> None:
    config = make(shadow__baseline="random")
    slots = [{"id": "top", "baselineAction": "y"}, {"id": "side", "baselineAction": "x"}]

    async def story(client: Client) -> None:
        chosen = [(await client.rank("x", "y", "z"))["rewardActionId"] for _ in range(12)]
        assert chosen == ["x"] * 12
        filled = await client("POST", "/multislot/rank", rank_of("x", "y", "z", slots=slots))
        assert [one["rewardActionId"] for one in filled.body["slots"]] == ["y", "x"]
        service = (await client("GET", "/configurations/service")).body
        await client("PUT", "/configurations/service", service | {"learningMode": "Online"})
        await client.rank("z", "x")

    tell(config, story)
    made = events_of(config)
    assert [one.decided_by for one in made] == ["baseline"] * 14 + ["bandit"]
    assert made[-1].other == "z"


@pytest.mark.parametrize(
    ("wrong", "status", "field"),
    [
        ({"rewardWaitTime": "ten minutes"}, 400, "rewardWaitTime"),
        ({"rewardWaitTime": "PT1S"}, 400, "rewardWaitTime"),
        ({"rewardWaitTime": "P3D"}, 400, "rewardWaitTime"),
        ({"rewardWaitTime": "P1W"}, 400, "rewardWaitTime"),
        ({"modelExportFrequency": "P1M"}, 400, "modelExportFrequency"),
        ({"rewardAggregation": "median"}, 400, "rewardAggregation"),
        ({"defaultReward": 1.5}, 400, "defaultReward"),
        ({"defaultReward": -2}, 400, "defaultReward"),
        ({"logRetentionDays": 0}, 400, "logRetentionDays"),
        ({"logRetentionDays": -2}, 400, "logRetentionDays"),
        ({"learningMode": "Sometimes"}, 400, "learningMode"),
        ({"explorationPercentage": 20}, 400, "explorationPercentage"),
        ({"logMirrorEnabled": True}, 501, None),
        ({"isAutoOptimizationEnabled": True}, 501, None),
        ({"learningMode": "LoggingOnly"}, 501, None),
    ],
)
def test_what_cannot_be_set_is_rejected_and_changes_nothing(
    config: Config, wrong: dict[str, Any], status: int, field: str | None
) -> None:
    async def story(client: Client) -> None:
        before = (await client("GET", "/configurations/service")).body
        reply = await client("PUT", "/configurations/service", ASKED | wrong)
        error = reply.body["error"]
        assert (reply.status, error.get("target")) == (status, field), reply
        assert (await client("GET", "/configurations/service")).body == before

    tell(config, story, base="/personalizer/v1.1-preview.3")


def test_a_change_of_the_mode_comes_alone(config: Config) -> None:
    async def story(client: Client) -> None:
        before = (await client("GET", "/configurations/service")).body
        for name in ("defaultReward", "rewardWaitTime", "rewardAggregation"):
            wrong = before | {"learningMode": "Apprentice", name: ASKED[name]}
            reply = await client("PUT", "/configurations/service", wrong)
            error = reply.body["error"]
            code = "InvalidLearningModeServiceConfiguration"
            assert (reply.status, error["code"], error["target"]) == (400, code, "learningMode")
            assert name in error["message"]
        assert (await client("GET", "/configurations/service")).body == before
        other = before | {"learningMode": "Apprentice", "explorationPercentage": 0.3}
        assert (await client("PUT", "/configurations/service", other)).status == 200

    tell(config, story, base=NEW)


@pytest.mark.parametrize(("wait", "least"), [("PT10M", 2), ("P1D", 2), ("P1DT1S", 3)])
def test_logs_stay_for_the_time_for_rewards_and_a_day(
    config: Config, wait: str, least: int
) -> None:
    async def story(client: Client) -> None:
        asked = ASKED | {"rewardWaitTime": wait}
        for days in (least - 1, 0):
            wrong = asked | {"logRetentionDays": days}
            reply = await client("PUT", "/configurations/service", wrong)
            error = reply.body["error"]
            assert (reply.status, error["code"]) == (400, "InvalidLogRetentionDays")
            assert error["target"] == "logRetentionDays"
        for days in (least, -1):
            right = asked | {"logRetentionDays": days}
            assert (await client("PUT", "/configurations/service", right)).status == 200

    tell(config, story, base=NEW)


WIDE: dict[str, Any] = {
    "reward__wait_seconds": 14 * 86_400 + 1 / 3,
    "reward__default": 5.0,
    "learn__seconds": 0.5,
    "log__retain_days": 10**6,
}


def test_what_is_shown_may_be_put_and_changes_nothing(make: Callable[..., Config]) -> None:
    async def story(client: Client) -> None:
        shown = (await client("GET", "/configurations/service")).body
        reply = await client("PUT", "/configurations/service", shown)
        assert (reply.status, reply.body) == (200, shown), reply
        longer = shown | {"rewardWaitTime": "P2W" + shown["rewardWaitTime"].removeprefix("P14D")}
        reply = await client("PUT", "/configurations/service", longer)
        assert (reply.status, reply.body) == (200, shown), reply

    config = make(**WIDE)
    tell(config, story)
    assert not (Path(config.server.data_dir) / PERSONALIZER_FILE).exists()


def test_what_is_wider_stays_as_it_is_where_something_else_is_put(
    make: Callable[..., Config],
) -> None:
    async def story(client: Client) -> None:
        shown = (await client("GET", "/configurations/service")).body
        asked = shown | {"explorationPercentage": 0.3}
        reply = await client("PUT", "/configurations/service", asked)
        assert reply.status == 200, reply
        edited = {"lastConfigurationEditDate": reply.body["lastConfigurationEditDate"]}
        assert reply.body == asked | edited

    config = make(**WIDE)
    tell(config, story)
    later = configured(config)
    assert (later.reward, later.learn, later.log) == (config.reward, config.learn, config.log)
    assert later.select.epsilon == 0.3


def test_what_is_null_or_left_out_stays_as_it_is(config: Config) -> None:
    async def story(client: Client) -> None:
        await client("PUT", "/configurations/service", ASKED)
        asked = ASKED | {"learningMode": "Apprentice"}
        before = (await client("PUT", "/configurations/service", asked)).body
        some = {name: value for name, value in ASKED.items() if name != "logRetentionDays"}
        for more in ({}, dict.fromkeys(["learningMode", "logRetentionDays", "logMirrorEnabled"])):
            reply = await client("PUT", "/configurations/service", some | more)
            assert (reply.status, reply.body) == (200, before), reply

    tell(config, story)


def test_the_key_of_a_storage_account_is_not_stored(config: Config) -> None:
    async def story(client: Client) -> None:
        asked = ASKED | {"logMirrorEnabled": False, "logMirrorSasUri": "https://x/y?sig=secret"}
        assert (await client("PUT", "/configurations/service", asked)).status == 200

    tell(config, story)
    assert "secret" not in (Path(config.server.data_dir) / PERSONALIZER_FILE).read_text()


def test_a_frequency_may_be_put_in_weeks(config: Config) -> None:
    async def story(client: Client) -> None:
        asked = ASKED | {"modelExportFrequency": "P1W"}
        reply = await client("PUT", "/configurations/service", asked)
        assert reply.body["modelExportFrequency"] == "P7D"

    tell(config, story)
    assert configured(config).learn.seconds == 7 * 86_400


def test_a_sum_of_binary_rewards_is_named_as_what_is_wrong(make: Callable[..., Config]) -> None:
    async def story(client: Client) -> None:
        asked = ASKED | {"defaultReward": 0.0}
        reply = await client("PUT", "/configurations/service", asked)
        assert (reply.status, reply.body["error"]["target"]) == (400, "rewardAggregation"), reply

    tell(make(reward__kind="binary"), story)


def test_in_apprentice_mode_our_own_selects_go_on(make: Callable[..., Config]) -> None:
    async def story(client: Client) -> None:
        for mode in ("Online", "Apprentice"):
            await client("PUT", "/configurations/service", ASKED | {"learningMode": mode})
        arms = [{"id": id} for id in "dcb"]
        own = await client.ask("POST", "/v1/select", {"context": CONTEXT, "arms": arms})
        assert (own.body["arms"], own.body["decided_by"]) == (["d"], "baseline"), own
        several = {"contexts": [CONTEXT] * 2, "arms": arms}
        both = await client.ask("POST", "/v1/select", several)
        assert [one["arms"] for one in both.body["decisions"]] == [["d"], ["d"]], both
        for more in ({}, {"eligible": ["b", "c"]}, {"k": 2}, {"arms": arms, "k": 2}):
            free = await client.ask("POST", "/v1/select", {"context": CONTEXT, **more})
            assert (free.status, free.body["decided_by"]) == (200, "bandit"), free

    tell(make(arms__file="arms.csv"), story)


def test_what_another_worker_was_told_holds_here_without_a_rank(config: Config) -> None:
    asked = msgspec.convert(ASKED, ServiceConfiguration)

    async def story(client: Client) -> None:
        store(Path(config.server.data_dir), asked)
        shown = (await client("GET", "/configurations/service")).body
        assert {name: shown[name] for name in ASKED} == ASKED
        store(Path(config.server.data_dir), msgspec.structs.replace(asked, default_reward=0.5))
        for _ in range(1_000):
            await asyncio.sleep(0.01)
            if client.service.config.reward.default == 0.5:
                break
        assert client.service.config.reward.default == 0.5

    tell(config, story)


def test_a_file_that_cannot_be_read_changes_nothing(config: Config) -> None:
    async def story(client: Client) -> None:
        await client("PUT", "/configurations/service", ASKED)
        (Path(config.server.data_dir) / PERSONALIZER_FILE).write_text("{")
        client.service.polled[0]()
        await client.rank("x", "y")
        assert (await client("GET", "/configurations/service")).body["defaultReward"] == 0.25

    tell(config, story)


def test_what_was_set_and_no_longer_fits_the_settings_is_said_at_the_start(
    make: Callable[..., Config],
) -> None:
    config = make(reward__kind="binary")
    store(Path(config.server.data_dir), msgspec.convert(ASKED, ServiceConfiguration))

    with pytest.raises(SettingError, match=r"personalizer\.json"):
        configured(config)


def test_the_mode_may_be_put_as_it_is_where_a_log_is_shared() -> None:
    asked = msgspec.convert(ASKED | {"learningMode": "Online"}, ServiceConfiguration)

    check_carried_over(asked, decides="bandit", is_shared=True)
    with pytest.raises(Rejection):
        check_carried_over(asked, decides="baseline", is_shared=True)


def test_a_mode_that_is_put_as_it_is_is_no_promotion(config: Config) -> None:
    async def story(client: Client) -> None:
        await client("PUT", "/configurations/service", ASKED | {"learningMode": "Online"})

    tell(config, story)
    assert read_promotion(Path(config.server.data_dir)) is None
