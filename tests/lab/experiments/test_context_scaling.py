"""Contexts are scaled by those seen so far, in the same way for all policies."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Sparse
from fastbandit.types import Inputs
from lab.experiments.context_scaling import Scaling, with_one


def test_numbers_are_standardised_by_what_was_seen(numbers: np.random.Generator) -> None:
    seen = numbers.normal(7.0, 3.0, size=(500, 2)).astype(np.float32)
    scaling = Scaling.of(Dense(2), Inputs(dense=seen))

    vectors = scaling.vectors(Inputs(dense=seen))

    np.testing.assert_allclose(vectors.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(vectors.std(axis=0), 1.0, atol=1e-6)


def test_an_extreme_number_is_clipped() -> None:
    scaling = Scaling.of(Dense(1), Inputs(dense=np.array([[1.0], [3.0]], dtype=np.float32)))

    assert scaling.vectors(Inputs(dense=np.array([[1e6]], dtype=np.float32))) == 5.0


def test_flags_are_centred_and_not_scaled() -> None:
    seen = np.zeros((100, 1), dtype=np.float32)
    seen[0] = 1.0
    scaling = Scaling.of(Dense(1), Inputs(dense=seen))

    np.testing.assert_allclose(scaling.vectors(Inputs(dense=seen))[:2, 0], [0.99, -0.01])


def test_a_column_that_never_changes_becomes_nothing() -> None:
    seen = np.full((10, 1), 8.0, dtype=np.float32)

    assert not Scaling.of(Dense(1), Inputs(dense=seen)).vectors(Inputs(dense=seen)).any()


def test_words_have_length_one_and_rare_ones_weigh_more() -> None:
    words = csr_matrix(np.array([[1, 1, 0], [1, 0, 1], [1, 0, 1], [1, 0, 0]], dtype=np.float32))
    scaling = Scaling.of(Sparse(3), Inputs(sparse=words))

    vectors = scaling.vectors(Inputs(sparse=words)).toarray()

    np.testing.assert_allclose(np.linalg.norm(vectors[:3], axis=1), 1.0)
    assert vectors[0, 1] > vectors[0, 0]
    assert not vectors[3].any()  # a word that all have says nothing


def test_plain_words_stay_as_they_are() -> None:
    words = csr_matrix(np.array([[2, 0], [1, 3]], dtype=np.float32))

    scaling = Scaling.of(Sparse(2), Inputs(sparse=words), has_plain_words=True)

    np.testing.assert_array_equal(scaling.vectors(Inputs(sparse=words)).toarray(), words.toarray())


def test_ids_are_flags_beside_the_features() -> None:
    kind = FeaturesAndIds(Dense(1), Ids(3))
    inputs = Inputs(dense=np.array([[0.0], [2.0]], dtype=np.float32), ids=np.array([2, 0]))

    vectors = Scaling.of(kind, inputs).vectors(inputs).toarray()

    np.testing.assert_allclose(vectors, [[-1, 0, 0, 1], [1, 1, 0, 0]])


def test_a_constant_is_a_column_of_ones() -> None:
    assert with_one(np.zeros((2, 3)))[:, -1].tolist() == [1.0, 1.0]
    assert with_one(csr_matrix((2, 3))).toarray()[:, -1].tolist() == [1.0, 1.0]
