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


MANY, DEEP = {f"n{n}": 1 for n in range(10_000)}, {"deep": nested(10)}
COUNT, DEPTH = "at most 1,000 features", "nested at most 8 deep"
REWARD, ACTIVATE = "/events/one/reward", "/events/one/activate"
BAD: dict[str, tuple[str, Any, int, str | None, str]] = {
    "10,000 features": ("/rank", ([MANY], ACTIONS), 400, "contextFeatures", COUNT),
    "10,000 features of an action": (
        "/rank",
        (CONTEXT, [{"id": "a", "features": [MANY]}]),
        400,
        "actions[0].features",
        COUNT,
    ),
    "nested ten deep": ("/rank", ([DEEP], ACTIONS), 400, "contextFeatures", DEPTH),
    "nested ten deep in an action": (
        "/rank",
        (CONTEXT, [*ACTIONS, {"id": "a", "features": [DEEP]}]),
        400,
        "actions[3].features",
        DEPTH,
    ),
    "an id twice": ("/rank", (CONTEXT, [*ACTIONS, ACTIONS[0]]), 400, "actions[3].id", "own"),
    "no actions": ("/rank", (CONTEXT, []), 400, "actions", "length >= 1"),
    "an unknown event": ("/events/never/reward", {"value": 1}, 204, None, ""),
    "activated twice": (ACTIVATE, None, 204, None, ""),
}


@pytest.mark.parametrize("named", BAD)
def test_a_bad_request_is_answered_as_documented_and_nothing_is_lost(
    service: Config, named: str
) -> None:
    path, sent, status, target, said = BAD[named]
    if isinstance(sent, tuple):
        sent = {"contextFeatures": sent[0], "actions": sent[1]}

    async def story(client: Client) -> None:
        body = {"contextFeatures": CONTEXT, "actions": ACTIONS, "eventId": "one"}
        first = await client("POST", "/rank", body | {"deferActivation": True})
        assert (await client("POST", ACTIVATE)).status == 204
        reply = await client("POST", path, sent)
        assert reply.status == status, reply
        if status == 400:
            error = reply.body["error"]
            assert (error["code"], error["target"]) == ("InvalidRankRequest", target)
            assert said in error["message"]
        assert (await client("POST", REWARD, {"value": 0.5})).status == 204
        assert (await client("POST", "/rank", body | {"eventId": "two"})).status == 201
        assert first.body["eventId"] == "one"

    tell(service, story, base=NEW)
    found = [(getattr(one, "id", ""), getattr(one, "status", "")) for one in events_of(service)]
    unknown = [("", "unknown")] if named == "an unknown event" else []
    own = [("deferred one", ""), ("one", ""), *unknown, ("", "counted"), ("two", "")]
    assert found == own


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
