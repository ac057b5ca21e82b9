"""The small network over contexts: what it learns, and that a seed fixes it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from fastbandit.reward.context_features import FeatureNetwork
from fastbandit.reward.feature_network import fit_features

COLUMN = np.random.default_rng(1).normal(size=(200, 1))
REWARDS = np.abs(COLUMN[:, 0])


def fitted(*, units: int = 8, seed: int = 3) -> FeatureNetwork:
    rows = np.zeros(200, np.int64)
    return fit_features(COLUMN, rows, REWARDS, arms=1, units=units, seed=(seed, 0))


def left_by(features: NDArray[np.float64]) -> float:
    """Return the share of the rewards' variance that a regression on features leaves."""
    z = np.c_[np.ones(len(features)), features]
    predicted = z @ np.linalg.lstsq(z, REWARDS, rcond=None)[0]
    return float(np.var(REWARDS - predicted) / np.var(REWARDS))


def test_a_regression_on_its_features_predicts_what_one_on_contexts_cannot() -> None:
    assert left_by(COLUMN) > 0.9
    assert left_by(fitted()(COLUMN)) < 0.05


def test_features_are_centred_and_of_length_1_on_average() -> None:
    features = fitted()(COLUMN)

    assert np.allclose(features.mean(axis=0), 0)
    assert np.isclose(np.linalg.norm(features, axis=1).mean(), 1)


def test_the_same_seed_trains_the_same_network_and_another_one_does_not() -> None:
    one, two, other = (fitted(seed=seed)(COLUMN) for seed in (3, 3, 4))

    assert np.array_equal(one, two)
    assert not np.allclose(one, other)


def test_no_units_are_no_features() -> None:
    assert fitted(units=0)(COLUMN).shape == (200, 0)


def test_training_leaves_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()

    fitted(units=1)

    assert torch.get_num_threads() == before
