"""Clients of Personalizer declare nothing: namespaces of any names are taken, within limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import Config
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_named import events_of
from tests.serving.personalizer.little_personalizer import NEW, Client, tell
from tests.serving.test_open_service import open_config

CONTEXT = [{"user": {"profile": "latinx", "age": 31}}, {"environment": {"monthOfYear": 8}}]
ACTIONS = [
    {
        "id": "sport",
        "features": [{"length": 35, "director": "CarlSagan"}, {"by": {"age": "30-35"}}],
    },
    {"id": "music", "features": [{"length": 20, "director": "CarlSagan"}]},
    {"id": "bare", "features": []},
]


@pytest.fixture(scope="module")
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("open")
    publish_initial_version(open_config(folder), SnapshotStore(folder / "snapshots"))
    return folder


@pytest.fixture
def service(open_folder: Path, tmp_path: Path) -> Config:
    (tmp_path / "snapshots").symlink_to(open_folder / "snapshots")
    return open_config(tmp_path, personalizer__enabled=True, reward__kind="real")


def nested(depth: int) -> Any:
    return {"deeper": nested(depth - 1)} if depth else 1


def test_namespaces_come_together_in_one_context(service: Config) -> None:
    async def story(client: Client) -> None:
        reply = await client("POST", "/rank", {"contextFeatures": CONTEXT, "actions": ACTIONS})
        assert reply.status == 201, reply
        bare = await client("POST", "/rank", {"actions": ACTIONS})
        assert bare.status == 201, bare

    tell(service, story)
    made, bare = events_of(service)
    assert made.context == {**CONTEXT[0], **CONTEXT[1]}
    assert bare.context == {}


@pytest.mark.parametrize(
    ("context", "target"),
    [
        ([{f"n{n}": 1 for n in range(10_000)}], "context"),
        ([{"deep": nested(10)}], "context"),
    ],
)
def test_more_than_a_service_can_bear_is_rejected(
    service: Config, context: list[Any], target: str
) -> None:
    async def story(client: Client) -> None:
        reply = await client("POST", "/rank", {"contextFeatures": context, "actions": ACTIONS})
        error = reply.body["error"]
        assert (reply.status, error["code"]) == (400, "InvalidRankRequest"), reply
        assert error["target"].startswith(target)

    tell(service, story, base=NEW)
    assert events_of(service) == []


def test_it_learns_what_pays(tmp_path: Path) -> None:
    config = open_config(tmp_path, personalizer__enabled=True, reward__kind="real")
    learner = Learner(config)
    learner.step()

    async def play(client: Client, rounds: int = 150) -> float:
        total = 0.0
        for number in range(rounds):
            city = ["Oslo", "Rome"][number % 2]
            body = {"contextFeatures": [{"user": {"city": city}}], "actions": ACTIONS}
            found = (await client("POST", "/rank", body)).body
            value = float(found["rewardActionId"] == ("sport" if city == "Oslo" else "music"))
            await client("POST", f"/events/{found['eventId']}/reward", {"value": value})
            total += value
        return total / rounds

    before = tell(config, play)
    while learner.step().did == "published":
        pass
    after = tell(config, play)

    assert before < 0.5
    assert after > 0.7
