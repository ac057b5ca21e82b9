"""Neighbours are nearly those of brute force."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit.arms.neighbour_graph import neighbour_graph
from fastbandit.arms.partitions import Partitions, build_partitions


def distances(points: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.square(points[:, None].astype(np.float64) - vectors[None]).sum(-1)


def recall_of_graph(partitions: Partitions, graph: np.ndarray, positions: np.ndarray) -> float:
    gaps = distances(partitions.vectors[positions], partitions.vectors)
    gaps[np.arange(len(positions)), positions] = np.inf
    exact = np.argsort(gaps, axis=1, kind="stable")[:, : graph.shape[1]]
    both = zip(graph[positions], exact, strict=True)
    return float(np.mean([np.isin(wanted, found).mean() for found, wanted in both]))


@pytest.mark.parametrize("dim", [1, 3, 9, 20])
def test_the_graph_of_a_few_vectors_is_that_of_brute_force(dim: int) -> None:
    partitions = build_partitions(vectors_of(300, dim))

    assert recall_of_graph(partitions, neighbour_graph(partitions, 5), np.arange(300)) > 0.999


@pytest.mark.parametrize(("dim", "least"), [(2, 0.999), (4, 0.99), (8, 0.97), (16, 0.8)])
def test_the_graph_of_many_vectors_is_nearly_that_of_brute_force(dim: int, least: float) -> None:
    partitions = build_partitions(vectors_of(12_000, dim))

    assert (
        recall_of_graph(partitions, neighbour_graph(partitions, 16), np.arange(0, 12_000, 60))
        > least
    )


def test_neighbours_come_nearest_first_and_once() -> None:
    partitions = build_partitions(vectors_of(2_000, 4))

    graph = neighbour_graph(partitions, 16)

    gaps = np.square(partitions.vectors[graph] - partitions.vectors[:, None]).sum(-1)
    assert (np.diff(gaps, axis=1) >= -1e-5).all()
    assert all(len(set(row)) == 16 for row in graph.tolist())


@pytest.mark.parametrize(("different", "copies"), [(3, 10), (1, 200), (50, 40)])
def test_no_vector_is_its_own_neighbour_even_among_equals(different: int, copies: int) -> None:
    partitions = build_partitions(np.repeat(vectors_of(different, 2), copies, axis=0))

    graph = neighbour_graph(partitions, 5)

    assert (graph != np.arange(len(partitions))[:, None]).all()
    assert all(len(set(row)) == 5 and min(row) >= 0 for row in graph.tolist())


@pytest.mark.parametrize("count", [1, 2, 4])
def test_too_few_vectors_leave_empty_positions_in_the_graph(count: int) -> None:
    graph = neighbour_graph(build_partitions(vectors_of(count, 2)), 5)

    assert ((graph >= 0).sum(1) == count - 1).all()
    assert (graph[:, count - 1 :] == -1).all()
