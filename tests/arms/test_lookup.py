"""Rows near points, with and without masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import vectors_of
from torch import Tensor

from fastbandit.arms.lookup import Lookup
from fastbandit.arms.neighbour_graph import NEIGHBOURS

DIM = 4


def lookup_of(count: int, *, rows: np.ndarray | None = None, dim: int = DIM) -> Lookup:
    vectors = torch.from_numpy(vectors_of(count, dim))
    return Lookup(vectors, np.arange(count) if rows is None else rows)


def points_of(batch: int, each: int, *, dim: int = DIM) -> Tensor:
    return torch.from_numpy(vectors_of(batch * each, dim, seed=1)).view(batch, each, dim)


def masks_of(share: float, *, contexts: int, count: int) -> Tensor:
    rng = torch.Generator().manual_seed(3)
    masks = torch.rand(contexts, count, generator=rng) < share
    masks[:, 7] = True
    return masks


def only(count: int, *rows: int) -> Tensor:
    """Return a mask, for all contexts, of just these rows."""
    mask = torch.zeros(1, count, dtype=torch.bool)
    mask[0, list(rows)] = True
    return mask


def exact(lookup: Lookup, points: Tensor, count: int, *, masks: Tensor | None) -> Tensor:
    """Return the nearest rows by brute force, each point's own behind one another."""
    gaps = torch.cdist(points.double(), lookup.vectors.double().expand(len(points), -1, -1))
    closed = torch.ones(len(lookup.vectors), dtype=torch.bool)
    closed[torch.from_numpy(lookup.rows)] = False
    gaps = gaps.masked_fill(closed, torch.inf)
    if masks is not None:
        gaps = gaps.masked_fill(~masks[:, None], torch.inf)
    near, order = gaps.sort(dim=2)
    return torch.where(near < torch.inf, order, -1)[..., :count].flatten(1)


def shared(found: Tensor, wanted: Tensor) -> float:
    """Return the share of the wanted rows that were found."""
    both = zip(found.tolist(), wanted.tolist(), strict=True)
    return float(np.mean([np.isin(w, f).mean() for f, w in both]))


# -- all rows around a point


@pytest.mark.parametrize("count", [20, 400, 9_000])
def test_around_gives_what_the_partitions_hold(count: int) -> None:
    lookup, points = lookup_of(count), points_of(3, 2)

    rows = lookup.around(points, 2, eligible=None)

    held = lookup.partitions.in_partitions(points.flatten(0, 1).numpy(), 2)
    assert np.array_equal(rows.numpy(), held.reshape(3, -1))


def test_around_a_row_is_nearly_always_the_row_itself() -> None:
    lookup = lookup_of(2_000)

    rows = lookup.around(lookup.vectors[:200, None], 4, eligible=None)

    assert (rows == torch.arange(200)[:, None]).any(1).float().mean() > 0.95


@pytest.mark.parametrize("share", [0.9, 0.5, 0.05, 0.001])
@pytest.mark.parametrize("contexts", [1, 6], ids=["shared", "each its own"])
def test_around_never_gives_an_ineligible_row(share: float, contexts: int) -> None:
    lookup = lookup_of(3_000)
    masks = masks_of(share, contexts=contexts, count=3_000)

    rows = lookup.around(points_of(6, 2), 1, eligible=masks)

    is_eligible = masks.expand(6, -1).gather(1, rows.clamp_min(0))
    assert is_eligible[rows >= 0].all()
    assert (rows >= 0).any(1).all()


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_around_gives_about_as_many_rows_whatever_the_mask(share: float) -> None:
    lookup = lookup_of(9_000)
    masks = masks_of(share, contexts=20, count=9_000)

    rows = lookup.around(points_of(20, 1), 4, eligible=masks)

    plain = lookup.around(points_of(20, 1), 4, eligible=None)
    assert 0.5 < (rows >= 0).sum() / (plain >= 0).sum() < 2.0


@pytest.mark.parametrize("row", [0, 1_234, 2_999])
def test_the_only_eligible_row_is_found_wherever_it_lies(row: int) -> None:
    lookup = lookup_of(3_000)

    rows = lookup.around(points_of(4, 1), 1, eligible=only(3_000, row))

    assert (rows == row).any(1).all()
    assert ((rows == row) | (rows < 0)).all()


def test_a_mask_far_away_is_found() -> None:
    lookup = lookup_of(9_000)
    is_far = (lookup.vectors[:, 0] > 1.5)[None]
    points = points_of(5, 2) * 0.1 - 1.5

    rows = lookup.around(points, 1, eligible=is_far)

    assert (rows >= 0).any(1).all()
    assert is_far[0, rows[rows >= 0]].all()


def test_few_eligible_rows_leave_few_positions() -> None:
    rows = lookup_of(9_000).around(points_of(5, 2), 4, eligible=only(9_000, 3, 70, 500))

    assert rows.shape[1] <= 2 * 3


def test_a_mask_in_which_nothing_is_eligible_gives_nothing() -> None:
    rows = lookup_of(400).around(points_of(3, 2), 2, eligible=only(400))

    assert (rows == -1).all()


def test_each_context_has_its_own_mask() -> None:
    masks = torch.cat([only(400, 5), only(400, 9, 11), torch.ones(1, 400, dtype=torch.bool)])

    rows = lookup_of(400).around(points_of(3, 1), 16, eligible=masks)

    found = [set(row[row >= 0].tolist()) for row in rows]
    assert found == [{5}, {9, 11}, set(range(400))]


# -- the nearest rows of a point


@pytest.mark.parametrize(
    ("count", "dim", "least"), [(300, 2, 0.999), (5_000, 4, 0.99), (5_000, 8, 0.95)]
)
def test_most_of_the_nearest_rows_are_found(count: int, dim: int, least: float) -> None:
    lookup, points = lookup_of(count, dim=dim), points_of(25, 2, dim=dim)

    found = lookup.nearest(points, 10, eligible=None)

    assert shared(found, exact(lookup, points, 10, masks=None)) > least


def test_rows_come_nearest_first() -> None:
    lookup, points = lookup_of(3_000), points_of(20, 1)

    rows = lookup.nearest(points, 30, eligible=None)

    gaps = (lookup.vectors[rows] - points).square().sum(-1)
    assert (gaps.diff(dim=1) >= 0).all()


@pytest.mark.parametrize("share", [0.5, 0.1, 0.002])
@pytest.mark.parametrize("contexts", [1, 6], ids=["shared", "each its own"])
def test_the_nearest_eligible_rows_are_exact(share: float, contexts: int) -> None:
    lookup, points = lookup_of(3_000), points_of(6, 2)
    masks = masks_of(share, contexts=contexts, count=3_000)

    found = lookup.nearest(points, 10, eligible=masks)

    assert torch.equal(found, exact(lookup, points, 10, masks=masks))


@pytest.mark.parametrize("count", [1, 3, 40])
def test_positions_beyond_the_last_row_are_empty(count: int) -> None:
    found = lookup_of(count).nearest(points_of(4, 1), 50, eligible=None)

    assert (found[:, :count] >= 0).all()
    assert (found[:, count:] == -1).all()


def test_all_rows_are_found_where_as_many_are_asked() -> None:
    found = lookup_of(3_000).nearest(points_of(2, 1), 3_000, eligible=None)

    assert all(sorted(row) == list(range(3_000)) for row in found.tolist())


# -- rows that are left out


def test_rows_left_out_are_never_found() -> None:
    lookup, points = lookup_of(900, rows=np.arange(0, 900, 3)), points_of(4, 2)
    everything = torch.ones(1, 900, dtype=torch.bool)

    for eligible in (None, everything):
        for rows in (
            lookup.around(points, 3, eligible=eligible),
            lookup.nearest(points, 20, eligible=eligible),
        ):
            assert (rows[rows >= 0] % 3 == 0).all()
            assert (rows >= 0).any(1).all()


def test_rows_left_out_have_no_neighbours_and_are_none() -> None:
    graph = lookup_of(900, rows=np.arange(0, 900, 3)).graph

    assert (graph[1::3] == -1).all()
    assert (graph[::3] >= 0).all()
    assert (graph[::3] % 3 == 0).all()


# -- the graph


def test_the_rows_beside_a_row_are_the_nearest_others() -> None:
    lookup = lookup_of(2_000)

    graph = lookup.graph[:100].long()

    wanted = exact(lookup, lookup.vectors[:100, None], NEIGHBOURS + 1, masks=None)[:, 1:]
    assert shared(graph, wanted) > 0.99
    assert (graph != torch.arange(100)[:, None]).all()


def test_the_rows_beside_one_of_few_rows_are_all_others() -> None:
    graph = lookup_of(3).graph

    assert [set(row) for row in graph.tolist()] == [{1, 2, -1}, {0, 2, -1}, {0, 1, -1}]
