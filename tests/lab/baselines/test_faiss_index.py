"""Nearest vectors, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from lab.baselines.faiss_index import FaissIndex, default_probes


def brute_force(
    vectors: np.ndarray, points: np.ndarray, count: int, eligible: np.ndarray | None = None
) -> np.ndarray:
    distances = np.square(points[:, None].astype(np.float64) - vectors[None]).sum(-1)
    if eligible is not None:
        distances[:, ~eligible] = np.inf
    return np.argsort(distances, axis=1, kind="stable")[:, :count]


def recall(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.mean([np.isin(w, f).mean() for f, w in zip(found, wanted, strict=True)]))


@pytest.mark.parametrize(("dim", "least"), [(4, 0.98), (8, 0.95), (16, 0.9)])
def test_inverted_lists_find_nearly_all_true_neighbours(dim: int, least: float) -> None:
    vectors, points = vectors_of(10_000, dim), vectors_of(100, dim, seed=1)

    found = FaissIndex(vectors).search(points, 10)

    assert recall(found, brute_force(vectors, points, 10)) > least


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 0.0005])
def test_inverted_lists_find_the_allowed_ones_at_any_selectivity(share: float) -> None:
    vectors, points = vectors_of(10_000, 4), vectors_of(50, 4, seed=1)
    eligible = np.random.default_rng(0).random(10_000) < share
    eligible[3] = True

    found = FaissIndex(vectors).search(points, 10, eligible=eligible)

    assert eligible[found[found >= 0]].all()
    assert recall(found, brute_force(vectors, points, min(10, eligible.sum()), eligible)) > 0.9


def test_the_same_vectors_make_the_same_index() -> None:
    vectors, points = vectors_of(5_000, 4), vectors_of(50, 4, seed=1)

    one, two = (FaissIndex(vectors).search(points, 10) for _ in range(2))

    assert (one == two).all()


def test_probes_grow_with_the_dimension() -> None:
    assert [default_probes(dim) for dim in (2, 8, 16, 32)] == [16, 16, 32, 64]
