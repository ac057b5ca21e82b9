"""Shadow mode over a shared log: who decides is one fact for all deciders."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from typing import Any

import httpx
import pytest
from machines import Machines, Started, address, soon, stopped, until

from fastbandit.errors import LogUnavailableError
from fastbandit.serving.promotion import write_promotion
from fastbandit.serving.shared_promotion import SharedPromotion
from fastbandit.storage.backups import DECIDES_FILE
from fastbandit.storage.events import DecisionMade, Who
from lab.postgres_server import LittleServer
from tests.serving.little_service import CONTEXT, Caller

DRAWN = {"shadow__baseline": "random"}


def let_decide(machines: Machines, who: Who) -> None:
    with closing(SharedPromotion(machines.url)) as shared:
        shared.write(who)


async def followed(who: Who, *askers: Caller) -> None:
    """Wait until deciders know who decides."""
    for asker in askers:
        shadow = asker.service.decider.shadow
        assert shadow is not None
        await soon(lambda shadow=shadow: shadow.decides == who)


async def who_decided(asker: Caller) -> Any:
    return (await asker.select())["decided_by"]


# -- deciders in-process


def test_the_baseline_decides_until_someone_says_otherwise(shared: Machines) -> None:
    async def story(one: Caller, two: Caller) -> None:
        assert {await who_decided(one), await who_decided(two)} == {"baseline"}

    shared.run(story, "a", "b", **DRAWN)


def test_all_deciders_follow_and_go_back(shared: Machines) -> None:
    async def story(one: Caller, two: Caller) -> None:
        for who in ("bandit", "baseline"):
            let_decide(shared, who)
            await followed(who, one, two)
            assert {await who_decided(one), await who_decided(two)} == {who}

    shared.run(story, "a", "b", **DRAWN)
    made = [event for event in shared.events() if isinstance(event, DecisionMade)]
    assert [one.decided_by for one in made] == ["bandit"] * 2 + ["baseline"] * 2


def test_what_all_were_told_stands_above_a_file_of_before(shared: Machines) -> None:
    (shared.folder / "a").mkdir()
    write_promotion(shared.folder / "a", "bandit", version=7)

    async def story(one: Caller) -> None:
        assert await who_decided(one) == "baseline"

    shared.run(story, "a", **DRAWN)


def test_a_damaged_file_is_written_anew(shared: Machines) -> None:
    let_decide(shared, "bandit")

    async def story(one: Caller) -> None:
        file = shared.folder / "a" / DECIDES_FILE
        told = file.read_text()
        file.write_text("{")
        await soon(lambda: file.read_text() == told)
        assert await who_decided(one) == "bandit"

    shared.run(story, "a", **DRAWN)


def test_a_promotion_after_an_outage_is_followed(
    shared: Machines, own_server: LittleServer
) -> None:
    async def story(one: Caller) -> None:
        let_decide(shared, "bandit")
        await followed("bandit", one)
        with stopped(own_server):
            assert await who_decided(one) == "bandit"
        let_decide(shared, "baseline")
        await followed("baseline", one)

    shared.run(story, "a", **DRAWN)


def test_a_decider_that_starts_without_the_database_keeps_to_the_last_it_knew(
    shared: Machines, own_server: LittleServer
) -> None:
    async def story(one: Caller) -> Any:
        return await who_decided(one)

    let_decide(shared, "bandit")
    assert shared.run(story, "a", **DRAWN) == "bandit"
    with stopped(own_server):
        assert shared.run(story, "a", **DRAWN) == "bandit"


def test_what_ails_the_following_is_told(shared: Machines) -> None:
    async def story(one: Caller) -> None:
        file = shared.folder / "a" / DECIDES_FILE
        file.unlink()
        file.mkdir()
        await soon(lambda: "promotion" in {problem.name for problem in one.service.problems()})
        file.rmdir()
        await soon(lambda: not one.service.problems())
        assert await who_decided(one) == "baseline"

    shared.run(story, "a", **DRAWN)


# -- processes


def told(machines: Machines, *command: str) -> Any:
    """Run a command on a machine that serves nothing; give the JSON that it prints."""
    with machines.started("desk", *command, "--json", **DRAWN) as run:
        assert run.process.wait() == 0, run.said
        return json.loads(run.said)


def ask(url: str) -> Any:
    answer = httpx.post(f"{url}/v1/select", json={"context": CONTEXT}, timeout=30.0)
    assert answer.status_code == 200, answer.text
    return answer.json()["decided_by"]


def decides(url: str) -> Any:
    return httpx.get(f"{url}/v1/status").json()["decides"]


def test_commands_speak_for_all_and_a_killed_decider_keeps_to_them(shared: Machines) -> None:
    def start(name: str) -> Started:
        return stack.enter_context(shared.started(name, "serve", "--no-learner", **DRAWN))

    with ExitStack() as stack:
        first, second = start("a"), start("b")
        urls = [address(first), address(second)]
        assert [ask(url) for url in urls * 5] == ["baseline"] * 10

        promoted = told(shared, "promote")
        assert (promoted["decides"], promoted["version"]) == ("bandit", 0)
        assert promoted["evidence"][0]["count"] == 10
        until(lambda: {decides(url) for url in urls} == {"bandit"})
        first.process.kill()
        first.process.wait()
        urls[0] = address(start("a"))
        assert [ask(url) for url in urls] == ["bandit", "bandit"]

        assert told(shared, "promote", "--back")["decides"] == "baseline"
        until(lambda: {decides(url) for url in urls} == {"baseline"})
        assert [ask(url) for url in urls] == ["baseline", "baseline"]
        sides = {one["decided_by"]: one["count"] for one in told(shared, "shadow")["evidence"]}
        assert sides == {"bandit": 2, "baseline": 12}


def test_without_the_database_nobody_is_promoted_and_nobody_guesses(
    shared: Machines, own_server: LittleServer
) -> None:
    assert told(shared, "shadow")["decides"] == "baseline"
    with stopped(own_server):
        with pytest.raises(LogUnavailableError):
            let_decide(shared, "bandit")
        with shared.started("desk", "shadow", **DRAWN) as run:
            assert run.process.wait() == 2, run.said
        write_promotion(shared.folder / "desk", "bandit", version=0)
        with shared.started("desk", "shadow", **DRAWN) as run:
            assert run.process.wait() == 0, run.said
            assert "The bandit decides." in run.said  # as a decider there was told last
    assert told(shared, "shadow")["decides"] == "baseline"
