"""Over routes of Personalizer a model is reset, and logs are deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastbandit.bandit import Bandit
from fastbandit.learning.arm_knowledge import known_by
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import NEW, Client, tell
from tests.serving.personalizer.little_process import served, wait_for
from tests.serving.test_open_service import open_config

ACTIONS = [
    {"id": "sport", "features": [{"length": 35}]},
    {"id": "music", "features": [{"length": 20}]},
]


def config_of(folder: Path, **more: Any) -> Config:
    settings = {"personalizer__enabled": True, "reward__kind": "real", "learn__fresh": 100}
    return open_config(folder, **settings | more)


def playing(best: str, *, rounds: int = 120) -> Callable[[Client], Awaitable[float]]:
    """Return a story in which one action alone is rewarded; it tells how often that came."""

    async def play(client: Client) -> float:
        total = 0.0
        for _ in range(rounds):
            body = {"contextFeatures": [{"user": {"city": "Oslo"}}], "actions": ACTIONS}
            found = (await client("POST", "/rank", body)).body
            value = float(found["rewardActionId"] == best)
            await client("POST", f"/events/{found['eventId']}/reward", {"value": value})
            total += value
        return total / rounds

    return play


def learn_all(config: Config) -> int:
    """Let a learner of a new process make what is due; return the version that serves then."""
    learner = Learner(config)
    learner.start()
    while (step := learner.step()).did == "published":
        pass
    assert step.version is not None
    return step.version


def test_after_a_reset_it_learns_anew_and_may_be_rolled_back(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    store = SnapshotStore(tmp_path / "snapshots")
    learn_all(config)
    tell(config, playing("sport"))
    before = learn_all(config)
    assert tell(config, playing("sport", rounds=40)) > 0.7
    logged = len(events_of(config))

    async def reset(client: Client) -> None:
        reply = await client("DELETE", "/model")
        assert (reply.status, reply.body) == (204, b"")
        made = await asyncio.to_thread(learn_all, config)
        deadline = time.monotonic() + 20
        while client.service.version != made and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        assert client.service.version == made > before

    tell(config, reset, base=NEW)
    assert len(events_of(config)) >= logged  # what was acknowledged stays
    current = store.current()
    assert current is not None
    assert known_by(Bandit.load(current.bandit)) == "features"
    assert 0.3 < tell(config, playing("music")) < 0.7  # also after a restart: any may come

    learn_all(config)
    assert tell(config, playing("music", rounds=40)) > 0.7
    latest = store.current()
    assert latest is not None
    assert latest.cut.interactions <= 120
    store.rollback(before)
    assert tell(config, playing("sport", rounds=40)) > 0.7


def test_the_learner_of_a_service_makes_the_version(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    learn_all(config)
    tell(config, playing("sport", rounds=2))
    tell(config, lambda client: client("DELETE", "/model"))  # and no learner runs

    store = SnapshotStore(tmp_path / "snapshots")
    with served(config, tmp_path):
        wait_for(lambda: store.versions() == [0, 1], tmp_path / "said.txt")
    current = store.current()
    assert current is not None
    assert current.notes["begins"] == current.cut.seq > 0


def test_services_that_share_a_log_say_why_not(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    learn_all(config)

    async def story(client: Client) -> None:
        own = client.service.config
        log, snapshots = (replace(one, url="postgresql://x") for one in (own.log, own.snapshots))
        client.service.config = replace(own, log=log, snapshots=snapshots)
        for path in ("/model", "/logs"):
            reply = await client("DELETE", path)
            assert (reply.status, reply.body["error"]["code"]) == (501, "OperationNotAllowed")

    tell(config, story, base=NEW)
    assert (tmp_path / LOG_FILE).exists()
    assert not [*tmp_path.glob("model_reset.json"), *tmp_path.glob("log_deletion.json")]


def test_logs_are_deleted_while_the_service_runs(tmp_path: Path) -> None:
    config = config_of(tmp_path, reward__wait_seconds=1.0)
    learn_all(config)
    tell(config, playing("sport"))
    version = learn_all(config)
    logged = len(events_of(config))

    async def delete(client: Client) -> int:
        await asyncio.sleep(1.5)  # no reward is waited for any more
        assert (await client("DELETE", "/logs")).status == 204
        deadline = time.monotonic() + 30
        while len(events_of(config)) > logged / 2 and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        return len(events_of(config))

    assert tell(config, delete, base=NEW) < logged / 2
    assert learn_all(config) == version
    assert tell(config, playing("sport", rounds=40)) > 0.7
