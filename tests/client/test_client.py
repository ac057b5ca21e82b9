"""Both clients against a service that answers, and one that fails in every way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_service import (
    NOBODY,
    FakeService,
    babble,
    drop,
    drop_once_done,
    hang,
    reject,
)

from fastbandit.client import NOT_SENT, SPOOLED, ArmUpsert, AsyncClient, Retries, Reward
from fastbandit.errors import (
    InputError,
    RewardError,
    ServiceError,
    ServiceUnavailable,
    SettingError,
)

Connect = Callable[..., Any]
ONCE = Retries(tries=1)
FAILURES = [drop, drop_once_done, babble, *(reject(status) for status in (429, 500, 502, 503, 504))]
NAMES = ["drop", "drop once done", "babble", "429", "500", "502", "503", "504"]


# -- a service that answers


def test_a_select_gives_what_the_service_chose(service: FakeService, connect: Connect) -> None:
    selected = connect(service.url).select([0.1, 0.2])

    assert (selected.arm, selected.arms, selected.scores) == ("arm 0", ["arm 0"], [0.5])
    assert (selected.version, selected.degraded, selected.is_fallback) == (3, False, False)


def test_a_select_sends_an_id_of_its_own(service: FakeService, connect: Connect) -> None:
    selected = connect(service.url).select([0.1])

    assert service.asked("/v1/select") == [{"context": [0.1], "id": selected.decision}]


def test_what_is_asked_reaches_the_service(service: FakeService, connect: Connect) -> None:
    connect(service.url).select(
        {"age": 3.0}, k=2, eligible=["a", 7], explore=False, id="mine", propensity=True
    )

    assert service.asked("/v1/select") == [
        {
            "context": {"age": 3.0},
            "id": "mine",
            "k": 2,
            "eligible": ["a", 7],
            "explore": False,
            "propensity": True,
        }
    ]


def test_an_array_is_a_context(service: FakeService, connect: Connect) -> None:
    np = pytest.importorskip("numpy")

    connect(service.url).select(np.array([0.5, 1.5]))

    assert service.asked("/v1/select")[0]["context"] == [0.5, 1.5]


def test_many_contexts_are_one_request(service: FakeService, connect: Connect) -> None:
    found = connect(service.url).select_many([[0.1], [0.2]])

    assert [selected.arm for selected in found] == ["arm 0", "arm 1"]
    assert service.asked("/v1/select") == [
        {"contexts": [[0.1], [0.2]], "ids": [selected.decision for selected in found]}
    ]


def test_a_reward_says_what_became_of_it(service: FakeService, connect: Connect) -> None:
    client = connect(service.url)
    selected = client.select([0.1])

    assert client.reward(selected, 1.0) == "counted"
    assert client.reward(selected.decision, 1.0) == "duplicate"
    assert client.reward(selected, 0.0) == "conflicting"
    assert client.reward("never-heard-of", 1.0) == "unknown"


def test_many_rewards_are_one_request(service: FakeService, connect: Connect) -> None:
    client = connect(service.url)
    selected = client.select([0.1])
    rewards = [Reward(selected.decision, 1.0, arm="arm 0", part="a"), Reward("other", 0.0)]

    assert client.rewards(rewards) == ["counted", "unknown"]
    assert service.asked("/v1/reward") == [
        {
            "rewards": [
                {"decision": selected.decision, "value": 1.0, "arm": "arm 0", "part": "a"},
                {"decision": "other", "value": 0.0},
            ]
        }
    ]


def test_arms_are_put_and_deleted(service: FakeService, connect: Connect) -> None:
    client = connect(service.url)

    put = client.upsert_arms([ArmUpsert("a", [0.1]), ArmUpsert(7, [0.2], {"price": 3.0})])
    removed = client.discard_arms(["a", "b"], deadline_seconds=20.0)

    assert (put.added, put.catalogue) == (2, 7)
    assert (removed.removed, removed.unknown) == (1, ["b"])
    assert service.asked("/v1/arms") == [
        {
            "arms": [
                {"id": "a", "features": [0.1]},
                {"id": 7, "features": [0.2], "columns": {"price": 3.0}},
            ]
        },
        {"ids": ["a", "b"]},
    ]


def test_the_status_is_passed_on(service: FakeService, connect: Connect) -> None:
    assert connect(service.url).status()["decisions"] == 0


def test_a_service_may_live_below_a_path(service: FakeService, connect: Connect) -> None:
    with pytest.raises(ServiceError, match="no such route"):
        connect(f"{service.url}/bandit/").status()

    assert service.requests[0][1] == "/bandit/v1/status"


# -- a service that fails


@pytest.mark.parametrize("failure", FAILURES, ids=NAMES)
def test_a_failure_is_tried_again_with_the_same_id(
    failure: Any, service: FakeService, connect: Connect
) -> None:
    service.failures = [failure, failure]
    client = connect(service.url)

    selected = client.select([0.1])

    assert (selected.arm, selected.is_fallback) == ("arm 0", False)
    assert [asked["id"] for asked in service.asked("/v1/select")] == [selected.decision] * 3
    assert client.counts == {"retries": 2}


def test_a_lost_answer_counts_a_reward_once(service: FakeService, connect: Connect) -> None:
    client = connect(service.url)
    selected = client.select([0.1])
    service.failures = [drop_once_done]

    assert client.reward(selected, 1.0) == "duplicate"
    assert service.counted == {selected.decision: 1.0}


def test_a_rejection_is_not_tried_again(service: FakeService, connect: Connect) -> None:
    service.failures = [reject(403)]

    with pytest.raises(ServiceError, match=r"Not now\. Send another\.") as caught:
        connect(service.url, fallback="a").select([0.1])

    assert (caught.value.status, caught.value.problem["fix"]) == (403, "Send another.")
    assert len(service.requests) == 1


def test_a_service_that_asks_for_more_time_than_there_is_is_left_alone(
    service: FakeService, connect: Connect
) -> None:
    service.failures = [reject(503, Retry_After="3600")]

    selected = connect(service.url, fallback="a").select([0.1])

    assert (selected.is_fallback, len(service.requests)) == (True, 1)


def test_the_reward_of_a_fallback_is_not_sent(service: FakeService, connect: Connect) -> None:
    service.failures = [reject(503)]
    client = connect(service.url, fallback="home", retries=ONCE)
    selected = client.select([0.1])

    assert client.reward(selected, 1.0) == NOT_SENT
    assert client.reward(selected.decision, 1.0) == NOT_SENT
    assert client.counts == {"fallbacks": 1, "rewards not sent": 2}
    assert service.asked("/v1/reward") == []


# -- what cannot be asked


@pytest.mark.parametrize("id", ["", "two words", "x" * 129, "fallback:mine"])
def test_an_id_that_no_decision_may_have_is_rejected(id: str, connect: Connect) -> None:
    with pytest.raises(InputError, match="The id of a decision needs"):
        connect(NOBODY).select([0.1], id=id)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_reward_needs_to_be_finite(value: float, connect: Connect) -> None:
    with pytest.raises(RewardError, match="finite"):
        connect(NOBODY).reward("mine", value)


def test_what_json_has_no_word_for_is_rejected(connect: Connect) -> None:
    with pytest.raises(InputError, match="of type object"):
        connect(NOBODY).select([object()])


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://", "http://[::"])
def test_an_address_needs_to_be_one(url: str, connect: Connect) -> None:
    with pytest.raises(SettingError, match="the address of a service"):
        connect(url)


def test_a_deadline_needs_some_time(connect: Connect) -> None:
    with pytest.raises(SettingError, match="needs some time"):
        connect(NOBODY, deadline_seconds=0.0)


def test_a_client_without_a_spool_says_that_a_reward_was_not_delivered(
    connect: Connect, tmp_path: Path
) -> None:
    with pytest.raises(ServiceUnavailable, match="a spool for rewards"):
        connect(NOBODY, retries=ONCE).reward("mine", 1.0)


# -- the client for asyncio: what waits for the service or the disk leaves the loop free


def test_the_loop_runs_on_while_a_call_waits(service: FakeService) -> None:
    service.failures = [hang]

    async def story() -> int:
        client = AsyncClient(
            service.url, deadline_seconds=0.3, fallback="a", retries=Retries(tries=1)
        )
        async with client:
            call, steps = asyncio.create_task(client.select([0.1])), 0
            while not call.done():
                await asyncio.sleep(0.01)
                steps += 1
            assert (await call).is_fallback
        return steps

    assert asyncio.run(story()) > 3


def test_calls_run_beside_one_another(service: FakeService) -> None:
    async def story() -> set[str]:
        async with AsyncClient(service.url, deadline_seconds=20.0) as client:
            found = await asyncio.gather(*(client.select([float(n)]) for n in range(5)))
        return {selected.decision for selected in found}

    assert len(asyncio.run(story())) == 5


def test_a_reward_is_spooled_while_no_service_answers(tmp_path: Path) -> None:
    async def story() -> tuple[str, int]:
        retries = Retries(tries=1)
        async with AsyncClient(NOBODY, spool=tmp_path / "spool", retries=retries) as client:
            assert client.spool is not None
            return await client.reward("a", 1.0), client.spool.count()

    assert asyncio.run(story()) == (SPOOLED, 1)
