"""A service that declares nothing: contexts and arms of any names, no catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.learning.learner import Learner
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.serving.schema_guard import SchemaGuard, arm_schema_of
from fastbandit.settings.service import Config
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_named import ask_for, events_of
from tests.serving.little_service import Caller, Reply, config_in, run

CONTEXT = {"user": {"age": 31, "city": "Oslo"}, "device": {"mobile": True}}
TOPICS = ("news", "sport", "music")


def offered(price: float = 1.0) -> list[dict[str, Any]]:
    return [
        {"id": topic, "features": {"item": {"topic": topic, "price": price}}} for topic in TOPICS
    ]


def open_config(folder: Path, **settings: Any) -> Config:
    folder.mkdir(parents=True, exist_ok=True)
    preset = folder / "short.toml"
    preset.write_text("format = 1\n[training.reward]\niterations = 1000\nbatch = 64\n")
    base = {"context__features": 0, "context__any_names": True, "arms__any_names": True}
    short = {"learn__fresh": 150, "learn__min_quality": 0.0, "select__preset": str(preset)}
    short |= {"select__search": "exhaustive"}
    return config_in(folder, **{**base, **short, **settings})


@pytest.fixture(scope="session")
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("open")
    publish_initial_version(open_config(folder), SnapshotStore(folder / "snapshots"))
    return folder


@pytest.fixture
def service(open_folder: Path, tmp_path: Path) -> Config:
    (tmp_path / "snapshots").symlink_to(open_folder / "snapshots")
    return open_config(tmp_path)


def test_the_learner_makes_a_first_version_without_arms(tmp_path: Path) -> None:
    step = Learner(open_config(tmp_path)).step()

    assert (step.did, step.version) == ("published", 0)


def test_the_first_request_is_answered_uniformly(service: Config) -> None:
    async def story(ask: Caller) -> list[Any]:
        body = {"context": CONTEXT, "arms": offered(), "propensity": True}
        replies = [await ask("POST", "/v1/select", body) for _ in range(60)]
        assert {reply.status for reply in replies} == {200}, replies[0]
        assert {round(reply.body["propensities"][0], 6) for reply in replies} == {0.333333}
        return [reply.body["arms"][0] for reply in replies]

    assert set(run(service, story)) == set(TOPICS)


def test_a_request_without_arms_is_told_that_there_is_no_catalogue(service: Config) -> None:
    reply = ask_for(service, context=CONTEXT)

    assert reply.status == 422, reply
    assert "no catalogue" in str(reply.body)


def test_the_log_holds_arms_with_their_ids(service: Config) -> None:
    ask_for(service, context=CONTEXT, arms=[*offered()[:1], {"id": "bare"}])

    (made,) = events_of(service)
    assert [arm.features for arm in made.offered] == [
        {"id": "news", "item": {"topic": "news", "price": 1.0}},
        {"id": "bare"},
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"context": {f"n{n}": 1 for n in range(10_000)}, "arms": offered()}, "context"),
        ({"context": {}, "arms": [{"id": "a", "features": {"x": "y" * 3, "deep":
          {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}}}}]}, "arms[0].features"),
    ],
)  # fmt: skip
def test_more_than_a_service_can_bear_is_rejected(
    service: Config, body: dict[str, Any], field: str
) -> None:
    reply = ask_for(service, **body)

    assert reply.status == 422, reply
    assert field in str(reply.body)


def play(config: Config, rounds: int, *, seed: int = 0, explore: bool = True) -> float:
    """Ask and reward: in Oslo sport pays, elsewhere music; return the mean reward."""
    rng = np.random.default_rng(seed)

    async def story(ask: Caller) -> float:
        total = 0.0
        for n in range(rounds):
            city = ["Oslo", "Rome"][n % 2]
            body = {"context": {"user": {"city": city}}, "arms": offered(float(rng.random()))}
            terms = {"id": f"{seed}-{n}", "explore": explore}
            made = await ask("POST", "/v1/select", body | terms)
            assert made.status == 200, made
            wanted = "sport" if city == "Oslo" else "music"
            value = float(made.body["arms"][0] == wanted)
            told = {"decision": made.body["decision"], "value": value}
            assert (await ask("POST", "/v1/reward", told)).status == 200
            total += value
        return total / rounds

    return run(config, story)


def test_it_learns_and_its_schemas_grow(tmp_path: Path) -> None:
    config = open_config(tmp_path)
    learner = Learner(config)
    learner.step()
    play(config, 200)

    while learner.step().did == "published":
        pass

    found = SnapshotStore(tmp_path / "snapshots").current()
    assert found is not None
    assert found.version >= 1
    bandit = FrozenBandit.load(found.frozen)
    assert {"user.city=Oslo", "user.city=Rome"} <= set(bandit.parts[2].schema.others.levels)
    arms = arm_schema_of(bandit).others
    assert {"item.topic=sport", "id=sport"} <= set(arms.levels)
    assert arms.numbers == ("item.price",)
    SchemaGuard(config).check(bandit, found)
    assert play(config, 60, seed=1, explore=False) > 0.9


def test_a_catalogue_may_come_later(service: Config) -> None:
    async def story(ask: Caller) -> Reply:
        features = {"item": {"topic": "news", "price": 1.0}}
        added = await ask("PUT", "/v1/arms", {"arms": [{"id": "own", "features": features}]})
        assert added.status == 200, added
        assert added.body["arms"] == 1
        return await ask("POST", "/v1/select", {"context": CONTEXT})

    reply = run(service, story)

    assert (reply.status, reply.body["arms"]) == (200, ["own"])
