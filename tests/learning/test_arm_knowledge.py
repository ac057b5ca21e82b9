"""Arms of any names are learned by ids where these come again, else by features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit import Bandit, FrozenBandit, Schema
from fastbandit.learning import arm_knowledge
from fastbandit.learning.arm_knowledge import FEWEST, better_known, known_by, plan_by
from fastbandit.learning.joining import Interaction
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.runtime.offered_arms import Offer
from fastbandit.settings.service import SelectConfig

CONTEXTS = np.random.default_rng(0).normal(size=(400, 3))


def open_bandit(features: list[dict[str, Any]]) -> Bandit:
    arms = Schema.open(slots=8, hashed=4).grown(features).table(features)
    ids = [f"a{n}" for n in range(len(features))]
    return Bandit(arms=arms, ids=ids, context=3, reward="real", seed=1, progress=False)


def interactions(rewards: np.ndarray, arms: np.ndarray) -> list[Interaction]:
    both = zip(CONTEXTS.tolist(), arms.tolist(), rewards.tolist(), strict=True)
    return [Interaction(n, n, 0, x, f"a{arm}", r) for n, (x, arm, r) in enumerate(both)]


def by_id(count: int = 3) -> tuple[Bandit, list[Interaction]]:
    """Return arms whose features say nothing, each with weights of its own."""
    rng = np.random.default_rng(1)
    arms = rng.integers(count, size=400)
    weights = 2.0 * rng.normal(size=(count, 3))
    rewards = (CONTEXTS * weights[arms]).sum(1) + 0.1 * rng.normal(size=400)
    return open_bandit([{"kind": "same"}] * count), interactions(rewards, arms)


def by_features() -> tuple[Bandit, list[Interaction]]:
    """Return arms that hardly come twice, and earn by their features."""
    rng = np.random.default_rng(2)
    slopes = rng.normal(size=390)
    arms = rng.permutation(390)[np.arange(400) % 390]
    rewards = slopes[arms] + 0.1 * rng.normal(size=400)
    return open_bandit([{"slope": float(one)} for one in slopes]), interactions(rewards, arms)


def test_arms_that_come_again_get_weights_of_their_own() -> None:
    bandit, fresh = by_id()

    found = better_known(bandit, fresh, SelectConfig())

    assert (known_by(bandit), known_by(found)) == ("features", "ids")
    assert isinstance(found.policy.model, EffectsReward)


def test_arms_that_hardly_come_twice_are_known_by_their_features() -> None:
    bandit, fresh = by_features()

    assert better_known(bandit, fresh, SelectConfig()) is bandit


def test_what_was_learned_is_learned_again_the_other_way(tmp_path: Path) -> None:
    bandit, fresh = by_id()
    bandit.update(
        contexts=CONTEXTS[:50],
        arms=[one.arm for one in fresh[:50]],
        rewards=[one.reward for one in fresh[:50]],
    )

    found = better_known(bandit, fresh[50:], SelectConfig())
    assert found.version == 0
    found.update(
        contexts=CONTEXTS[50:],
        arms=[one.arm for one in fresh[50:]],
        rewards=[one.reward for one in fresh[50:]],
        version=2,
    )
    found.save(tmp_path / "bandit")

    again = Bandit.load(tmp_path / "bandit")
    assert (again.version, known_by(again)) == (2, "ids")
    assert again.history is not None
    assert len(again.history) == 400
    best = again.select(CONTEXTS, explore=False).rows[:, 0]
    weights = 2.0 * _weights()
    assert (best == (CONTEXTS @ weights.T).argmax(1)).mean() > 0.9


def _weights() -> np.ndarray:
    rng = np.random.default_rng(1)
    rng.integers(3, size=400)
    return rng.normal(size=(3, 3))


def test_one_known_by_ids_may_go_back_to_features(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit, fresh = by_id()
    found = better_known(bandit, fresh, SelectConfig())
    losses = iter([np.array([1.0, 1.1, 1.2]), np.array([2.0, 2.1, 1.9])])
    monkeypatch.setattr(arm_knowledge, "_losses", lambda *given: next(losses))

    again = better_known(found, fresh, SelectConfig())

    assert known_by(again) == "features"
    assert again.blueprint.arm == bandit.blueprint.arm


@pytest.mark.parametrize(
    ("features", "known"), [([0.5, 1.5, 0.9], "ids"), ([0.1, 0.2, 0.1], "features")]
)
def test_arms_taken_often_are_known_by_ids_unless_features_are_surely_better(
    monkeypatch: pytest.MonkeyPatch, features: list[float], known: str
) -> None:
    bandit, fresh = by_id()
    losses = iter([np.array(features), np.ones(3)])
    monkeypatch.setattr(arm_knowledge, "_losses", lambda *given: next(losses))

    assert known_by(better_known(bandit, fresh, SelectConfig())) == known


def test_a_frozen_one_takes_new_arms_of_a_request() -> None:
    bandit, fresh = by_id()
    found = better_known(bandit, fresh, SelectConfig())
    found.update(
        contexts=CONTEXTS,
        arms=[one.arm for one in fresh],
        rewards=[one.reward for one in fresh],
    )
    frozen: FrozenBandit = found.freeze()

    few = frozen.offering([Offer("a1"), Offer("new", {"kind": "other"})])

    assert {one.arm for one in (few.select_one(x, seed=1) for x in CONTEXTS)} == {"a1", "new"}


@pytest.mark.parametrize(
    ("before", "now", "is_due"),
    [
        (0, FEWEST - 1, False),
        (0, FEWEST, True),
        (FEWEST, 2 * FEWEST - 1, False),
        (FEWEST, 2 * FEWEST, True),
        (2 * FEWEST, 3 * FEWEST, False),
        (3 * FEWEST, 9 * FEWEST, True),
    ],
)
def test_ways_are_compared_whenever_there_are_twice_as_many(
    before: int, now: int, is_due: bool
) -> None:
    assert arm_knowledge._is_due(before, now) is is_due


def test_declared_arms_and_too_many_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit, fresh = by_id()
    declared = Bandit(arms=np.eye(3), ids=["a0", "a1", "a2"], context=3, reward="real")
    assert better_known(declared, fresh, SelectConfig()) is declared

    monkeypatch.setattr(arm_knowledge, "MOST_IDS", 2)
    assert better_known(bandit, fresh, SelectConfig()) is bandit


def test_weights_of_outcomes_stay_what_they_are() -> None:
    plan = replace(by_id()[0].blueprint, weights=(("quality", 2.0),))

    assert plan_by(plan, SelectConfig(), by_id=True, count=3).weights == plan.weights
