"""Disjoint regressions: exact posteriors, however they are stored, and draws of their width."""

from __future__ import annotations

from typing import Any

import numpy as np
from little_sets import Oracle

from fastbandit.features.kinds import Dense
from lab.bakeoff.ridge import ArmPosterior, Disjoint


def trained(numbers: np.random.Generator, **settings: Any) -> tuple[Disjoint, Any]:
    """Return a policy that learned the rewards of known weights, and these weights."""
    weights = numbers.normal(size=(3, 4))
    contexts = numbers.normal(size=(3000, 4)).astype(np.float32)
    arms = numbers.integers(3, size=3000)
    rewards = (contexts * weights[arms]).sum(axis=1)
    agent = Disjoint(3, Dense(4), 0, **({"width": 0.1, "is_drawn": True} | settings))
    agent.update(contexts=contexts, arms=arms, rewards=rewards)
    return agent, weights


def test_known_weights_are_recovered(numbers: np.random.Generator) -> None:
    agent, weights = trained(numbers)

    for arm in range(3):
        np.testing.assert_allclose(agent.posteriors[arm].mean[:4], weights[arm], atol=0.05)


def test_the_arm_with_the_highest_reward_is_chosen(numbers: np.random.Generator) -> None:
    agent, weights = trained(numbers)
    contexts = numbers.normal(size=(200, 4)).astype(np.float32)

    rows = agent.select(contexts)

    worth = contexts @ weights.T
    gap = worth.max(axis=1) - worth[np.arange(200), rows]
    assert gap.mean() < 0.01


def test_few_rounds_and_few_columns_give_the_same_posterior(numbers: np.random.Generator) -> None:
    vectors, rewards = numbers.normal(size=(5, 5)), numbers.normal(size=5)
    asked = numbers.normal(size=(7, 5))
    squares = (asked**2).sum(axis=1)

    by_columns = ArmPosterior.of(vectors, rewards, ridge=0.7)
    by_rounds = ArmPosterior.of(np.pad(vectors, ((0, 0), (0, 1))), rewards, ridge=0.7)

    assert by_columns.rounds is None
    assert by_rounds.rounds is not None
    np.testing.assert_allclose(by_rounds.mean[:5], by_columns.mean, atol=1e-9)
    np.testing.assert_allclose(
        by_rounds.variances(np.pad(asked, ((0, 0), (0, 1))), squares, ridge=0.7),
        by_columns.variances(asked, squares, ridge=0.7),
        atol=1e-9,
    )


def test_the_variance_is_that_of_the_formula(numbers: np.random.Generator) -> None:
    vectors, rewards = numbers.normal(size=(9, 3)), numbers.normal(size=9)
    asked = numbers.normal(size=(4, 3))
    covariance = np.linalg.inv(vectors.T @ vectors + 2.0 * np.eye(3))

    posterior = ArmPosterior.of(vectors, rewards, ridge=2.0)

    found = posterior.variances(asked, (asked**2).sum(axis=1), ridge=2.0)
    np.testing.assert_allclose(found, np.einsum("bi,ij,bj->b", asked, covariance, asked))


def test_untried_arms_share_the_decisions_of_an_upper_bound() -> None:
    agent = Disjoint(50, Dense(1), 0, width=1.0, is_drawn=False)
    agent.update(contexts=np.ones((1, 1)), arms=[0], rewards=[0.0])

    rows = agent.select(np.ones((200, 1), dtype=np.float32))

    assert 0 not in rows
    assert len(np.unique(rows)) > 40


def test_draws_are_as_wide_as_their_setting() -> None:
    contexts = np.ones((2000, 1), dtype=np.float32)
    interactions = {"contexts": contexts[:2], "arms": [0, 1], "rewards": [1.0, 0.0]}
    narrow, wide = (Disjoint(2, Dense(1), 0, width=w, is_drawn=True) for w in (0.01, 100.0))

    for agent in (narrow, wide):
        agent.update(**interactions)

    assert (narrow.select(contexts) == 0).all()
    assert 0.4 < (wide.select(contexts) == 0).mean() < 0.6


def test_the_same_seed_decides_the_same() -> None:
    contexts = np.eye(4, dtype=np.float32)
    choices = []
    for _ in range(2):
        agent = Disjoint(4, Dense(4), 3, width=0.5, is_drawn=True)
        agent.update(contexts=contexts, arms=Oracle().select(contexts), rewards=np.ones(4))
        choices.append(agent.select(np.repeat(contexts, 10, axis=0)))

    np.testing.assert_array_equal(*choices)
