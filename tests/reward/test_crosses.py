"""Products of context and arm are found where they tell rewards, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit
from fastbandit.reward.crosses import Crosses
from fastbandit.reward.hierarchical_model import HierarchicalReward

ROUNDS, ARMS = 3_000, vectors_of(1_000, 6, seed=4)
RNG = np.random.default_rng(0)
CONTEXTS, TAKEN = RNG.normal(size=(ROUNDS, 5)), ARMS[RNG.integers(0, 1_000, ROUNDS)]
ALIKE = CONTEXTS[:, 0] * TAKEN[:, 1] - CONTEXTS[:, 2] * TAKEN[:, 3]


def crosses_of(rewards: np.ndarray, *, is_binary: bool) -> Crosses | None:
    return Crosses.find(
        CONTEXTS,
        TAKEN,
        rewards,
        np.ones(ROUNDS),
        size=8,
        catalogue=ARMS,
        precisions=(1.0, 3.0),
        is_binary=is_binary,
    )


def said_by(crosses: Crosses) -> np.ndarray:
    """What all pairs say together."""
    pairs = slice(0, crosses.count)
    products = (CONTEXTS @ crosses.contexts[:, pairs]) * (TAKEN @ crosses.arms[:, pairs])
    return np.asarray(products.sum(axis=1))


def test_pairs_say_what_products_add_to_noisy_rewards() -> None:
    rewards = TAKEN[:, 0] + ALIKE + 3.0 * RNG.normal(size=ROUNDS)

    crosses = crosses_of(rewards, is_binary=False)

    assert crosses is not None
    assert np.corrcoef(said_by(crosses), ALIKE)[0, 1] > 0.9


def test_pairs_of_rare_clicks_are_about_as_large_as_in_log_odds() -> None:
    odds = 0.5 * ALIKE - 3.0
    clicks = (RNG.random(ROUNDS) < 1.0 / (1.0 + np.exp(-odds))).astype(float)

    crosses = crosses_of(clicks, is_binary=True)

    assert crosses is not None
    said = said_by(crosses)
    assert np.corrcoef(said, ALIKE)[0, 1] > 0.8
    assert 0.2 < said @ ALIKE / (ALIKE @ ALIKE) < 0.6


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_in_noise(seed: int) -> None:
    noise = np.random.default_rng([seed, 1]).normal(size=ROUNDS)

    assert crosses_of(TAKEN[:, 0] + noise, is_binary=False) is None


@pytest.mark.parametrize("clicks", [0.0, 1.0])
def test_rewards_that_are_all_alike_have_no_pairs(clicks: float) -> None:
    assert crosses_of(np.full(ROUNDS, clicks), is_binary=True) is None


def test_a_bandit_learns_whom_an_arm_suits_and_decides_alike_when_frozen() -> None:
    bandit = Bandit(arms=ARMS, context=5, seed=1, progress=False)
    rows = np.random.default_rng(2).integers(0, 1_000, ROUNDS)
    worth = CONTEXTS[:, 0] * ARMS[rows, 1] - CONTEXTS[:, 2] * ARMS[rows, 3]
    clicks = (RNG.random(ROUNDS) < 1.0 / (1.0 + np.exp(3.0 - worth))).astype(float)

    bandit.update(contexts=CONTEXTS, arms=rows, rewards=clicks)

    model = bandit.policy.model
    assert isinstance(model, HierarchicalReward)
    assert model.linear is not None
    assert model.linear.network.product
    assert model.current is model.linear
    new = np.random.default_rng(3).normal(size=(200, 5))
    best = (new[:, :1] * ARMS[:, 1] - new[:, 2:3] * ARMS[:, 3]).max(axis=1)
    chosen = bandit.select(new, explore=False).rows[:, 0]
    assert (new[:, 0] * ARMS[chosen, 1] - new[:, 2] * ARMS[chosen, 3]).sum() > 0.8 * best.sum()
    drawn = bandit.select(new)
    frozen = bandit.freeze().select(new, seeds=drawn.seeds)
    assert (frozen.rows == drawn.rows).mean() > 0.98
