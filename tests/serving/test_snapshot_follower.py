"""What serves follows deltas: the newest of its snapshot, also after a restart."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.learning.deltas import Deltas
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage.deltas import Delta
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot
from tests.serving.little_service import ARMS, Caller, begin, run

_SHORT = """format = 1
[training.reward]
iterations = 20
batch = 16
[training.generator]
iterations = 10
batch = 16
pairs = 32
sample = 16
"""


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Config]:
    """A data folder whose service has learned one version."""
    folder = tmp_path_factory.mktemp("learned") / "data"
    folder.mkdir()
    (folder / "short.toml").write_text(_SHORT)
    floors = {"learn__min_quality": 0.0, "learn__held_out": 0.0}
    preset = str(folder / "short.toml")
    config = begin(folder, select__preset=preset, learn__fresh=30, learn__growth=0.0, **floors)

    async def story(requester: Caller) -> None:
        await tell(requester, 30)

    run(config, story)
    assert Learner(config).step().version == 1
    return folder, config


@pytest.fixture
def config(learned: tuple[Path, Config], tmp_path: Path) -> Config:
    """The same in a folder of the test's own."""
    from dataclasses import replace

    shutil.copytree(learned[0], tmp_path / "data")
    server = replace(learned[1].server, data_dir=str(tmp_path / "data"))
    return replace(learned[1], server=server)


async def tell(requester: Caller, count: int) -> None:
    """Decide, and reward only arms whose number is even."""
    for number in range(count):
        made = await requester.select(eligible=[f"arm-{number % ARMS}"])
        value = float(number % 2 == 0)
        await requester("POST", "/v1/reward", {"decision": made["decision"], "value": value})


async def soon(holds: Callable[[], Any]) -> None:
    for _ in range(300):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it does not hold in time")


def constants(requester: Caller) -> Any:
    serving = requester.service.decider.serving
    assert serving is not None
    return serving.bandit.parts[0].own_constants.copy()


def store_of(config: Config) -> tuple[SnapshotStore, Snapshot]:
    store = SnapshotStore(Path(config.server.data_dir) / "snapshots")
    snapshot = store.current()
    assert snapshot is not None
    return store, snapshot


def made_delta(config: Config, mean: float = 0.5, **more: Any) -> Delta:
    """Make a delta of the first arm."""
    snapshot = store_of(config)[1]
    told = {"version": snapshot.version, "snapshot": snapshot.hash, "number": 1, "seq": 100, **more}
    rows, means = np.zeros(1, np.int32), np.full(1, mean, np.float32)
    return Delta(**told, learned=1, rows=rows, means=means, deviations=np.ones(1, np.float32))


def test_a_reward_changes_what_decides_without_a_version(config: Config) -> None:
    async def story(requester: Caller) -> None:
        before, follower = constants(requester), requester.service.follower
        assert follower.delta is None
        await tell(requester, 10)
        made = await asyncio.to_thread(Deltas(config).step)
        assert made is not None
        await soon(lambda: follower.delta is not None)

        assert requester.service.version == 1
        after = constants(requester)
        np.testing.assert_array_equal(after[made.rows], made.means)
        assert (after != before).any()
        metrics = (await requester("GET", "/metrics")).body.decode()
        assert "fastbandit_delta 1.0" in metrics
        assert f"fastbandit_delta_events {float(made.seq)}" in metrics
        assert "fastbandit_deltas_total 1.0" in metrics

    run(config, story)


def test_a_restart_carries_it_over(config: Config) -> None:
    store, _ = store_of(config)
    store.publish_delta(made_delta(config, 0.75))

    async def story(requester: Caller) -> None:
        assert constants(requester)[0] == 0.75

    run(config, story)


@pytest.mark.parametrize("kind", ["damaged", "empty", "another snapshot", "rows that are not"])
def test_one_that_cannot_be_trusted_is_ignored_and_counted(config: Config, kind: str) -> None:
    store, snapshot = store_of(config)
    path = store.deltas.path(snapshot.version)
    path.parent.mkdir()

    async def story(requester: Caller) -> None:
        before, follower = constants(requester), requester.service.follower
        if kind in ("damaged", "empty"):
            path.write_bytes(b"" if kind == "empty" else made_delta(config).to_bytes()[:-1])
        elif kind == "another snapshot":
            store.publish_delta(made_delta(config, snapshot="ab" * 32))
        else:
            rows = np.array([ARMS + 5], np.int32)
            wrong = made_delta(config)
            store.publish_delta(Delta(**{**vars(wrong), "rows": rows}))
        await soon(lambda: requester.service.metrics.ignored_deltas == 1)
        await asyncio.sleep(0.6)

        assert requester.service.metrics.ignored_deltas == 1
        assert follower.delta is None
        np.testing.assert_array_equal(constants(requester), before)
        assert (await requester.select())["version"] == 1
        metrics = (await requester("GET", "/metrics")).body.decode()
        assert "fastbandit_ignored_deltas_total 1.0" in metrics
        assert not requester.service.problems()

        store.publish_delta(made_delta(config, 0.25))
        await soon(lambda: follower.delta is not None)
        assert constants(requester)[0] == 0.25

    run(config, story)


def test_one_of_another_version_is_not_looked_at(config: Config) -> None:
    store, _ = store_of(config)
    store.publish_delta(made_delta(config, version=7))

    async def story(requester: Caller) -> None:
        assert requester.service.follower.delta is None
        assert requester.service.metrics.ignored_deltas == 0
        assert (await requester.select())["version"] == 1

    run(config, story)


def test_one_that_knows_less_does_not_replace_the_newer(config: Config) -> None:
    store, _ = store_of(config)

    async def story(requester: Caller) -> None:
        follower = requester.service.follower
        store.publish_delta(made_delta(config, 0.5, seq=100))
        await soon(lambda: follower.delta is not None)
        store.publish_delta(made_delta(config, 0.25, seq=99, number=2))
        await asyncio.sleep(0.6)
        assert constants(requester)[0] == 0.5

    run(config, story)


def test_a_new_version_comes_with_its_first_delta(config: Config) -> None:
    async def story(requester: Caller) -> None:
        follower, deltas, learner = requester.service.follower, Deltas(config), Learner(config)
        await tell(requester, 29)
        await asyncio.to_thread(deltas.step)
        await soon(lambda: follower.delta is not None)
        await tell(requester, 5)
        await asyncio.to_thread(learner.step)
        await asyncio.sleep(0.6)
        assert requester.service.version == 1  # a delta of the next one is awaited

        await asyncio.to_thread(deltas.step)
        await soon(lambda: requester.service.version == 2)
        assert follower.delta is not None
        assert follower.delta.version == 2

    run(config, story)


def test_a_new_version_leaves_the_old_delta_behind(config: Config) -> None:
    async def story(requester: Caller) -> None:
        follower, deltas = requester.service.follower, Deltas(config)
        await tell(requester, 30)
        await asyncio.to_thread(deltas.step)
        await soon(lambda: follower.delta is not None)
        assert (await asyncio.to_thread(Learner(config).step)).version == 2
        await soon(lambda: requester.service.version == 2)
        assert follower.delta is None
        await tell(requester, 3)
        await asyncio.to_thread(deltas.step)
        await soon(lambda: follower.delta is not None)
        assert follower.delta.version == 2
        assert requester.service.metrics.ignored_deltas == 0

    run(config, story)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("part", ["bandit", "frozen"])
def test_an_older_version_stands_in_for_one_with_a_flipped_bit(config: Config, part: str) -> None:
    store, newest = store_of(config)
    flip(next((newest.folder / part).glob("*.safetensors")))

    async def story(requester: Caller) -> None:
        assert requester.service.version == 0
        made = await requester.select()
        status = await requester("GET", "/v1/status")
        (problem,) = [one for one in status.body["problems"] if one["name"] == "snapshot"]

        assert made["degraded"]
        assert "SHA-256" in problem["detail"]
        assert (await requester("GET", "/ready")).status == 200
        assert requester.service.metrics.failed_swaps == 1

    run(config, story)
    assert store.versions() == [0]
    assert (store.folder / "damaged-000001").is_dir()
    assert store.next_version() == 2


@pytest.mark.parametrize("content", [None, b""])
def test_where_the_pointer_is_lost_the_newest_version_serves_and_says_so(
    config: Config, content: bytes | None
) -> None:
    store, _ = store_of(config)
    store.pointer.unlink()
    if content is not None:
        store.pointer.write_bytes(content)

    async def story(requester: Caller) -> None:
        assert requester.service.version == 1
        assert (await requester.select())["degraded"]
        status = await requester("GET", "/v1/status")
        (problem,) = [one for one in status.body["problems"] if one["name"] == "snapshot"]
        assert "current.json was missing or damaged" in problem["detail"]

        await asyncio.to_thread(store.rollback)
        await soon(lambda: requester.service.follower.problem is None)
        assert requester.service.version == 1

    run(config, story)


def test_a_learner_whose_pointer_is_lost_makes_no_first_version(config: Config) -> None:
    store, newest = store_of(config)
    learner = Learner(config)
    learner.start()
    store.pointer.unlink()

    assert learner.step().version == newest.version
    assert [one.version for one in store.list()] == [0, 1]


def test_one_that_is_damaged_as_it_is_published_does_not_end_what_serves(config: Config) -> None:
    store, newest = store_of(config)

    async def story(requester: Caller) -> None:
        with store.drafting() as draft:
            for part in ("bandit", "frozen"):
                shutil.copytree(newest.folder / part, draft / part)
            damaged = store.publish(draft, {}, version=2, parent=newest, cut=newest.cut)
        flip(next(damaged.frozen.glob("*.safetensors")))
        await soon(lambda: requester.service.follower.problem is not None)

        assert requester.service.version == 1
        assert (await requester.select())["degraded"]

    run(config, story)


def test_a_learner_goes_on_from_the_one_that_stands_in(config: Config) -> None:
    store, newest = store_of(config)
    flip(next(newest.bandit.glob("*.safetensors")))

    step = Learner(config).step()

    assert step.version == 2
    current = store.current()
    assert current is not None
    assert (current.version, current.parent, current.fell_back) == (2, 0, "")
    assert (store.folder / "damaged-000001.json").exists()
