"""What the leading learner says reaches every decider; who stands still leads no more."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from machines import Machines, soon
from test_learners import write_rewards

from fastbandit.learning.learner import Learner
from fastbandit.storage.registered_store import RegisteredStore
from tests.serving.little_service import Caller

Machine = Callable[[str], RegisteredStore]


@pytest.fixture(autouse=True)
def quick_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastbandit.storage.snapshot_registry._BEAT_SECONDS", 0.02)


def in_time(holds: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + 20
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(holds())


def test_another_machine_reads_it_by_its_own_clock(
    machine: Machine, url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machine("one"), machine("two")
    told = {"state": "training", "lag_seconds": 7.0, "measured_at": 1e12}
    assert one.acquire_lease(lambda: told)
    assert in_time(two.leader)
    one.registry._stop_beating()
    time.sleep(0.2)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema}.lease SET reported_at = now() - interval '60 s'")

    found = two.leader()

    assert found["lag_seconds"] == 7.0
    assert 60.0 <= time.monotonic() - found["measured_at"] < 90.0


def test_who_has_nothing_to_say_leaves_what_another_said(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    assert one.acquire_lease(lambda: {"state": "training"})
    one.close()  # at the latest, it is written then

    assert in_time(two.acquire_lease)
    time.sleep(0.2)

    assert two.leader() == {"state": "training"}


def test_the_lease_of_who_should_not_lead_goes_to_another(
    machine: Machine, url: str, schema: str
) -> None:
    one, two = machine("one"), machine("two")
    said: list[dict[str, Any] | None] = [{"state": "training"}]
    assert one.acquire_lease(lambda: said[0])
    assert not two.acquire_lease()

    said[0] = None
    time.sleep(0.2)
    with psycopg.connect(url, autocommit=True) as connection:  # as ten seconds later
        connection.execute(f"UPDATE {schema}.lease SET until = now() - interval '1 s'")
    assert in_time(two.acquire_lease)


def test_deciders_say_that_the_learner_is_behind(
    shared: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.serving.learner_process._LEAST_LAG", 0.1)
    begun, goes_on = threading.Event(), threading.Event()

    def train(bandit: Any, *more: Any) -> Any:
        begun.set()
        goes_on.wait()
        raise InterruptedError

    learner = Learner(shared.config("learner"), train=train)

    def lead() -> None:
        assert learner.acquire_lease()
        learner.start()
        with pytest.raises(InterruptedError):
            learner.step()

    async def story(one: Caller, two: Caller) -> None:
        write_rewards(shared, 0, 4)
        training = asyncio.create_task(asyncio.to_thread(lead))
        try:
            await soon(begun.is_set)
            for decider in (one, two):
                await soon(lambda s=decider.service: s.problems())
                status = (await decider("GET", "/v1/status")).body
                assert status["learner"]["state"] == "training"
                assert status["learner"]["lag_seconds"] > 0.1
                assert [problem["name"] for problem in status["problems"]] == ["learner behind"]
                lines = (await decider("GET", "/metrics")).body.decode().splitlines()
                gauges = dict(line.split() for line in lines if "#" not in line and "{" not in line)
                assert float(gauges["fastbandit_learner_behind"]) == 1.0
                assert float(gauges["fastbandit_learner_lag_seconds"]) > 0.1
        finally:
            goes_on.set()
            await training
            learner.close()

    shared.run(story, "one", "two")
