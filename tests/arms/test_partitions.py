"""Partitions hold every vector once, and find what brute force finds."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit.arms.neighbour_graph import neighbour_graph
from fastbandit.arms.partitions import PARTITION, Partitions, build_partitions, padded, unblocked

COLUMNS = [1, 2, 7, 8, 9, 16, 17, 20]


def bounds_of(partitions: Partitions) -> np.ndarray:
    """Return the positions where partitions begin, and where the last one ends."""
    return np.arange(partitions.count + 1) * len(partitions) // partitions.count


def centres_of(partitions: Partitions) -> np.ndarray:
    return unblocked(partitions.centres, partitions.count, partitions.vectors.shape[1])


def partitions_with(partitions: Partitions, rows: np.ndarray) -> np.ndarray:
    """Return the partitions, in the order of a look-up, whose rows it gave."""
    position = np.empty(len(partitions), dtype=np.int64)
    position[partitions.order] = np.arange(len(partitions))
    first = rows.reshape(len(rows), -1, PARTITION)[..., 0]
    return np.searchsorted(bounds_of(partitions), position[first], side="right") - 1


def distances(points: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.square(points[:, None].astype(np.float64) - vectors[None]).sum(-1)


def same(one: Partitions, two: Partitions) -> bool:
    names = ("order", "vectors", "centres", "groups")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


# -- building


@pytest.mark.parametrize("count", [1, 5, 32, 33, 1_000, 9_000])
def test_every_row_has_one_position(count: int) -> None:
    vectors = vectors_of(count, 3)

    partitions = build_partitions(vectors)

    assert sorted(partitions.order.tolist()) == list(range(count))
    assert np.array_equal(partitions.vectors, vectors[partitions.order])


@pytest.mark.parametrize("count", [33, 64, 65, 1_000, 4_096, 4_097, 9_000])
def test_partitions_are_filled_evenly_and_at_least_by_half(count: int) -> None:
    sizes = np.diff(bounds_of(build_partitions(vectors_of(count, 3))))

    assert sizes.min() >= PARTITION // 2
    assert sizes.max() <= PARTITION
    assert sizes.max() - sizes.min() <= 1


def test_the_same_vectors_make_the_same_partitions() -> None:
    vectors = vectors_of(3_000, 4)

    assert same(build_partitions(vectors), build_partitions(vectors.copy(order="F")))


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_nothing(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = vectors_of(3_000, 4)
    monkeypatch.setattr("fastbandit.cores.cores", lambda: 1)
    alone = build_partitions(vectors)
    graph = neighbour_graph(alone, 8)

    monkeypatch.setattr("fastbandit.cores.cores", lambda: threads)

    assert same(build_partitions(vectors), alone)
    assert np.array_equal(neighbour_graph(alone, 8), graph)


def test_equal_vectors_are_halved_too() -> None:
    partitions = build_partitions(np.ones((500, 3), dtype=np.float32))

    assert sorted(partitions.order.tolist()) == list(range(500))
    assert np.array_equal(centres_of(partitions), np.ones((partitions.count, 3)))


def test_halves_are_made_along_the_widest_side() -> None:
    vectors = vectors_of(64, 2) * np.float32([1.0, 9.0])

    low, high = np.split(build_partitions(vectors).vectors[:, 1], 2)

    assert low.max() <= high.min()


def test_a_centre_is_the_mean_of_its_partition() -> None:
    partitions = build_partitions(vectors_of(1_000, 5))

    means = np.add.reduceat(partitions.vectors, bounds_of(partitions)[:-1])
    means /= np.diff(bounds_of(partitions))[:, None]

    assert np.allclose(centres_of(partitions), means, atol=1e-5)


# -- looking up


@pytest.mark.parametrize("dim", COLUMNS)
def test_points_are_filled_up_with_zeros(dim: int) -> None:
    points = vectors_of(3, dim)

    full = padded(points)

    assert full.shape == (3, -(-dim // 8) * 8)
    assert np.array_equal(full[:, :dim], points)
    assert not full[:, dim:].any()


@pytest.mark.parametrize("dim", COLUMNS)
@pytest.mark.parametrize("count", [20, 300, 3_000])
def test_the_nearest_partitions_are_those_of_brute_force(count: int, dim: int) -> None:
    partitions = build_partitions(vectors_of(count, dim))
    points = vectors_of(40, dim, seed=1)

    found = partitions_with(partitions, partitions.in_partitions(points, 3))

    gaps = distances(points, centres_of(partitions))
    exact = np.sort(gaps, axis=1)[:, :3]
    assert np.allclose(np.take_along_axis(gaps, found, axis=1), exact, rtol=1e-4)


@pytest.mark.parametrize(("dim", "least"), [(2, 0.97), (4, 0.95), (8, 0.85)])
def test_groups_hide_few_of_the_nearest_partitions(dim: int, least: float) -> None:
    partitions = build_partitions(vectors_of(20_000, dim))
    points = vectors_of(100, dim, seed=1)

    found = partitions_with(partitions, partitions.in_partitions(points, 4))

    exact = np.argsort(distances(points, centres_of(partitions)), axis=1)[:, :4]
    assert np.mean([np.isin(e, f).mean() for f, e in zip(found, exact, strict=True)]) > least


@pytest.mark.parametrize("count", [20, 400, 9_000])
def test_a_look_up_finds_all_that_the_partitions_hold(count: int) -> None:
    partitions = build_partitions(vectors_of(count, 3))

    rows = partitions.in_partitions(vectors_of(5, 3, seed=1), 2)

    assert rows.shape == (5, min(2, partitions.count) * PARTITION)
    for found, mine in zip(rows, partitions_with(partitions, rows), strict=True):
        held = [
            partitions.order[slice(*bounds_of(partitions)[[partition, partition + 1]])]
            for partition in mine
        ]
        assert np.array_equal(found[found >= 0], np.concatenate(held))


@pytest.mark.parametrize("count", [1, 20, 400, 9_000])
def test_all_partitions_together_hold_all_rows(count: int) -> None:
    partitions = build_partitions(vectors_of(count, 3))

    rows = partitions.in_partitions(vectors_of(2, 3, seed=1), 10**6)

    assert all(sorted(row[row >= 0].tolist()) == list(range(count)) for row in rows)


def test_more_partitions_than_the_nearest_groups_hold_are_found_among_all() -> None:
    partitions = build_partitions(vectors_of(9_000, 3))
    points = vectors_of(5, 3, seed=1)
    wanted = partitions.count - 1

    found = partitions_with(partitions, partitions.in_partitions(points, wanted))

    gaps = distances(points, centres_of(partitions))
    exact = np.sort(gaps, axis=1)[:, :wanted]
    assert np.allclose(np.take_along_axis(gaps, found, axis=1), exact, rtol=1e-4)
