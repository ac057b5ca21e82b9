"""An index finds the largest inner products."""

from __future__ import annotations

import numpy as np

from lab.baselines.inner_product import InnerProductIndex
from lab.experiments.datasets.synthetic import SyntheticRounds

MANY = SyntheticRounds("h1", 3, 5_000, noise=0.3, seed=1)


def test_an_index_finds_the_largest_products_of_vectors_of_any_length() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5_000, 4)) * rng.uniform(0.1, 2.0, size=(5_000, 1))
    queries = rng.normal(size=(50, 4)) * 100.0

    found = InnerProductIndex(vectors).search(queries, 5)

    products = queries @ vectors.T
    gap = products.max(axis=1) - np.take_along_axis(products, found, axis=1).max(axis=1)
    assert (gap <= 0.02 * products.max(axis=1)).all()


def test_a_query_of_zeros_finds_some_arms() -> None:
    found = InnerProductIndex(MANY.arms.astype(np.float64)).search(np.zeros((1, 3)), 5)

    assert (found >= 0).all()
