"""Cells find the vectors that an exact index finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fastbandit.arms.cells import CellIndex
from fastbandit.arms.index import ExactIndex


def vectors_of(count: int, dim: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("count", [1, 5, 64, 1000, 5000])
def test_every_vector_has_one_place(count: int) -> None:
    index = CellIndex(vectors_of(count, 3))

    placed = index._rows[index._rows >= 0]

    assert sorted(placed.tolist()) == list(range(count))


@pytest.mark.parametrize(("count", "dim"), [(300, 2), (5000, 4), (5000, 8)])
def test_most_of_the_true_neighbours_are_found(count: int, dim: int) -> None:
    vectors, points = vectors_of(count, dim), vectors_of(50, dim, seed=1)

    found = CellIndex(vectors).search(points, 10)
    exact = ExactIndex(vectors.numpy()).search(points.numpy(), 10)

    shared = [len(set(f) & set(e)) for f, e in zip(found.tolist(), exact.tolist(), strict=True)]
    assert np.mean(shared) / 10 > 0.9


def test_looking_into_all_cells_is_exact() -> None:
    vectors, points = vectors_of(1000, 4), vectors_of(20, 4, seed=1)

    found = CellIndex(vectors, probes=10**6).search(points, 5)

    assert np.array_equal(found.numpy(), ExactIndex(vectors.numpy()).search(points.numpy(), 5))


def test_only_allowed_vectors_are_found() -> None:
    vectors, points = vectors_of(1000, 4), vectors_of(20, 4, seed=1)
    allowed = torch.zeros(1000, dtype=torch.bool)
    allowed[[3, 70, 500]] = True

    found = CellIndex(vectors).search(points, 5, allowed=allowed)

    assert all(set(row) == {3, 70, 500, -1} for row in found.tolist())


def test_places_beyond_the_last_vector_are_empty() -> None:
    found = CellIndex(vectors_of(3, 2)).search(vectors_of(4, 2, seed=1), 6)

    assert (found[:, :3] >= 0).all()
    assert (found[:, 3:] == -1).all()
