"""Shadow mode: the baseline decides, the bandit only learns, and a promotion turns that round."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fastbandit.serving.promotion import (
    write_promotion,
)
from fastbandit.settings.service import Config
from fastbandit.storage.events import ArmsChanged, DecisionMade
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import ARMS, CONTEXT, Caller, config_in, run

ARM_3 = {"arm": "arm-3", "propensity": 0.25}


@pytest.fixture
def named(config: Config) -> Config:
    """A service where the caller names the arm of the baseline."""
    return config_in(Path(config.server.data_dir), shadow__baseline="request")


@pytest.fixture
def drawn(config: Config) -> Config:
    """A service where the baseline takes any arm."""
    return config_in(Path(config.server.data_dir), shadow__baseline="random")


def made_in(config: Config) -> list[DecisionMade]:
    log = SqliteLog(Path(config.server.data_dir) / "events.db", is_reader=True)
    events = [event for event in log.read() if isinstance(event, DecisionMade)]
    log.close()
    return events


def decide(config: Config, who: Any) -> None:
    write_promotion(Path(config.server.data_dir), who, version=0)


async def followed(ask: Caller, who: str) -> None:
    """Wait until the service has seen who decides."""
    for _ in range(100):
        if (await ask("GET", "/v1/status")).body["decides"] == who:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"the service did not notice that the {who} decides")


# -- who decides


def test_the_named_arm_is_answered_and_logged_as_the_decision(named: Config) -> None:
    async def story(ask: Caller) -> None:
        answer = await ask.select(baseline=ARM_3)
        (made,) = made_in(named)
        assert (answer["arms"], answer["propensities"]) == (["arm-3"], [0.25])
        assert (answer["decided_by"], answer["other"]) == ("baseline", made.other)
        assert (made.arms, made.decided_by, made.propensities) == (["arm-3"], "baseline", [0.25])
        assert made.other in {f"arm-{n}" for n in range(ARMS)}

    run(named, story)


def test_what_the_bandit_would_take_is_what_it_takes_alone(
    named: Config, config: Config, tmp_path: Path
) -> None:
    async def beside(ask: Caller) -> Any:
        return [(await ask.select(baseline=ARM_3, id=f"v{n}"))["other"] for n in range(9)]

    async def alone(ask: Caller) -> Any:
        return [(await ask.select(id=f"v{n}"))["arms"][0] for n in range(9)]

    found = run(named, beside)
    (tmp_path / "events.db").unlink()
    assert found == run(config, alone)


def test_a_drawn_baseline_takes_all_eligible_arms_alike(drawn: Config) -> None:
    async def story(ask: Caller) -> None:
        told = {"contexts": [CONTEXT] * 200, "eligible": {"price": {"<": 4}}}
        replies = [await ask("POST", "/v1/select", told) for _ in range(2)]
        made = [one for reply in replies for one in reply.body["decisions"]]
        counts = [sum(one["arms"] == [f"arm-{n}"] for one in made) for n in range(4)]
        assert min(counts) > 70
        assert {one["propensities"][0] for one in made} == {0.25}
        matches = sum(one["arms"] == [one["other"]] for one in made)
        assert 70 < matches < 130  # version 0 draws alike, and on its own

    run(drawn, story)


def test_without_shadow_mode_answers_say_nothing_of_it(config: Config) -> None:
    async def story(ask: Caller) -> None:
        answer = await ask.select()
        assert "decided_by" not in answer
        assert "other" not in answer

    run(config, story)


def test_many_contexts_name_an_arm_each(named: Config) -> None:
    async def story(ask: Caller) -> None:
        told = {"contexts": [CONTEXT] * 2, "baselines": [ARM_3, {"arm": "arm-1"}]}
        reply = await ask("POST", "/v1/select", told)
        one, other = reply.body["decisions"]
        assert (one["arms"], one["propensities"]) == (["arm-3"], [0.25])
        assert (other["arms"], other["propensities"]) == (["arm-1"], None)

    run(named, story)


def test_a_retry_of_a_shadow_decision_gives_the_same_answer(drawn: Config) -> None:
    async def story(ask: Caller) -> None:
        first = await ask.select(id="visit-1")
        assert await ask.select(id="visit-1") == first
        decide(drawn, "bandit")
        await followed(ask, "bandit")
        assert await ask.select(id="visit-1") == first
        assert len(made_in(drawn)) == 1

    run(drawn, story)


def test_a_retry_that_names_another_arm_is_another_request(named: Config) -> None:
    async def story(ask: Caller) -> None:
        await ask.select(id="visit-1", baseline=ARM_3)
        told = {"context": CONTEXT, "id": "visit-1", "baseline": {"arm": "arm-4"}}
        reply = await ask("POST", "/v1/select", told)
        assert (reply.status, reply.body["field"]) == (409, "id")

    run(named, story)


# -- promotion


# -- rejections


@pytest.mark.parametrize(
    ("told", "field", "words"),
    [
        ({}, "baseline", "needs to name the arm"),
        ({"baseline": {"arm": "nobody"}}, "baseline.arm", "in the catalogue"),
        ({"baseline": ARM_3, "eligible": ["arm-4"]}, "baseline.arm", "eligible"),
        ({"baseline": ARM_3, "eligible": {"price": {">": 5}}}, "baseline.arm", "eligible"),
        ({"baseline": {"arm": "arm-3", "propensity": 0}}, "baseline.propensity", "shape"),
        ({"baseline": {"arm": "arm-3", "propensity": 1.5}}, "baseline.propensity", "shape"),
        ({"baseline": ARM_3, "k": 2}, "k", "by one arm"),
        ({"baseline": ARM_3, "baselines": [ARM_3]}, "baseline", "as the contexts do"),
        ({"baselines": [ARM_3]}, "baselines", "as the contexts do"),
    ],
)
def test_a_wrong_baseline_is_rejected(named: Config, told: Any, field: str, words: str) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/select", {"context": CONTEXT, **told})
        assert (reply.status, reply.body["field"]) == (422, field), reply
        assert words in reply.body["detail"]
        assert reply.body["fix"]

    run(named, story)


def test_each_context_needs_an_arm_of_the_baseline(named: Config) -> None:
    async def story(ask: Caller) -> None:
        told = {"contexts": [CONTEXT] * 2, "baselines": [ARM_3]}
        reply = await ask("POST", "/v1/select", told)
        assert (reply.status, reply.body["field"]) == (422, "baselines")
        wrong = {**told, "baselines": [ARM_3, {"arm": "nobody"}]}
        reply = await ask("POST", "/v1/select", wrong)
        assert reply.body["field"] == "baselines[1].arm"

    run(named, story)


def test_a_removed_arm_is_no_longer_taken_by_the_baseline(named: Config) -> None:
    async def story(ask: Caller) -> None:
        await ask.service.change_arms(ArmsChanged(discarded=["arm-3"]))
        reply = await ask("POST", "/v1/select", {"context": CONTEXT, "baseline": ARM_3})
        assert (reply.status, reply.body["field"]) == (422, "baseline.arm")

    run(named, story)


@pytest.mark.parametrize("mode", ["", "random"])
def test_a_baseline_that_nothing_asked_for_is_rejected(config: Config, mode: str) -> None:
    async def story(ask: Caller) -> None:
        reply = await ask("POST", "/v1/select", {"context": CONTEXT, "baseline": ARM_3})
        assert (reply.status, reply.body["field"]) == (422, "baseline")
        assert "shadow.baseline" in reply.body["fix"]

    run(config_in(Path(config.server.data_dir), shadow__baseline=mode), story)


# -- what is told


def test_the_console_shows_the_comparison_in_shadow_mode_only(
    named: Config, config: Config
) -> None:
    async def story(ask: Caller) -> Any:
        for _ in range(4 if ask.service.config.shadow.baseline else 0):
            await ask.select(baseline=ARM_3, eligible=["arm-3"])
        return (await ask("GET", "/v1/console")).body["shadow"]

    told = run(named, story)
    command = f"fastbandit promote --data-dir {named.server.data_dir}"
    assert (told["decides"], told["command"]) == ("baseline", command)
    assert told["evidence"][0]["matches"] == 4
    assert run(config, story) is None
