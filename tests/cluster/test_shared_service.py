"""Deciders that share a log in PostgreSQL: one service, also while the database is away."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from typing import Any

import httpx
from machines import Machines, address, soon, stopped, until

from fastbandit.settings.passwords import hide_password
from lab.postgres_server import LittleServer
from tests.serving.little_service import CONTEXT, Caller

ARM = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 1.0, "colour": "red"}}


async def away(asker: Caller) -> None:
    """Wait until a decider has noticed that the database is away."""
    spooled = asker.service.spooled
    assert spooled is not None
    await asker.select()
    await soon(lambda: spooled.unavailable is not None)


async def back(asker: Caller) -> None:
    """Wait until a decider has replayed its spool."""
    spooled = asker.service.spooled
    assert spooled is not None
    await soon(lambda: spooled.unavailable is None and not spooled.waiting)


def reward_of(decision: str, value: float = 1.0) -> dict[str, Any]:
    return {"decision": decision, "value": value}


# -- two deciders


def test_a_reward_may_come_to_another_decider(shared: Machines) -> None:
    async def story(one: Caller, two: Caller) -> None:
        made = await one.select()
        assert (await two("POST", "/v1/reward", reward_of(made["decision"]))).status == 200
        again = await one("POST", "/v1/reward", reward_of(made["decision"]))
        assert again.body["status"] == "duplicate"

    shared.run(story, "a", "b")
    assert [came.status for came in shared.rewards()] == ["counted", "duplicate"]


def test_a_retry_at_another_decider_gives_the_same_answer(shared: Machines) -> None:
    async def story(one: Caller, two: Caller) -> None:
        assert await one.select(id="mine") == await two.select(id="mine")

    shared.run(story, "a", "b")
    assert shared.decisions() == ["mine"]


def test_arms_put_at_one_are_chosen_at_another(shared: Machines) -> None:
    async def story(one: Caller, two: Caller) -> None:
        put = await one("PUT", "/v1/arms", {"arms": [ARM]})
        assert (put.status, put.body["added"], put.body["arms"]) == (200, 1, 13)
        await soon(lambda: two.service.decider.serving.catalogue == put.body["catalogue"])
        made = await two.select(eligible=["new"])
        assert (made["arms"], made["catalogue"]) == (["new"], put.body["catalogue"])

    shared.run(story, "a", "b")
    assert [change.seq for change in shared.changes()] == [1]


def test_arms_put_at_both_at_once_are_the_same_on_both(shared: Machines) -> None:
    async def put(asker: Caller, mark: float) -> None:
        for number in range(5):
            arms = [{**ARM, "features": [mark, number, 0.0]}, {**ARM, "id": f"of {mark}"}]
            assert (await asker("PUT", "/v1/arms", {"arms": arms})).status == 200

    async def story(one: Caller, two: Caller) -> None:
        await asyncio.gather(put(one, 1.0), put(two, 2.0))
        serving = [asker.service.decider for asker in (one, two)]
        await soon(lambda: all(it.serving.catalogue == 10 for it in serving))
        found = [
            await asker.select(eligible=["new"], explore=False, id=f"by-{place}")
            for place, asker in enumerate((one, two))
        ]
        assert found[0]["scores"] == found[1]["scores"]
        assert [len(it.serving.bandit) for it in serving] == [15, 15]

    shared.run(story, "a", "b")
    assert len(shared.changes()) == 10


def test_a_decider_that_starts_later_knows_the_arms(shared: Machines) -> None:
    async def put(one: Caller) -> None:
        await one("PUT", "/v1/arms", {"arms": [ARM]})
        await one("DELETE", "/v1/arms", {"ids": ["arm-0"]})

    async def look(two: Caller) -> None:
        assert (await two.select(eligible=["new"]))["catalogue"] == 2
        assert (await two("GET", "/v1/status")).body["arms"] == 12

    shared.run(put, "a")
    shared.run(look, "b")


def test_a_change_that_anothers_made_impossible_stops_nobody(shared: Machines) -> None:
    ids = [f"arm-{row}" for row in range(12)]

    async def story(one: Caller, two: Caller) -> None:
        await asyncio.gather(
            one("DELETE", "/v1/arms", {"ids": ids[:6]}), two("DELETE", "/v1/arms", {"ids": ids[6:]})
        )
        put = await one("PUT", "/v1/arms", {"arms": [ARM]})
        assert put.status == 200
        serving = [asker.service.decider for asker in (one, two)]
        await soon(lambda: all(it.serving.catalogue == 3 for it in serving))
        assert len({len(it.serving.bandit) for it in serving}) == 1

    shared.run(story, "a", "b")


def test_what_the_learner_publishes_reaches_all(shared: Machines) -> None:
    async def story(one: Caller, two: Caller) -> None:
        for asker in (one, two) * 3:
            made = await asker.select()
            await asker("POST", "/v1/reward", reward_of(made["decision"]))
        with shared.started("trainer", "learn", "--once") as learner:
            await asyncio.to_thread(learner.process.wait)
        await soon(lambda: one.service.version == two.service.version == 1)
        assert (await one.select())["version"] == 1

    shared.run(story, "a", "b")


# -- while the database is away


def test_selects_go_on_without_the_database(shared: Machines, own_server: LittleServer) -> None:
    async def story(one: Caller) -> None:
        with stopped(own_server):
            await away(one)
            made = await one.select(id="mine")
            assert made["degraded"]
            assert await one.select(id="mine") == made
            refused = await one("POST", "/v1/reward", reward_of("mine"))
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert (await one("PUT", "/v1/arms", {"arms": [ARM]})).status == 503
            assert (await one("GET", "/ready")).status == 200
            status = (await one("GET", "/v1/status")).body
            assert [problem["name"] for problem in status["problems"]] == ["log"]
            assert "2 of 100,000 decisions wait" in status["problems"][0]["detail"]
            metrics = (await one("GET", "/metrics")).body.decode()
            assert "fastbandit_log_unavailable 1.0" in metrics
            assert "fastbandit_spooled 2.0" in metrics
        await back(one)
        assert await one.select(id="mine") == made
        assert (await one("POST", "/v1/reward", reward_of("mine"))).body["status"] == "counted"
        metrics = (await one("GET", "/metrics")).body.decode()
        assert "fastbandit_log_unavailable 0.0" in metrics
        assert "fastbandit_spool_conflicts_total 0.0" in metrics
        assert (await one("GET", "/v1/status")).body["problems"] == []

    shared.run(story, "a")
    assert shared.decisions().count("mine") == 1


def test_selects_that_come_with_rewards_go_on_too(
    shared: Machines, own_server: LittleServer
) -> None:
    async def story(one: Caller) -> list[str]:
        first = await one.select()
        with stopped(own_server):
            await away(one)
            asked = [
                one("POST", "/v1/reward", reward_of(first["decision"]))
                if number % 3 == 0
                else one("POST", "/v1/select", {"context": CONTEXT, "id": f"d{number}"})
                for number in range(30)
            ]
            replies = await asyncio.gather(*asked)
            assert {reply.status for reply in replies[::3]} == {503}
        await back(one)
        return [reply.body["decision"] for reply in replies if reply.status == 200]

    made = shared.run(story, "a")
    assert len(made) == 20
    assert all(shared.decisions().count(id) == 1 for id in made)


def test_every_decision_is_written_once_whatever_the_server_does(
    shared: Machines, own_server: LittleServer
) -> None:
    made: list[str] = []

    async def ask(asker: Caller, mark: str) -> None:
        number = 0
        while number < 40 or not is_over:
            id = f"{mark}{number}"
            reply = await asker("POST", "/v1/select", {"context": CONTEXT, "id": id})
            made.extend([id] if reply.status == 200 else [])
            number += 1
            await asyncio.sleep(0.01)

    is_over = False

    async def story(one: Caller, two: Caller) -> None:
        nonlocal is_over
        asking = asyncio.gather(ask(one, "a"), ask(two, "b"))
        for how in (signal.SIGINT, signal.SIGKILL):
            await asyncio.sleep(0.2)
            await asyncio.to_thread(own_server.stop, how)
            await asyncio.sleep(0.2)
            await asyncio.to_thread(own_server.start)
        is_over = True
        await asking
        await asyncio.gather(back(one), back(two))

    shared.run(story, "a", "b")
    assert len(made) >= 80
    assert sorted(shared.decisions()) == sorted(made)


def test_a_full_spool_is_said_clearly(shared: Machines, own_server: LittleServer) -> None:
    async def story(one: Caller) -> None:
        with stopped(own_server):
            await away(one)
            await one.select()
            refused = await one("POST", "/v1/select", {"context": CONTEXT})
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert "The spool of decisions may hold 2" in refused.body["detail"]
            assert (await one("GET", "/ready")).status == 503
        await back(one)
        await soon(lambda: one.service.writer.problem is None)
        assert not (await one.select())["degraded"]

    shared.run(story, "a", log__spool_events=2)


def test_a_snapshot_that_comes_while_the_log_is_away_is_loaded_later(
    shared: Machines, own_server: LittleServer
) -> None:
    async def story(one: Caller) -> None:
        with stopped(own_server):
            await away(one)
            pointer = one.service.follower.store.pointer
            pointer.write_text(pointer.read_text())  # as if another had just been fetched
            await asyncio.sleep(1.0)
            assert one.service.metrics.failed_swaps == 0
        await soon(lambda: one.service.metrics.swaps == 2)

    shared.run(story, "a")


def test_without_the_store_a_decider_starts_with_what_it_has(shared: Machines) -> None:
    async def start(one: Caller) -> None:
        assert (await one.select())["version"] == 0

    shared.run(start, "a")
    (shared.folder / "shared").rename(shared.folder / "gone")
    shutil.rmtree(shared.folder / "a" / "snapshots" / "000000" / "frozen")

    async def look(one: Caller) -> None:
        (problem,) = (await one("GET", "/v1/status")).body["problems"]
        assert problem["name"] == "snapshots"
        (shared.folder / "gone").rename(shared.folder / "shared")
        await soon(lambda: one.service.version == 0)
        await soon(lambda: not one.service.problems())

    shared.run(look, "a")


# -- processes


def test_a_killed_decider_replays_its_spool_at_its_next_start(
    shared: Machines, own_server: LittleServer
) -> None:
    with shared.started("a", "serve", "--no-learner") as one:
        url = address(one)
        ids = [select(url) for _ in range(2)]
        with stopped(own_server):
            ids += [one.wait_for(lambda: select(url, is_degraded=True)) for _ in range(3)]
            one.process.send_signal(signal.SIGKILL)
            one.process.wait()
    assert set(ids[2:]).isdisjoint(shared.decisions())

    with shared.started("a", "serve", "--no-learner") as one:
        address(one)
        until(lambda: not (one.folder / "spool.db").exists())

    assert all(shared.decisions().count(id) == 1 for id in ids)


def test_the_password_is_told_nowhere(shared: Machines, own_server: LittleServer) -> None:
    secret = "s3cr3t@word"
    told = shared.url.replace("fastbandit@", "fastbandit:s3cr3t%40word@")
    machines = Machines(told, shared.folder)
    heard = []
    with machines.started("a", "serve") as one:
        url = address(one)
        one.wait_for(lambda: one.state().get("state") == "waiting")
        with stopped(own_server):
            one.wait_for(lambda: select(url, is_degraded=True))
            heard.append(httpx.post(f"{url}/v1/reward", json=reward_of("x")).text)
            heard.append(httpx.get(f"{url}/v1/status").text)
            one.wait_for(lambda: one.state().get("state") == "failed")
            heard.append(json.dumps(one.state()))
        heard.append(one.said)
    for command in (["config", "show"], ["config", "show", "--json"], ["snapshots"]):
        with machines.started("a", *command) as shown:
            shown.process.wait()
            heard.append(shown.said)
    wrong = told.replace("postgresql:", "pg:")
    with Machines(wrong, shared.folder).started("a", "snapshots") as refused:
        assert refused.process.wait() == 2
        heard.append(refused.said)

    assert all(heard)
    assert "fastbandit:…@" in heard[4]
    for text in heard:
        assert "s3cr3t" not in text, text
    assert secret not in hide_password(f"postgresql://user:{secret}@host/db")


def select(url: str, *, is_degraded: bool = False) -> str:
    """Select over HTTP; give the id, if the answer is as wanted."""
    answer = httpx.post(f"{url}/v1/select", json={"context": CONTEXT}, timeout=30.0)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return str(told["decision"]) if told["degraded"] is is_degraded else ""
