"""Interactions of a log count by trust, and by how unlikely they were, within bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit.errors import FastbanditError, InputError, SettingError, ShapeError
from fastbandit.training.fit_reward import RewardFit, recall
from fastbandit.training.log_weights import log_weights
from fastbandit.types import Inputs, Interactions


def test_without_propensities_each_counts_as_trusted() -> None:
    assert log_weights(1.0, None, count=3) is None
    half = log_weights(0.5, None, count=3)
    assert half is not None
    assert half.tolist() == [0.5, 0.5, 0.5]


def test_a_long_log_counts_as_a_hundred_thousand_without_a_trust() -> None:
    assert log_weights(None, None, count=100_000) is None
    long = log_weights(None, None, count=400_000)
    assert long is not None
    assert long.sum() == pytest.approx(100_000)


def test_what_was_unlikely_counts_more() -> None:
    weights = log_weights(0.6, [0.5, 0.25, 0.5], count=3)

    assert weights is not None
    assert weights.mean() == pytest.approx(0.6)
    assert weights[1] == pytest.approx(2 * weights[0])


def test_no_interaction_counts_more_than_ten_times_the_median_one() -> None:
    weights = log_weights(1.0, [1e-9, *[0.5] * 99], count=100)

    assert weights is not None
    assert weights.mean() == pytest.approx(1.0)
    assert weights[0] == pytest.approx(10 * np.median(weights))


@pytest.mark.parametrize("trust", [0, -1, 1.01, np.nan, True, "much"])
def test_a_trust_that_is_no_share_is_rejected(trust: Any) -> None:
    with pytest.raises(SettingError, match="trust in a log"):
        log_weights(trust, None, count=3)


@pytest.mark.parametrize(
    ("propensities", "error"),
    [
        ([0.5, 0.0, 0.5], InputError),
        ([0.5, 1.5, 0.5], InputError),
        ([0.5, -0.1, 0.5], InputError),
        ([0.5, np.nan, 0.5], FastbanditError),
        ([0.5, 0.5], ShapeError),
        (0.5, ShapeError),
        (["a", "b", "c"], InputError),
    ],
)
def test_what_is_no_probability_is_rejected(propensities: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="propensities need"):
        log_weights(1.0, propensities, count=3)


def logged(weights: Any) -> Interactions:
    count = 2 if weights is None else len(weights)
    both = Inputs(dense=vectors_of(count, 2)), Inputs(ids=np.arange(count))
    return Interactions(*both, np.ones(count, np.float32), weights)


def test_stacked_interactions_keep_their_weights() -> None:
    light = logged(np.array([0.5, 0.25, 0.125]))

    both = Interactions.stack([logged(None), light])

    assert both.weights is not None
    assert both.weights.tolist() == [1, 1, 0.5, 0.25, 0.125]
    assert both.total == pytest.approx(2.875)
    assert Interactions.stack([logged(None), logged(None)]).weights is None


def test_what_is_trusted_less_fades_too() -> None:
    light = logged(np.array([0.5, 0.5, 1.0]))

    faded = recall(light, RewardFit(half_life=1.0))

    assert faded.weights is not None
    assert faded.weights.tolist() == [0.125, 0.25, 1.0]
