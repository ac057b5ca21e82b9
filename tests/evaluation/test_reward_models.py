"""Models of the reward find what there is to find, and never saw what they speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from little_log import uniform_log

from fastbandit.evaluation import CrossFit, LoggedRounds, SparsePolicy
from fastbandit.evaluation.clusters import clusters_of, logging_shares
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


def test_the_mean_over_all_arms_is_exact_for_ridge() -> None:
    log, means = linear_log()

    found = expect(log, SparsePolicy.uniform(log), CrossFit())

    assert found.of_policy == pytest.approx(means.mean(axis=1), abs=0.05)


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


def test_a_model_never_saw_the_rounds_it_speaks_of() -> None:
    noise = np.random.default_rng(0).normal(size=300)
    log = uniform_log(300, arms=150, rewards=noise)

    found = expect(log, SparsePolicy.uniform(log), CrossFit(folds=3, strength=1e-3))

    assert np.corrcoef(found.logged, noise)[0, 1] < 0.2


def test_many_features_are_brought_to_fewer_axes() -> None:
    rng = np.random.default_rng(0)
    log = uniform_log(contexts=rng.normal(size=(400, 50)), vectors=rng.normal(size=(8, 60)))

    found = expect(log, SparsePolicy.uniform(log), CrossFit())

    assert np.isfinite(found.of_policy).all()


def test_the_mean_over_many_arms_is_drawn() -> None:
    rng = np.random.default_rng(0)
    log = uniform_log(arms=2_000, chosen=rng.integers(0, 2_000, 400))

    found = expect(log, SparsePolicy.uniform(log), lambda contexts, rows: rows / 2_000)

    assert found.of_policy.mean() == pytest.approx(0.5, abs=0.02)


def test_noise_alone_is_penalised_most() -> None:
    rng = np.random.default_rng(0)
    columns = np.column_stack([np.ones(500), rng.normal(size=(500, 5))])
    noise, signal = rng.normal(size=500), columns @ np.arange(6.0)

    strengths = [
        best_strength(columns.T @ columns, columns.T @ rewards, squares=float(rewards @ rewards))
        for rewards in (noise, signal)
    ]

    assert strengths[0] > 100.0 * strengths[1]


# -- clusters


def test_clusters_keep_near_arms_together() -> None:
    rng = np.random.default_rng(0)
    vectors = np.repeat([[0.0, 5.0], [5.0, 0.0]], 4, axis=0) + 0.1 * rng.normal(size=(8, 2))

    found = clusters_of(uniform_log(vectors=vectors), 2)

    assert len(set(found[:4])) == len(set(found[4:])) == 1
    assert found[0] != found[4]


def test_the_shares_of_clusters_are_their_sizes_where_the_log_is_uniform() -> None:
    log = uniform_log(arms=4)

    shares = logging_shares(log, np.array([0, 0, 0, 1]))

    assert shares == pytest.approx(np.where(log.chosen < 3, 0.75, 0.25))


def test_a_cluster_is_at_least_as_likely_as_the_arm_that_was_taken() -> None:
    rng = np.random.default_rng(0)
    propensities = rng.uniform(0.5, 1.0, 400)
    log = uniform_log(arms=8, propensities=propensities)

    assert (logging_shares(log, np.arange(8)) >= propensities).all()


def test_the_shares_of_clusters_are_learned_from_the_contexts() -> None:
    rng = np.random.default_rng(0)
    flags = rng.integers(0, 2, 5_000)
    chosen = (rng.random(5_000) < np.where(flags, 0.9, 0.2)).astype(int)
    log = LoggedRounds(flags[:, None], chosen, chosen, np.full(5_000, 0.1))

    shares = logging_shares(log, np.array([0, 1]))

    assert shares[(flags == 1) & (chosen == 1)].mean() == pytest.approx(0.9, abs=0.02)
    assert shares[(flags == 0) & (chosen == 1)].mean() == pytest.approx(0.2, abs=0.02)
