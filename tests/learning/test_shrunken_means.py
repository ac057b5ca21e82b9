"""Means of arms, shrunken towards the mean of all."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.learning.shrunken_means import OTHERS, ShrunkenMeans

RNG = np.random.default_rng(3)


def test_arms_that_are_alike_have_nearly_the_mean_of_all() -> None:
    rows = RNG.integers(50, size=5_000)
    rewards = (RNG.random(5_000) < 0.3).astype(np.float64)
    found = ShrunkenMeans.of(rows, rewards)

    assert found.strength > 100
    assert np.abs(found.predicted(np.arange(50)) - rewards.mean()).max() < 0.1


def test_arms_that_differ_keep_their_own_means() -> None:
    rates = RNG.random(50)
    rows = RNG.integers(50, size=50_000)
    rewards = (RNG.random(50_000) < rates[rows]).astype(np.float64)
    found = ShrunkenMeans.of(rows, rewards)

    assert found.strength < 10
    assert np.abs(found.predicted(np.arange(50)) - rates).max() < 0.06


def test_an_arm_without_rewards_has_the_mean_of_all() -> None:
    found = ShrunkenMeans.of(np.array([1, 1, 3]), np.array([0.0, 1.0, 1.0]))

    assert found.predicted(np.array([0, 2, 9])) == pytest.approx([2 / 3] * 3)


def test_arms_of_the_same_record_have_the_same_posterior() -> None:
    found = ShrunkenMeans.of(np.array([4, 5, 6, 7]), np.array([0.0, 0.0, 1.0, 0.0]))
    rows, means, deviations = found.posterior(is_binary=True)

    assert rows.tolist() == [OTHERS, 4, 5, 6, 7]
    assert means[1] == means[2] == means[4] < means[0] < means[3]
    assert deviations[1] < deviations[0]


@pytest.mark.parametrize("is_binary", [True, False])
def test_rewards_that_are_all_alike_have_a_posterior(is_binary: bool) -> None:
    _, means, deviations = ShrunkenMeans.of(np.array([1, 2]), np.zeros(2)).posterior(
        is_binary=is_binary
    )

    assert np.isfinite(means).all()
    assert (deviations > 0).all()
