"""Features of contexts are bounded, need no reward, and survive a round trip."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from fastbandit.reward.context_features import (
    CLIP,
    ContextFeatures,
    FeatureNetwork,
    LinearInputs,
    principal_directions,
    robust_scale,
)
from fastbandit.types import Inputs


def dense(numbers: np.ndarray) -> Inputs:
    return Inputs(dense=numbers.astype(np.float32))


def words(rows: int = 200, columns: int = 90) -> Inputs:
    made = random_array((rows, columns), density=0.1, rng=np.random.default_rng(0))
    return Inputs(sparse=csr_matrix(made, dtype=np.float32))


def test_numbers_are_standardised(numbers: np.random.Generator) -> None:
    raw = numbers.normal(size=(500, 3)) * [1, 10, 100] + [0, 5, -50]

    features = ContextFeatures.fit(dense(raw), most=8)

    seen = features(dense(raw)) * features.length
    assert np.allclose(seen.mean(0), 0, atol=0.02)
    assert np.allclose(seen.std(0), 1, atol=0.02)


def test_columns_that_are_alike_keep_their_lengths(numbers: np.random.Generator) -> None:
    raw = numbers.normal(size=(2_000, 4)) * [7, 4, 2, 0]

    features = ContextFeatures.fit(dense(raw), most=8, alike=(slice(1, 4),))

    seen = features(dense(raw)) * features.length
    assert np.allclose(seen.std(0), [1, 1, 0.5, 0], atol=0.05)


@pytest.mark.parametrize("far", [1e6, 1e20, 1e30])
def test_one_row_far_out_moves_nothing(far: float, numbers: np.random.Generator) -> None:
    raw = numbers.normal(size=(1_500, 3))
    spoiled = raw.copy()
    spoiled[700, 1] = far

    plain, other = (ContextFeatures.fit(dense(part), most=8) for part in (raw, spoiled))

    assert np.allclose(plain(dense(raw)), other(dense(raw)), atol=0.05)


def test_a_number_far_out_is_cut_and_told() -> None:
    features = ContextFeatures.fit(dense(np.random.default_rng(0).normal(size=(200, 2))), most=8)
    asked = dense(np.array([[0.1, 0.2], [1e9, 0.0]]))

    assert features.is_clipped(asked).tolist() == [False, True]
    assert np.abs(features(asked) * features.length).max() == pytest.approx(CLIP)


def test_rare_flags_do_not_outweigh_all() -> None:
    flags = np.zeros((1_000, 2))
    flags[0, 0], flags[::2, 1] = 1, 1

    _, scale = robust_scale(flags)

    assert scale[0] >= 0.1


def test_a_constant_column_is_nothing() -> None:
    features = ContextFeatures.fit(dense(np.c_[np.ones(50), np.arange(50)]), most=8)

    assert np.allclose(features(dense(np.c_[np.ones(3), np.arange(3)]))[:, 0], 0)


def test_many_columns_become_principal_directions(numbers: np.random.Generator) -> None:
    hidden = numbers.normal(size=(400, 3))
    raw = hidden @ numbers.normal(size=(3, 80)) + 0.01 * numbers.normal(size=(400, 80))

    found = principal_directions(raw, 3)

    left = raw - raw @ found @ found.T
    assert np.square(left).sum() < 0.01 * np.square(raw).sum()


def test_words_have_features_of_length_about_one() -> None:
    inputs = words()

    features = ContextFeatures.fit(inputs, most=16)

    assert features(inputs).shape == (200, 16)
    assert np.linalg.norm(features(inputs), axis=1).mean() == pytest.approx(1.0)


def test_ids_are_told_apart() -> None:
    features = ContextFeatures.fit(Inputs(ids=np.arange(50)), most=8)

    seen = features(Inputs(ids=np.arange(50)))

    assert len(np.unique(seen, axis=0)) == 50
    assert np.allclose(np.linalg.norm(seen, axis=1), 1)


@pytest.mark.parametrize("inputs", [dense(np.arange(60.0).reshape(20, 3)), words()])
def test_arrays_give_the_same_inputs_back(inputs: Inputs) -> None:
    features = ContextFeatures.fit(inputs, most=8)
    size = features.count
    network = FeatureNetwork(np.ones((size, 2)), np.zeros(2), np.eye(2), np.zeros(2), np.ones(2), 2)
    made = LinearInputs(features, network)

    again = LinearInputs.of(made.arrays())

    assert made(inputs).shape == (len(inputs), made.count)
    assert np.array_equal(made(inputs), again(inputs))
