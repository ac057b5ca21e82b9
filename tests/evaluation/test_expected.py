"""What a model expects of a policy, cross-fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from little_log import uniform_log

from fastbandit.evaluation import CrossFit, LoggedRounds, SparsePolicy
from fastbandit.evaluation.expected import expect


def linear_log(count: int = 2_000, noise: float = 0.1) -> tuple[LoggedRounds, Any]:
    """Make rewards that are a product of context and arm, and the table of their means."""
    rng = np.random.default_rng(5)
    contexts, vectors = rng.normal(size=(count, 3)), rng.normal(size=(12, 2))
    means = 1.0 + contexts @ rng.normal(size=(3, 2)) @ vectors.T
    chosen = rng.integers(0, 12, count)
    rewards = means[np.arange(count), chosen] + noise * rng.normal(size=count)
    log = LoggedRounds(contexts, chosen, rewards, np.full(count, 1 / 12), vectors=vectors)
    return log, means


def test_the_mean_over_all_arms_is_exact_for_ridge() -> None:
    log, means = linear_log()

    found = expect(log, SparsePolicy.uniform(log), CrossFit())

    assert found.of_policy == pytest.approx(means.mean(axis=1), abs=0.05)


def test_a_model_never_saw_the_rounds_it_speaks_of() -> None:
    noise = np.random.default_rng(0).normal(size=300)
    log = uniform_log(300, arms=150, rewards=noise)

    found = expect(log, SparsePolicy.uniform(log), CrossFit(folds=3, strength=1e-3))

    assert np.corrcoef(found.logged, noise)[0, 1] < 0.2


def test_the_mean_over_many_arms_is_drawn() -> None:
    rng = np.random.default_rng(0)
    log = uniform_log(arms=2_000, chosen=rng.integers(0, 2_000, 400))

    found = expect(log, SparsePolicy.uniform(log), lambda contexts, rows: rows / 2_000)

    assert found.of_policy.mean() == pytest.approx(0.5, abs=0.02)
