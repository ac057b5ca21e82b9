"""The hierarchical logistic regression: most likely weights, and draws about them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from little_sets import ARMS, stripes
from scipy.sparse import csr_matrix

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.types import Inputs
from lab.bakeoff.logistic import HierarchicalLogistic, most_likely
from lab.experiments.environment import Tabled


def test_the_slope_of_the_penalised_likelihood_is_zero(numbers: np.random.Generator) -> None:
    design = numbers.normal(size=(60, 3))
    rewards = (numbers.random(60) < 0.4).astype(np.float64)
    penalties = np.array([1.0, 2.0, 0.5])

    weights = most_likely(csr_matrix(design), rewards, penalties, start=np.zeros(3))

    probability = 1 / (1 + np.exp(-design @ weights))
    np.testing.assert_allclose(
        design.T @ (probability - rewards) + penalties * weights, 0, atol=1e-3
    )


def learned(environment: Tabled, **settings: Any) -> tuple[HierarchicalLogistic, Any]:
    """Return a policy that learned the reward of every arm in every round."""
    agent = HierarchicalLogistic(environment, seed=0, **settings)
    contexts = environment.contexts(0, environment.rounds)
    for arm in range(environment.size):
        rows = np.full(environment.rounds, arm)
        agent.update(contexts=contexts, arms=rows, rewards=environment.observed(0, rows))
    return agent, contexts


def test_arms_by_ids_alone_learn_which_context_is_theirs() -> None:
    agent, contexts = learned(stripes())

    right = (agent.select(contexts) == contexts.argmax(axis=1)).mean()

    assert right > 0.9


def test_an_untried_arm_is_known_by_its_features(numbers: np.random.Generator) -> None:
    features = np.linspace(-1, 1, 30, dtype=np.float32)[:, None]
    probabilities = np.tile((0.5 + 0.5 * features[:, 0]).astype(np.float32), (300, 1))
    contexts = Inputs(dense=numbers.normal(size=(300, 1)).astype(np.float32))
    environment = Tabled("featured", Dense(1), contexts, probabilities, arms=features)
    agent = HierarchicalLogistic(environment, seed=0, width=0.0)
    tried = numbers.integers(20, size=300)
    agent.update(
        contexts=environment.contexts(0, 300), arms=tried, rewards=environment.observed(0, tried)
    )

    rows = agent.select(environment.contexts(0, 100))

    assert (rows >= 20).mean() > 0.9


def test_a_wider_draw_changes_more_choices() -> None:
    narrow, contexts = learned(stripes(), width=0.0)
    wide, _ = learned(stripes(), width=20.0)

    assert (narrow.select(contexts) == contexts.argmax(axis=1)).all()
    assert len(np.unique(wide.select(contexts[:1].repeat(50, axis=0)))) == ARMS


def test_rewards_that_are_no_probabilities_are_refused() -> None:
    environment = Tabled(
        "real", Dense(1), Inputs(dense=np.ones((2, 1), dtype=np.float32)), np.ones((2, 2)),
        reward="real",
    )  # fmt: skip

    with pytest.raises(SettingError, match="rewards of 0 and 1"):
        HierarchicalLogistic(environment, seed=0)
