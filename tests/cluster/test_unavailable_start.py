"""Deciders and learners that start while the database is unavailable, and databases that hang."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

import httpx
from machines import Machines, Started, address, soon, stopped

from lab.faults.cluster_stage import hanging
from lab.postgres_server import LittleServer
from tests.serving.little_service import CONTEXT, Caller

NEW = {"id": "new", "features": [0.1, 0.2, 0.3], "columns": {"price": 1.0, "colour": "red"}}
OTHERS = {**NEW, "id": "of another"}
LIMIT = 5.0
"""Seconds: a select waits for a database that hangs for two, and this machine may be busy."""


async def nothing(*askers: Caller) -> None:
    """Let services start and stop."""


async def change(one: Caller) -> None:
    """Put an arm in, and take another out."""
    assert (await one("PUT", "/v1/arms", {"arms": [NEW]})).status == 200
    assert (await one("DELETE", "/v1/arms", {"ids": ["arm-0"]})).status == 200


def asked(url: str, **more: Any) -> Any:
    return httpx.post(f"{url}/v1/select", json={"context": CONTEXT, **more}, timeout=30.0).json()


def test_a_decider_that_is_killed_comes_back_without_the_database_and_keeps_to_the_arms(
    shared: Machines, own_server: LittleServer
) -> None:
    with shared.started("a", "serve", "--no-learner") as one:
        url = address(one)
        httpx.put(f"{url}/v1/arms", json={"arms": [NEW]}).raise_for_status()
        httpx.request("DELETE", f"{url}/v1/arms", json={"ids": ["arm-0"]}).raise_for_status()
        one.process.send_signal(signal.SIGKILL)
        one.process.wait()

    async def put_another(two: Caller) -> None:
        assert (await two("PUT", "/v1/arms", {"arms": [OTHERS]})).status == 200

    shared.run(put_another, "b")
    own_server.stop()
    try:
        with shared.started("a", "serve", "--no-learner") as one:
            url = address(one)
            made = [asked(url, id="chosen", eligible=["new"])]
            made += [asked(url, id=f"d{number}", k=12) for number in range(3)]
            own_server.start()
            one.wait_for(lambda: asked(url, eligible=["of another"]).get("catalogue") == 3)
            one.wait_for(lambda: not (one.folder / "spool.db").exists())
    finally:
        own_server.start()

    assert made[0]["arms"] == ["new"]
    assert all("arm-0" not in it["arms"] for it in made)
    assert {(it["degraded"], it["catalogue"]) for it in made} == {(True, 2)}
    ids = shared.decisions()
    assert [ids.count(it["decision"]) for it in made] == [1] * 4


def test_a_start_without_the_database_is_ready_and_tells_the_ailment(
    shared: Machines, own_server: LittleServer
) -> None:
    shared.run(nothing, "a")

    async def story(one: Caller) -> None:
        assert (await one("GET", "/ready")).status == 200
        assert (await one.select(id="mine"))["degraded"]
        (problem,) = (await one("GET", "/v1/status")).body["problems"]
        assert problem["name"] == "log"
        assert "cannot be reached" in problem["detail"]
        own_server.start()
        await soon(lambda: not one.service.problems())
        assert not (await one.select())["degraded"]

    with stopped(own_server):
        shared.run(story, "a")
    assert shared.decisions().count("mine") == 1


def test_without_a_snapshot_a_start_waits_for_the_database(
    shared: Machines, own_server: LittleServer
) -> None:
    async def story(one: Caller) -> None:
        reply = await one("GET", "/ready")
        assert reply.status == 503
        (reason,) = one.service.reasons()
        assert "database of the log is unavailable" in reason.detail
        own_server.start()
        await soon(lambda: not one.service.reasons())
        assert (await one.select())["version"] == 0

    with stopped(own_server):
        shared.run(story, "a")


def test_without_the_changes_of_the_arms_a_start_waits_for_the_database(
    shared: Machines, own_server: LittleServer
) -> None:
    shared.run(change, "a")
    (shared.folder / "a" / "changes.jsonl").unlink()

    async def story(one: Caller) -> None:
        assert (await one("GET", "/ready")).status == 503
        own_server.start()
        await soon(lambda: not one.service.reasons())
        assert (await one.select(eligible=["new"]))["catalogue"] == 2

    with stopped(own_server):
        shared.run(story, "a")


def test_a_learner_that_starts_without_the_database_waits_for_it(
    machines: Machines, own_server: LittleServer
) -> None:
    def failed(learner: Started) -> bool:
        return "cannot be reached" in str(learner.state().get("error", ""))

    with stopped(own_server), machines.started("learner", "learn") as learner:
        assert learner.wait_for(lambda: failed(learner))
        own_server.start()
        current = learner.folder / "snapshots" / "current.json"
        assert learner.wait_for(current.exists)


# -- a database that hangs


def test_no_select_waits_long_for_a_database_that_hangs(
    shared: Machines, own_server: LittleServer
) -> None:
    took: list[float] = []

    async def ask(one: Caller, number: int) -> str:
        began = time.monotonic()
        made = await one.select(id=f"d{number}")
        took.append(time.monotonic() - began)
        return str(made["decision"])

    async def story(one: Caller) -> list[str]:
        ids = [await ask(one, 0)]
        with hanging(own_server):
            while len(ids) < 40 and sum(took) < 4 * LIMIT:
                ids.append(await ask(one, len(ids)))
                await asyncio.sleep(0.1)
        spooled = one.service.spooled
        assert spooled is not None
        await soon(lambda: spooled.unavailable is None and not spooled.waiting)
        return ids

    ids = shared.run(story, "a")

    assert max(took) < LIMIT
    assert len(ids) == 40
    assert sorted(shared.decisions()) == sorted(ids)


def test_a_decider_starts_while_the_database_hangs(
    shared: Machines, own_server: LittleServer
) -> None:
    shared.run(change, "a")

    async def story(one: Caller) -> None:
        made = await one.select(eligible=["new"])
        assert (made["degraded"], made["catalogue"]) == (True, 2)

    with hanging(own_server):
        shared.run(story, "a")
