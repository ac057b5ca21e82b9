"""Models of the reward find what there is to find, and never saw what they speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from little_log import uniform_log

from fastbandit.evaluation import CrossFit, LoggedRounds, SparsePolicy
from fastbandit.evaluation.expected import expect
from fastbandit.evaluation.reward_models import best_strength


def linear_log(count: int = 2_000, noise: float = 0.1) -> tuple[LoggedRounds, Any]:
    """Make rewards that are a product of context and arm, and the table of their means."""
    rng = np.random.default_rng(5)
    contexts, vectors = rng.normal(size=(count, 3)), rng.normal(size=(12, 2))
    means = 1.0 + contexts @ rng.normal(size=(3, 2)) @ vectors.T
    chosen = rng.integers(0, 12, count)
    rewards = means[np.arange(count), chosen] + noise * rng.normal(size=count)
    log = LoggedRounds(contexts, chosen, rewards, np.full(count, 1 / 12), vectors=vectors)
    return log, means


def test_ridge_finds_products_of_context_and_arm() -> None:
    log, means = linear_log()

    found = expect(log, SparsePolicy.fixed(log, 4), CrossFit())

    assert found.of_policy == pytest.approx(means[:, 4], abs=0.05)
    assert found.logged == pytest.approx(means[np.arange(len(log)), log.chosen], abs=0.1)


@pytest.mark.parametrize("model", ["ridge", "logistic"])
def test_arms_without_vectors_have_worths_of_their_own(model: str) -> None:
    log = uniform_log(4_000)

    best, other = (expect(log, SparsePolicy.fixed(log, arm), CrossFit(model)) for arm in (3, 5))

    assert best.of_policy.mean() == pytest.approx(0.9, abs=0.05)
    assert other.of_policy.mean() == pytest.approx(0.2, abs=0.05)


def test_a_logistic_model_stays_within_0_and_1() -> None:
    log = uniform_log(500, vectors=np.random.default_rng(1).normal(size=(8, 3)))

    found = expect(log, SparsePolicy.uniform(log), CrossFit("logistic")).of_policy

    assert 0.0 <= found.min() <= found.max() <= 1.0


def test_many_features_are_brought_to_fewer_axes() -> None:
    rng = np.random.default_rng(0)
    log = uniform_log(contexts=rng.normal(size=(400, 50)), vectors=rng.normal(size=(8, 60)))

    found = expect(log, SparsePolicy.uniform(log), CrossFit())

    assert np.isfinite(found.of_policy).all()


def test_noise_alone_is_penalised_most() -> None:
    rng = np.random.default_rng(0)
    columns = np.column_stack([np.ones(500), rng.normal(size=(500, 5))])
    noise, signal = rng.normal(size=500), columns @ np.arange(6.0)

    strengths = [
        best_strength(columns.T @ columns, columns.T @ rewards, squares=float(rewards @ rewards))
        for rewards in (noise, signal)
    ]

    assert strengths[0] > 100.0 * strengths[1]
