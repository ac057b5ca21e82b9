"""Cells hold every vector once, and find what brute force finds."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit.arms.cells import CELL, Cells, build_cells, padded, unblocked

COLUMNS = [1, 2, 7, 8, 9, 16, 17, 20]


def bounds_of(cells: Cells) -> np.ndarray:
    """Give the places where cells begin, and where the last one ends."""
    return np.arange(cells.count + 1) * len(cells) // cells.count


def centres_of(cells: Cells) -> np.ndarray:
    return unblocked(cells.centres, cells.count, cells.vectors.shape[1])


def cells_with(cells: Cells, rows: np.ndarray) -> np.ndarray:
    """Give the cells, in the order of a look-up, whose rows it gave."""
    place = np.empty(len(cells), dtype=np.int64)
    place[cells.order] = np.arange(len(cells))
    first = rows.reshape(len(rows), -1, CELL)[..., 0]
    return np.searchsorted(bounds_of(cells), place[first], side="right") - 1


def distances(points: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.square(points[:, None].astype(np.float64) - vectors[None]).sum(-1)


def same(one: Cells, two: Cells) -> bool:
    names = ("order", "vectors", "centres", "groups")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


def recall_of_graph(cells: Cells, graph: np.ndarray, places: np.ndarray) -> float:
    gaps = distances(cells.vectors[places], cells.vectors)
    gaps[np.arange(len(places)), places] = np.inf
    exact = np.argsort(gaps, axis=1, kind="stable")[:, : graph.shape[1]]
    pairs = zip(graph[places], exact, strict=True)
    return float(np.mean([np.isin(wanted, found).mean() for found, wanted in pairs]))


# -- building


@pytest.mark.parametrize("count", [1, 5, 32, 33, 1_000, 9_000])
def test_every_row_has_one_place(count: int) -> None:
    vectors = vectors_of(count, 3)

    cells = build_cells(vectors)

    assert sorted(cells.order.tolist()) == list(range(count))
    assert np.array_equal(cells.vectors, vectors[cells.order])


@pytest.mark.parametrize("count", [33, 64, 65, 1_000, 4_096, 4_097, 9_000])
def test_cells_are_filled_evenly_and_at_least_by_half(count: int) -> None:
    sizes = np.diff(bounds_of(build_cells(vectors_of(count, 3))))

    assert sizes.min() >= CELL // 2
    assert sizes.max() <= CELL
    assert sizes.max() - sizes.min() <= 1


def test_the_same_vectors_make_the_same_cells() -> None:
    vectors = vectors_of(3_000, 4)

    assert same(build_cells(vectors), build_cells(vectors.copy(order="F")))


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_nothing(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = vectors_of(3_000, 4)
    monkeypatch.setattr("fastbandit.cores.cores", lambda: 1)
    alone = build_cells(vectors)
    graph = alone.graph(8)

    monkeypatch.setattr("fastbandit.cores.cores", lambda: threads)

    assert same(build_cells(vectors), alone)
    assert np.array_equal(alone.graph(8), graph)


def test_equal_vectors_are_halved_too() -> None:
    cells = build_cells(np.ones((500, 3), dtype=np.float32))

    assert sorted(cells.order.tolist()) == list(range(500))
    assert np.array_equal(centres_of(cells), np.ones((cells.count, 3)))


def test_halves_are_made_along_the_widest_side() -> None:
    vectors = vectors_of(64, 2) * np.float32([1.0, 9.0])

    low, high = np.split(build_cells(vectors).vectors[:, 1], 2)

    assert low.max() <= high.min()


def test_a_centre_is_the_mean_of_its_cell() -> None:
    cells = build_cells(vectors_of(1_000, 5))

    means = np.add.reduceat(cells.vectors, bounds_of(cells)[:-1])
    means /= np.diff(bounds_of(cells))[:, None]

    assert np.allclose(centres_of(cells), means, atol=1e-5)


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
def test_the_nearest_cells_are_those_of_brute_force(count: int, dim: int) -> None:
    cells = build_cells(vectors_of(count, dim))
    points = vectors_of(40, dim, seed=1)

    found = cells_with(cells, cells.in_cells(points, 3))

    gaps = distances(points, centres_of(cells))
    exact = np.sort(gaps, axis=1)[:, :3]
    assert np.allclose(np.take_along_axis(gaps, found, axis=1), exact, rtol=1e-4)


@pytest.mark.parametrize(("dim", "least"), [(2, 0.97), (4, 0.95), (8, 0.85)])
def test_groups_hide_few_of_the_nearest_cells(dim: int, least: float) -> None:
    cells = build_cells(vectors_of(20_000, dim))
    points = vectors_of(100, dim, seed=1)

    found = cells_with(cells, cells.in_cells(points, 4))

    exact = np.argsort(distances(points, centres_of(cells)), axis=1)[:, :4]
    assert np.mean([np.isin(e, f).mean() for f, e in zip(found, exact, strict=True)]) > least


@pytest.mark.parametrize("count", [20, 400, 9_000])
def test_a_look_up_gives_all_that_the_cells_hold(count: int) -> None:
    cells = build_cells(vectors_of(count, 3))

    rows = cells.in_cells(vectors_of(5, 3, seed=1), 2)

    assert rows.shape == (5, min(2, cells.count) * CELL)
    for found, mine in zip(rows, cells_with(cells, rows), strict=True):
        held = [cells.order[slice(*bounds_of(cells)[[cell, cell + 1]])] for cell in mine]
        assert np.array_equal(found[found >= 0], np.concatenate(held))


@pytest.mark.parametrize("count", [1, 20, 400, 9_000])
def test_all_cells_together_hold_all_rows(count: int) -> None:
    cells = build_cells(vectors_of(count, 3))

    rows = cells.in_cells(vectors_of(2, 3, seed=1), 10**6)

    assert all(sorted(row[row >= 0].tolist()) == list(range(count)) for row in rows)


def test_more_cells_than_the_nearest_groups_hold_are_found_among_all() -> None:
    cells = build_cells(vectors_of(9_000, 3))
    points = vectors_of(5, 3, seed=1)
    wanted = cells.count - 1

    found = cells_with(cells, cells.in_cells(points, wanted))

    gaps = distances(points, centres_of(cells))
    exact = np.sort(gaps, axis=1)[:, :wanted]
    assert np.allclose(np.take_along_axis(gaps, found, axis=1), exact, rtol=1e-4)


# -- neighbours


@pytest.mark.parametrize("dim", [1, 3, 9, 20])
def test_the_graph_of_a_few_vectors_is_that_of_brute_force(dim: int) -> None:
    cells = build_cells(vectors_of(300, dim))

    assert recall_of_graph(cells, cells.graph(5), np.arange(300)) > 0.999


@pytest.mark.parametrize(("dim", "least"), [(2, 0.999), (4, 0.99), (8, 0.97), (16, 0.8)])
def test_the_graph_of_many_vectors_is_nearly_that_of_brute_force(dim: int, least: float) -> None:
    cells = build_cells(vectors_of(12_000, dim))

    assert recall_of_graph(cells, cells.graph(16), np.arange(0, 12_000, 60)) > least


def test_neighbours_come_nearest_first_and_once() -> None:
    cells = build_cells(vectors_of(2_000, 4))

    graph = cells.graph(16)

    gaps = np.square(cells.vectors[graph] - cells.vectors[:, None]).sum(-1)
    assert (np.diff(gaps, axis=1) >= -1e-5).all()
    assert all(len(set(row)) == 16 for row in graph.tolist())


@pytest.mark.parametrize(("different", "copies"), [(3, 10), (1, 200), (50, 40)])
def test_no_vector_is_its_own_neighbour_even_among_equals(different: int, copies: int) -> None:
    cells = build_cells(np.repeat(vectors_of(different, 2), copies, axis=0))

    graph = cells.graph(5)

    assert (graph != np.arange(len(cells))[:, None]).all()
    assert all(len(set(row)) == 5 and min(row) >= 0 for row in graph.tolist())


@pytest.mark.parametrize("count", [1, 2, 4])
def test_too_few_vectors_leave_empty_places_in_the_graph(count: int) -> None:
    graph = build_cells(vectors_of(count, 2)).graph(5)

    assert ((graph >= 0).sum(1) == count - 1).all()
    assert (graph[:, count - 1 :] == -1).all()
