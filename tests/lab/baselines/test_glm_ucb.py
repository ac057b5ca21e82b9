"""GLM-UCB: weights of the highest likelihood, and a bonus after the link."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbandit.baselines import LinUCB
from lab.baselines import GLMUCB
from lab.experiments.datasets.synthetic import SyntheticRounds

WORLD = SyntheticRounds("h1", 3, 40, noise=0.3, seed=1)


def trained(
    make: type[Any], world: SyntheticRounds = WORLD, *, batches: int = 1, **more: Any
) -> Any:
    bandit = make(arms=world.arms, context=world.dim, **more)
    for first in range(0, 60 * batches, 60):
        contexts, rows = world.contexts(first, 60), np.arange(first, first + 60) * 7 % world.size
        rewards: Any = world.observed(first, rows)
        rewards = rewards > 0 if more.get("reward") == "binary" else rewards
        bandit.update(contexts=contexts, arms=rows, rewards=rewards)
    return bandit


def test_binary_weights_stand_where_the_penalised_likelihood_is_flat() -> None:
    model = trained(GLMUCB, reward="binary", batches=2, ridge=2.0)._model
    pairs = np.einsum("nc,nd->ncd", model.contexts, WORLD.arms[model.rows]).reshape(120, -1)
    chances = 1 / (1 + np.exp(-pairs @ model.weights.reshape(-1)))

    slope = pairs.T @ (model.rewards - chances) - 2.0 * model.weights.reshape(-1)

    assert np.abs(slope).max() < 1e-4


def test_real_rewards_make_it_lin_ucb() -> None:
    one, two = trained(GLMUCB, width=0.5), trained(LinUCB, width=0.5)
    contexts = WORLD.contexts(500, 20)

    assert np.allclose(one.select(contexts).scores, two.select(contexts).scores, atol=1e-5)


def test_the_bonus_is_added_after_the_link() -> None:
    wide, none = (trained(GLMUCB, reward="binary", width=width) for width in (0.7, 0.0))
    contexts = np.asarray(WORLD.contexts(500, 5), dtype=np.float64)

    means, bounds = (
        none._model.means(contexts),
        wide._score(contexts, np.zeros(5, np.uint64), explore=True),
    )

    assert ((means > 0) & (means < 1)).all()
    assert np.allclose(bounds - means, 0.7 * wide._model.stds(contexts))
