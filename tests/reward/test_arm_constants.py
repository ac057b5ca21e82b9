"""Constants of arms have the posterior of their prior, and a width that rewards decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fastbandit.reward.arm_constants import PRIOR, ArmConstants


def constants(counts: Any, rewards: Any, *, noise: float | None = None) -> ArmConstants:
    counts, rewards = np.asarray(counts, float), np.asarray(rewards, float)
    none = np.zeros(0, np.int64)
    return ArmConstants(counts, rewards, np.zeros(len(counts)), none, 0.5, noise)


def test_gaussian_constants_have_the_posterior_of_a_known_prior_and_noise() -> None:
    means, deviations = constants([4, 0], [6.0, 0.0], noise=2.0).posterior()

    assert means[0] == pytest.approx((6.0 / 2) / (4 / 2 + 4))
    assert deviations[0] == pytest.approx((4 / 2 + 4) ** -0.5)
    assert (means[1], deviations[1]) == (0.0, 0.0)


def test_constants_of_rewards_of_0_and_1_are_the_likeliest_ones() -> None:
    made = constants([50, 1000], [40, 10])

    means, _ = made.posterior()

    probability = 1 / (1 + np.exp(-means))
    slope = made.rewards - made.counts * probability - means / made.width**2
    assert np.abs(slope).max() < 1e-6


def test_the_order_of_rewards_changes_no_constant() -> None:
    rng = np.random.default_rng(0)
    rows, rewards = rng.integers(0, 5, 60), rng.random(60)
    offsets = rng.normal(size=60)
    ways = []
    for order in (np.arange(60), rng.permutation(60)):
        made = constants(np.zeros(5), np.zeros(5), noise=0.3)
        for one in order:
            made.observe(rows[[one]], rewards[[one]], offsets[[one]])
        ways.append(made.posterior()[0])

    np.testing.assert_allclose(*ways, atol=1e-12)


def test_widths_shrink_where_features_tell_all_and_stay_where_nothing_is_known() -> None:
    rng = np.random.default_rng(0)
    rows = np.arange(2000) % 400
    none, ones, zeros = np.zeros(0, np.int64), np.ones(2000), np.zeros(2000)

    def width(rewards: Any, noise: float | None) -> float:
        made = ArmConstants.fit(rows, rewards, zeros, ones, arms=400, tried=none, noise=noise)
        return made.width

    assert width(rng.normal(size=2000), 1.0) < 0.25
    assert width(rng.normal(size=2000) + rng.normal(size=400)[rows], 1.0) > 0.7
    few = ArmConstants.fit(
        rows[:2], zeros[:2], zeros[:2], ones[:2], arms=400, tried=none, noise=None
    )
    assert few.width == pytest.approx(PRIOR, rel=0.2)


def test_an_arm_that_is_tried_has_the_width_of_the_prior() -> None:
    made = replace(constants([4, 0, 0], [6.0, 0.0, 0.0], noise=2.0), tried=np.array([2]))

    assert made.posterior()[1][1:].tolist() == [0.0, 0.5]


def test_a_copy_with_room_for_more_arms_leaves_the_first_as_it_was() -> None:
    first = constants([1], [1.0], noise=1.0)

    copied = first.private(3)
    copied.observe(np.array([0, 2]), np.ones(2), np.zeros(2))

    assert copied.counts.tolist() == [2.0, 0.0, 1.0]
    assert first.counts.tolist() == [1.0]


@pytest.mark.parametrize("noise", [None, 0.3])
def test_constants_come_back_from_their_arrays(noise: float | None) -> None:
    made = constants([3, 1], [2.0, 0.0], noise=noise)

    again = ArmConstants.of(made.arrays())

    assert (again.width, again.noise, again.stamp) == (0.5, noise, 0)
    np.testing.assert_array_equal(again.posterior(), made.posterior())
