"""Clusters of arms, and how likely a log took each."""

from __future__ import annotations

import numpy as np
import pytest
from little_log import uniform_log

from fastbandit.evaluation import LoggedRounds
from fastbandit.evaluation.clusters import clusters_of, logging_shares


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
