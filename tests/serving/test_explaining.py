"""Why a decision took its arm, and what an arm is worth, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit import Bandit
from fastbandit.learning.learner import Learner
from fastbandit.runtime.explanation import ARM
from fastbandit.serving.decider import Serving
from fastbandit.serving.explaining import Known, explain_arm, explain_decision
from fastbandit.serving.keys import KEYS_FILE, create_key
from fastbandit.serving.problems import Rejection
from fastbandit.settings.service import Config
from fastbandit.storage.events import DecisionMade
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot
from tests.serving.little_service import CONTEXT, Caller, config_in, run

RNG = np.random.default_rng(3)
CONTEXTS = RNG.normal(size=(40, 3)).astype(np.float32)
NAMES = ("age", "base", "length")
WORDS = [
    f"{first}{last}" for first in ("amb", "bir", "ced", "fjo") for last in ("er", "ch", "ar", "rd")
]


def learned(**changes: Any) -> Bandit:
    bandit = Bandit(**{"ids": [f"arm-{n}" for n in range(12)], "context": 3, "seed": 1, **changes})
    arms = bandit.select(CONTEXTS).arms
    bandit.update(contexts=CONTEXTS, arms=arms, rewards=(CONTEXTS[:, 0] > 0).astype(np.float32))
    return bandit


@pytest.fixture(scope="module")
def serving() -> Serving:
    return Serving(learned().freeze(), 0)


def made(**changes: Any) -> DecisionMade:
    given = {"id": "d", "context": CONTEXT, "arms": ["arm-1", "arm-2"], "scores": [0.0, 0.0]}
    terms = {"seed": 5, "version": 1, "catalogue": 0, "wait": 1}
    return DecisionMade(**{**given, **terms, **changes})


def test_a_decision_is_explained_under_its_draw(serving: Serving) -> None:
    found = explain_decision(serving, made(propensities=[0.25]))

    again = serving.bandit.explain(CONTEXT, "arm-1", seed=5)
    assert (found.arm, found.score, found.propensity) == ("arm-1", again.score, 0.25)
    assert sum(found.contributions.values()) == pytest.approx(found.score, abs=1e-6)


def test_a_decision_without_exploration_has_no_draw(serving: Serving) -> None:
    assert explain_decision(serving, made(explored=False)).draw == 0.0


def test_another_arm_of_the_decision_can_be_asked_for(serving: Serving) -> None:
    assert explain_decision(serving, made(), arm="arm-2").arm == "arm-2"
    with pytest.raises(Rejection, match="did not choose"):
        explain_decision(serving, made(), arm="arm-3")


def test_a_decision_by_uniform_mixing_is_marked(serving: Serving) -> None:
    assert explain_decision(serving, made(epsilon=1.0)).is_uniform
    assert not explain_decision(serving, made()).is_uniform


def test_features_have_the_names_of_the_service(serving: Serving) -> None:
    parts = explain_decision(serving, made(), known=Known(NAMES)).contributions

    assert {"age", "context: base", "length", "base"} <= set(parts)


def test_an_arm_is_explained_for_the_typical_context(serving: Serving) -> None:
    found = explain_arm(serving, "arm-3")

    assert found.decision is None
    assert found.contributions["context[0]"] == pytest.approx(0.0, abs=1e-9)


def test_an_arm_that_is_a_number_is_found() -> None:
    assert explain_arm(Serving(learned(ids=[7, 8, 9]).freeze(), 0), "8").arm == 8


def test_the_route_says_which_version_explains_and_which_decided(config: Config) -> None:
    bandit = learned().freeze()

    async def story(ask: Caller) -> None:
        id = (await ask.select())["decision"]
        ask.service.decider.publish(bandit, catalogue=0)

        reply = await ask("GET", f"/v1/decisions/{id}/explanation")

        assert reply.status == 200
        assert (reply.body["version"], reply.body["decided_by_version"]) == (1, 0)
        assert reply.body["decision"] == id
        total = sum(reply.body["contributions"].values())
        assert total == pytest.approx(reply.body["score"], abs=1e-6)
        assert (await ask("GET", "/v1/arms/arm-3/explanation")).body["arm"] == "arm-3"
        counted = ask.service.metrics.answers
        assert counted["/v1/decisions/{id}/explanation", 200] == 1

    run(config, story)


def test_what_cannot_be_explained_is_rejected(config: Config) -> None:
    async def story(ask: Caller) -> None:
        id = (await ask.select())["decision"]
        nothing_learned = await ask("GET", f"/v1/decisions/{id}/explanation")
        unknown = await ask("GET", "/v1/decisions/nobody/explanation?id=" + id)
        posted = await ask("POST", f"/v1/decisions/{id}/explanation")

        assert (nothing_learned.status, unknown.status, posted.status) == (422, 404, 405)
        assert "learned something" in nothing_learned.body["detail"]
        assert (await ask("GET", "/v1/decisions//explanation")).status == 404

    run(config, story)


def test_a_key_without_the_scope_admin_reads_no_explanation(config: Config, tmp_path: Path) -> None:
    secret, _ = create_key(tmp_path / KEYS_FILE, name="shop", scopes=["select"])

    async def story(ask: Caller) -> None:
        assert (await ask("GET", "/v1/decisions/d/explanation")).status == 401
        assert (await ask("GET", "/v1/decisions/d/explanation", key=secret)).status == 403

    run(config, story)


# -- arms with more features than an embedding has columns


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A service that learned once, of arms whose features are texts of many words."""
    folder = tmp_path_factory.mktemp("described")
    (folder / "short.toml").write_text("format = 1\n[training.reward]\niterations = 20\n")
    texts = [f"{' '.join(WORDS[n : n + 4])} and {n} others" for n in range(12)]
    rows = "".join(f"arm-{n},{text},{n % 5}\n" for n, text in enumerate(texts))
    (folder / "arms.csv").write_text("id,title,price\n" + rows)
    given = {"arms__file": str(folder / "arms.csv"), "select__preset": str(folder / "short.toml")}
    checks = {"learn__fresh": 20, "learn__min_quality": 0.0, "learn__held_out": 0.0}
    config = config_in(folder, select__search="exhaustive", **given, **checks)
    learner = Learner(config)
    learner.start()
    learner.step()

    async def story(ask: Caller) -> None:
        for n in range(24):
            made = await ask.select(eligible=[f"arm-{n % 12}"])
            told = {"decision": made["decision"], "value": n % 2}
            await ask("POST", "/v1/reward", told)

    run(config, story)
    assert learner.step().version == 1
    return config


def test_features_of_an_arm_are_explained_by_name(described: Config) -> None:
    snapshot = SnapshotStore(Path(described.server.data_dir) / "snapshots").current()
    assert snapshot is not None
    bandit = Bandit.load(snapshot.bandit)

    async def story(ask: Caller) -> None:
        found = (await ask("GET", "/v1/arms/arm-3/explanation")).body

        exact = bandit.explain(None, "arm-3").contributions
        assert {"title", "price"} <= set(found["contributions"])
        assert found["contributions"] == pytest.approx(exact, abs=1e-3)
        assert (found["title"][:4], found["runner_up_title"][:4]) != ("", "")

    run(described, story)


def test_features_of_an_arm_that_came_since_are_read_from_the_log(described: Config) -> None:
    async def story(ask: Caller) -> None:
        for title in ("first words", "other words"):
            new = {"id": "new", "features": {"title": title, "price": 2}}
            await ask("PUT", "/v1/arms", {"arms": [new]})

        found = (await ask("GET", "/v1/arms/new/explanation")).body

        assert {"title", "price"} <= set(found["contributions"])
        assert sum(found["contributions"].values()) == pytest.approx(found["score"], abs=1e-6)
        assert found["title"] == "other words"

    run(described, story)


def test_features_that_are_not_known_are_one_part(
    described: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Snapshot, "arm_features", lambda self: None)

    async def story(ask: Caller) -> None:
        found = (await ask("GET", "/v1/arms/arm-3/explanation")).body

        assert ARM in found["contributions"]

    run(described, story)
