"""Decisions: of what serves now, by the seed of their id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.learning.initial_version import publish_initial_version
from fastbandit.serving.schemas import Reason
from fastbandit.settings.service import Config
from fastbandit.storage.snapshot_store import SnapshotStore
from tests.serving.little_service import ARMS, CONTEXT, Caller, config_in, run


@pytest.fixture
def plain(tmp_path: Path) -> Config:
    """A service whose arms have no columns."""
    arms = tmp_path / "arms.npy"
    np.save(arms, np.random.default_rng(0).normal(size=(ARMS, 2)))
    config = config_in(tmp_path, arms__file=str(arms))
    publish_initial_version(config, SnapshotStore(tmp_path / "snapshots"))
    return config


def test_before_anything_is_learned_every_arm_is_equally_likely(config: Config) -> None:
    async def story(ask: Caller) -> None:
        answers = [await ask.select(propensity=True) for _ in range(60)]
        assert [one["propensities"][0] for one in answers] == pytest.approx([1 / ARMS] * 60)
        assert len({answer["arms"][0] for answer in answers}) > ARMS / 2

    run(config, story)


def test_the_same_id_decides_alike_alone_and_in_a_batch(config: Config, tmp_path: Path) -> None:
    async def alone(ask: Caller) -> Any:
        return (await ask.select(id="visit-1"))["arms"]

    async def batch(ask: Caller) -> Any:
        told = {"contexts": [CONTEXT], "ids": ["visit-1"]}
        return (await ask("POST", "/v1/select", told)).body["decisions"][0]["arms"]

    first = run(config, alone)
    (tmp_path / "events.db").unlink()
    assert run(config, batch) == first


@pytest.mark.parametrize(
    ("eligible", "may_be"),
    [
        (["arm-3"], {"arm-3"}),
        ({"price": {"<": 2}}, {"arm-0", "arm-1"}),
        ({"colour": "red", "price": {">=": 9}}, {"arm-9", "arm-11"}),
    ],
)
def test_only_eligible_arms_are_chosen(config: Config, eligible: Any, may_be: set[str]) -> None:
    async def story(ask: Caller) -> None:
        chosen = {(await ask.select(eligible=eligible))["arms"][0] for _ in range(10)}
        assert chosen <= may_be

    run(config, story)


def test_without_columns_a_predicate_names_the_setting(plain: Config) -> None:
    async def story(ask: Caller) -> None:
        told = {"context": CONTEXT, "eligible": {"price": {"<=": 10}}}
        reply = await ask("POST", "/v1/select", told)
        assert (reply.status, reply.body["field"]) == (422, "eligible")
        assert "arms.columns" in reply.body["fix"]
        arm = {"id": "new", "features": [0.1, 0.2], "columns": {"price": 9}}
        reply = await ask("PUT", "/v1/arms", {"arms": [arm]})
        assert reply.status == 422
        assert "arms.columns" in reply.body["fix"]

    run(plain, story)


def test_publish_replaces_what_serves_at_once(config: Config) -> None:
    async def story(ask: Caller) -> None:
        decider = ask.service.decider
        before = decider.serving
        assert before is not None
        reason = Reason("snapshot", "It is old.", "Roll back.")
        decider.publish(before.bandit, catalogue=7, problems=[reason])
        decider.publish(before.bandit, catalogue=8)
        after = decider.serving
        assert after is not None
        assert (before.catalogue, after.catalogue) == (0, 8)
        assert after.problems == (reason,)
        answer = await ask.select()
        assert (answer["catalogue"], answer["degraded"]) == (8, True)
        decider.publish(before.bandit, catalogue=8, problems=[])
        assert not (await ask.select())["degraded"]

    run(config, story)


def test_eligible_ids_that_no_arm_has_are_dropped_and_counted(config: Config) -> None:
    async def story(ask: Caller) -> None:
        told = {"context": CONTEXT, "eligible": ["arm-3", "gone", "older"], "id": "visit"}
        first = (await ask("POST", "/v1/select", told)).body
        assert (first["arms"], first["dropped"]) == (["arm-3"], 2)
        assert (await ask("POST", "/v1/select", told)).body == first
        await ask("PUT", "/v1/arms", {"arms": [{"id": "gone", "features": [0.1, 0.2, 0.3]}]})
        again = (await ask("POST", "/v1/select", told)).body
        assert (again["arms"], again["dropped"]) == (["arm-3"], 2)

    run(config, story)


def test_an_answer_to_known_ids_says_nothing_of_dropped_ones(config: Config) -> None:
    async def story(ask: Caller) -> None:
        assert "dropped" not in await ask.select(eligible=["arm-3"])

    run(config, story)


@pytest.mark.parametrize("more", [{"strict": True}, {"strict": True, "k": 2}])
def test_a_strict_request_with_an_unknown_id_is_rejected(
    config: Config, more: dict[str, Any]
) -> None:
    async def story(ask: Caller) -> None:
        told = {"context": CONTEXT, "eligible": ["arm-3", "gone"], **more}
        reply = await ask("POST", "/v1/select", told)
        assert (reply.status, reply.body["field"]) == (422, "eligible")
        assert "'gone'" in reply.body["detail"]

    run(config, story)
