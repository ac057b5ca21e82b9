"""How much one select may be; each limit has its setting, and its refusal names it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fastbandit.serving.problems import Rejection
from fastbandit.serving.request_limits import check_rewards, check_size, is_large, is_long
from fastbandit.serving.schemas import OfferedArm, SelectRequest
from fastbandit.settings.limits import LimitsConfig
from fastbandit.settings.service import Config
from tests.serving.little_service import CONTEXT, Caller, run


@pytest.mark.parametrize(
    ("request_", "limits", "field"),
    [
        (SelectRequest(contexts=[CONTEXT] * 4, eligible=["a"] * 6), {"eligible": 23}, "eligible"),
        (
            SelectRequest(contexts=[CONTEXT] * 2, eligible={"price": {"in": [*range(11)]}}),
            {"eligible": 23},
            "eligible",
        ),
        (
            SelectRequest(contexts=[CONTEXT] * 4, arms=[OfferedArm("a")] * 6),
            {"eligible": 23},
            "arms",
        ),
        (SelectRequest(context=CONTEXT, k=6, columns=["x"] * 4), {"eligible": 23}, "columns"),
        (SelectRequest(contexts=[CONTEXT] * 4), {"contexts": 3}, "contexts"),
        (SelectRequest(contexts=[CONTEXT] * 4, k=6), {"interactions": 23}, "k"),
        (SelectRequest(contexts=[CONTEXT] * 4), {"log_bytes": 999}, "contexts"),
        (
            SelectRequest(contexts=[CONTEXT] * 4, arms=[OfferedArm("a" * 100)]),
            {"log_bytes": 1_400},
            "contexts",
        ),
        (SelectRequest(context=CONTEXT), {"log_bytes": 99}, "context"),
    ],
)
def test_a_limit_that_is_passed_is_named(
    request_: SelectRequest, limits: dict[str, int], field: str
) -> None:
    with pytest.raises(Rejection) as caught:
        check_size(request_, LimitsConfig(**limits), 10)
    ((name, most),) = limits.items()
    problem = caught.value.problem
    assert (problem.status, problem.field) == (422, field)
    assert f"limits.{name} = {most:,}" in problem.detail
    assert f"raise limits.{name}" in problem.fix


def test_too_many_rewards_are_refused_by_the_name_of_their_limit() -> None:
    limits = LimitsConfig(rewards=3)
    check_rewards(3, limits)

    with pytest.raises(Rejection, match=r"at most limits\.rewards = 3: got 4 rewards") as caught:
        check_rewards(4, limits)
    assert (caught.value.problem.status, caught.value.problem.field) == (422, "rewards")


def test_what_is_just_within_the_limits_passes() -> None:
    limits = LimitsConfig(eligible=24, interactions=24)

    assert check_size(SelectRequest(contexts=[CONTEXT] * 4, eligible=["a"] * 6), limits, 10) == 4
    assert check_size(SelectRequest(contexts=[CONTEXT] * 4, k=6), limits, 10) == 24


@pytest.mark.parametrize(
    "more",
    [
        {"contexts": [CONTEXT] * 9},
        {"context": CONTEXT, "eligible": [*range(300)]},
        {"context": CONTEXT, "eligible": {"price": {"in": [*range(300)]}}},
        {"context": CONTEXT, "propensity": True},
        {"context": CONTEXT, "k": 300},
    ],
)
def test_what_takes_long_is_not_decided_on_the_event_loop(more: dict[str, Any]) -> None:
    assert is_large(SelectRequest(**more))
    assert not is_large(SelectRequest(context=CONTEXT, eligible=["a", "b"], k=3))


def test_a_short_answer_is_written_on_the_event_loop() -> None:
    for many in ({"k": 300}, {"columns": ["price"]}):
        assert is_long(SelectRequest(context=CONTEXT, **many))
    for few in ({"context": CONTEXT, "eligible": [*range(300)]}, {"contexts": [CONTEXT] * 32}):
        assert not is_long(SelectRequest(**few))


def test_large_requests_get_the_answers_of_small_ones(config: Config) -> None:
    async def story(ask: Caller) -> None:
        few = await ask.select(eligible=["arm-3"])
        many = await ask.select(eligible=["arm-3"] * 300)
        assert few["arms"] == many["arms"] == ["arm-3"]
        rewards = [{"decision": few["decision"], "value": 1}] * 150
        reply = await ask("POST", "/v1/reward", {"rewards": rewards})
        assert [one["status"] for one in reply.body["rewards"]] == ["counted"] + ["duplicate"] * 149
        rewards[120] = {"decision": "a", "value": 0.5}
        reply = await ask("POST", "/v1/reward", {"rewards": rewards})
        assert (reply.status, reply.body["field"]) == (422, "rewards[120].value")

    run(config, story)


def test_a_service_takes_its_limits_from_the_settings(config: Config) -> None:
    limits = LimitsConfig(eligible=3, interactions=4, body_bytes=300)

    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/select", {"contexts": [CONTEXT] * 5})
        assert (reply.status, reply.body["field"]) == (422, "k")
        reply = await ask("POST", "/v1/select", {"context": CONTEXT, "eligible": ["arm-1"] * 4})
        assert (reply.status, reply.body["field"]) == (422, "eligible")
        reply = await ask("POST", "/v1/select", raw=b" " * 301)
        assert (reply.status, "limits.body_bytes" in reply.body["fix"]) == (413, True)
        reply = await ask("DELETE", "/v1/arms", {"ids": ["nobody" * 10] * 10})
        assert reply.status == 200

    run(dataclasses.replace(config, limits=limits), story)
