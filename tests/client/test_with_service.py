"""The client talks to the service itself, in one process and without a socket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fastbandit.client import ArmUpsert, AsyncClient, Baseline, Reward
from fastbandit.errors import ServiceError
from fastbandit.settings.service import Config, ShadowConfig
from tests.serving.little_service import CONTEXT, Caller, begin, run


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return begin(tmp_path_factory.mktemp("data"))


def client_of(requester: Caller, spool: Path | None = None) -> AsyncClient:
    transport = httpx.ASGITransport(app=requester.app)
    return AsyncClient(
        "http://localhost:8080", transport=transport, deadline_seconds=20.0, spool=spool
    )


def test_a_retry_of_a_select_gives_the_same_answer(config: Config) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester) as client:
            first = await client.select(CONTEXT, k=2, id="mine")
            assert len(first.arms) == len(first.scores) == 2
            assert await client.select(CONTEXT, k=2, id="mine") == first

    run(config, story)


def test_many_contexts_and_propensities_are_understood(config: Config) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester) as client:
            one, two = await client.select_many([CONTEXT, CONTEXT], eligible=["arm-1"])
            assert one.decision != two.decision
            assert one.arms == two.arms == ["arm-1"]
            sure = await client.select(CONTEXT, eligible=["arm-2"], propensity=True)
            assert sure.propensities == [1.0]

    run(config, story)


def test_arms_are_sent_with_the_request(config: Config) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester) as client:
            arms = [{"id": "arm-1"}, {"id": "new", "features": [1.0, 2.0, 3.0]}]
            one = await client.select(CONTEXT, k=2, arms=arms)
            assert sorted(map(str, one.arms)) == ["arm-1", "new"]
            (many,) = await client.select_many([CONTEXT], arms=arms[1:])
            assert many.arm == "new"

    run(config, story)


def test_columns_of_the_arms_are_understood(config: Config) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester) as client:
            one = await client.select(CONTEXT, eligible=["arm-3"], columns=["price", "colour"])
            assert one.columns == [{"price": 3.0, "colour": "red"}]
            (other,) = await client.select_many([CONTEXT], k=2, columns=["price"])
            assert [one["price"] for one in other.columns if one] == [
                float(str(arm).removeprefix("arm-")) for arm in other.arms
            ]
            assert (await client.select(CONTEXT)).columns == []

    run(config, story)


def test_a_baseline_is_sent_and_its_decision_understood(config: Config) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester) as client:
            one = await client.select(CONTEXT, baseline=Baseline("arm-2", 0.5), eligible=["arm-2"])
            assert (one.arm, one.decided_by, one.other) == ("arm-2", "baseline", "arm-2")
            assert one.propensities == [0.5]
            many = await client.select_many([CONTEXT] * 2, baselines=["arm-1", Baseline("arm-3")])
            assert [each.arm for each in many] == ["arm-1", "arm-3"]

    run(replace(config, shadow=ShadowConfig("request")), story)


def test_rewards_are_understood(config: Config, tmp_path: Path) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester, tmp_path / "spool") as client:
            selected = await client.select(CONTEXT)
            assert await client.reward(selected, 1.0) == "counted"
            assert await client.rewards(
                [Reward(selected.decision, 1.0), Reward(selected.decision, 0.0), Reward("x", 0.0)]
            ) == ["duplicate", "conflicting", "spooled"]

    run(config, story)


def test_arms_and_the_status_are_understood(config: Config) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester) as client:
            columns = {"price": 3.0, "colour": "red"}
            put = await client.upsert_arms([ArmUpsert("new", [0.1, 0.2, 0.3], columns)])
            assert (put.added, put.arms) == (1, 13)
            assert (await client.discard_arms(["new", "never"])).unknown == ["never"]
            assert await client.status()

    run(config, story)


def test_a_rejection_names_the_field_and_the_fix(config: Config) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester) as client:
            with pytest.raises(ServiceError) as caught:
                await client.select([1.0])
            assert caught.value.status == 422
            assert caught.value.problem["field"] == "context"
            assert caught.value.problem["fix"] in str(caught.value)

    run(config, story)


def test_a_spooled_reward_that_the_service_rejects_is_set_aside(
    config: Config, tmp_path: Path
) -> None:
    async def story(requester: Caller) -> None:
        async with client_of(requester, tmp_path / "spool") as client:
            selected = await client.select(CONTEXT)
            assert client.spool is not None
            client.spool.store([Reward("x", 0.5), Reward(selected.decision, 1.0)])
            flushed = await client.flush()
            assert (flushed.sent, flushed.rejected, flushed.left) == (1, 1, 0)
            assert "0 or 1" in client.spool.take_rejected()[0][1]

    run(config, story)
