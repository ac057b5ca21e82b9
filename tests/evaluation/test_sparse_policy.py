"""A sparse policy is looked up without a table of rounds and arms."""

from __future__ import annotations

import numpy as np
import pytest
from little_log import CHOSEN, EVERY, TARGET, little_policy, uniform_log

from fastbandit.evaluation import SparsePolicy, evaluate


def test_the_probability_of_the_logged_arm_is_found() -> None:
    found = little_policy().probability_of(np.array(CHOSEN))

    assert found == pytest.approx([0.5, 0.8, 0.5, 1.0])


def test_epsilon_is_shared_by_all_arms() -> None:
    policy = SparsePolicy([[2], [2]], [[0.4], [0.4]], arms=3, epsilon=0.6)

    assert policy.probability_of(np.array([2, 0])) == pytest.approx([0.6, 0.2])


def test_a_row_that_stands_there_twice_adds_up() -> None:
    policy = SparsePolicy([[1, 1, 0]], [[0.25, 0.25, 0.5]], arms=3)

    assert policy.probability_of(np.array([1])) == pytest.approx([0.5])


def test_whole_probabilities_and_a_rest_are_the_same_policy() -> None:
    policy = SparsePolicy.with_rest([[2, -1]], [[0.7, 0.0]], arms=4, rest=[0.1])

    assert policy.probability_of(np.array([2])) == pytest.approx([0.7])
    assert policy.probability_of(np.array([0])) == pytest.approx([0.1])


def test_the_probability_of_a_cluster_is_that_of_its_arms() -> None:
    clusters = np.array([0, 0, 1])
    policy = SparsePolicy(EVERY, 0.7 * TARGET, arms=3, epsilon=0.3)

    found = policy.probability_within(clusters, np.array(CHOSEN), np.bincount(clusters))

    assert found == pytest.approx(0.7 * np.array([0.8, 0.9, 0.5, 1.0]) + [0.2, 0.2, 0.1, 0.2])


def test_padding_belongs_to_no_cluster() -> None:
    policy = SparsePolicy([[0, -1]], [[1.0, 0.0]], arms=3)

    found = policy.probability_within(np.array([0, 1, 1]), np.array([1]), np.array([1, 2]))

    assert found == pytest.approx([0.0])


@pytest.mark.parametrize("model", ["ridge", "logistic"])
def test_an_epsilon_of_one_is_worth_what_all_arms_as_candidates_are(model: str) -> None:
    log = uniform_log(vectors=np.random.default_rng(3).normal(size=(8, 3)))
    rows = np.tile(np.arange(8), (len(log), 1))
    dense = SparsePolicy(rows, np.full(rows.shape, 1 / 8), arms=8)

    ours, theirs = (evaluate(log, one, model=model) for one in ("uniform", dense))

    for one, other in zip(ours.estimates, theirs.estimates, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-5)
