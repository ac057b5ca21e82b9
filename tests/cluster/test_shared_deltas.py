"""Deltas on a shared log: one trainer publishes them, all deciders apply them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from little_versions import publish
from machines import Machines, soon, stopped

from fastbandit.learning.deltas import Deltas
from fastbandit.learning.learner import Learner
from fastbandit.storage.deltas import Delta
from fastbandit.storage.registered_store import RegisteredStore, SnapshotRegistry
from fastbandit.storage.snapshot_version import Snapshot
from lab.postgres_server import LittleServer
from tests.serving.little_service import ARMS, Caller

Machine = Callable[[str], RegisteredStore]


@pytest.fixture
def machine(url: str, schema: str, tmp_path: Path) -> Iterator[Machine]:
    """Makes the store of a machine, by name; all share one registry."""
    made: list[RegisteredStore] = []

    def make(name: str) -> RegisteredStore:
        registry = SnapshotRegistry(url, f"file://{tmp_path}/shared", schema=schema)
        made.append(RegisteredStore(tmp_path / name, registry))
        return made[-1]

    yield make
    for store in made:
        store.close()


def delta_of(snapshot: Snapshot, *, number: int = 1, seq: int = 10) -> Delta:
    row, one = np.zeros(1, np.int32), np.ones(1, np.float32)
    return Delta(snapshot.version, snapshot.hash, number, seq, number, row, one, one)


def number_at(store: RegisteredStore, snapshot: Snapshot) -> int | None:
    """Give the number of the delta that a machine has."""
    store.follow_delta()
    found = store.deltas.read(snapshot.version, snapshot.hash)
    return found and found.number


def test_what_one_machine_publishes_another_applies(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    first = publish(one)
    two.pull()
    assert number_at(two, first) is None

    for number in (1, 2):
        one.publish_delta(delta_of(first, number=number, seq=10 * number))
        assert number_at(two, first) == number
    newest = one.newest_delta(first)
    assert newest is not None
    assert newest.number == 2


def test_one_that_knows_less_does_not_replace_the_newer(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    first = publish(one)
    two.pull()
    one.publish_delta(delta_of(first, number=5, seq=50))

    two.publish_delta(delta_of(first, number=1, seq=40))  # of a learner that lost its lease

    assert number_at(two, first) == 5


def test_one_of_a_version_that_is_not_served_is_dropped(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    first = publish(one)
    one.publish_delta(delta_of(first))
    second = publish(one)
    two.pull()

    one.publish_delta(delta_of(first, number=2, seq=20))

    assert number_at(two, second) is None
    one.publish_delta(delta_of(second, seq=5))
    assert number_at(two, second) == 1


# -- deciders


def test_all_deciders_follow_and_carry_it_over(shared: Machines, own_server: LittleServer) -> None:
    more = {"learn__fresh": 30, "learn__delta_seconds": 0.0}
    trainer = shared.config("trainer", **more)

    async def story(one: Caller, two: Caller) -> np.ndarray:
        await tell(one, 30)
        learner = Learner(trainer)
        assert await asyncio.to_thread(learner.acquire_lease)
        await asyncio.to_thread(learner.start)
        assert (await asyncio.to_thread(learner.step)).version == 1
        await soon(lambda: (one.service.version, two.service.version) == (1, 1))
        await tell(two, 10)
        deltas = Deltas(trainer, known=learner.bandit_of)
        made = await asyncio.to_thread(deltas.step)
        assert made is not None
        for asker in (one, two):
            follower = asker.service.follower
            await soon(lambda f=follower: f.delta is not None)
            np.testing.assert_array_equal(constants(asker)[made.rows], made.means)
        deltas.close()
        learner._store.close()
        assert learner._data.log is not None
        learner._data.log.close()
        return constants(one)

    wanted = shared.run(story, "a", "b", **more)

    async def again(one: Caller) -> None:
        assert one.service.follower.delta is not None
        np.testing.assert_array_equal(constants(one), wanted)

    shared.run(again, "a", **more)
    with stopped(own_server):  # what was fetched before the outage is here
        shared.run(again, "a", **more)


def test_a_damaged_one_is_ignored_and_counted_once(shared: Machines) -> None:
    async def story(one: Caller) -> None:
        with psycopg.connect(shared.url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO fastbandit.deltas (version, seq, content) VALUES (0, 1, 'x')"
            )
        await soon(lambda: one.service.metrics.ignored_deltas == 1)
        await asyncio.sleep(1.2)
        assert one.service.metrics.ignored_deltas == 1
        assert (await one.select())["version"] == 0
        assert not one.service.problems()

    shared.run(story, "a")


async def tell(asker: Caller, count: int) -> None:
    for number in range(count):
        made = await asker.select(eligible=[f"arm-{number % ARMS}"])
        value = float(number % 2 == 0)
        await asker("POST", "/v1/reward", {"decision": made["decision"], "value": value})


def constants(asker: Caller) -> np.ndarray:
    serving = asker.service.decider.serving
    assert serving is not None
    return serving.bandit.parts[0].own_constants.copy()
