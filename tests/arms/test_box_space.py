"""A continuum of arms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fastbandit import Box
from fastbandit.arms.box_space import BoxSpace

BOX = BoxSpace(Box([0, -10], [1, 30], cover=500))


def test_points_and_values_are_there_and_back() -> None:
    values = np.array([[0.0, -10.0], [1.0, 30.0], [0.25, 10.0]], dtype=np.float32)

    points = BOX.points(values)

    assert torch.allclose(BOX.values(points), torch.from_numpy(values), atol=1e-4)
    assert torch.allclose(points[0], BOX.low)
    assert torch.allclose(points[1], BOX.high)


def test_points_spread_evenly_have_deviation_1() -> None:
    points = BOX.sample(20_000, rng=torch.Generator().manual_seed(1)).points[0]

    assert points.std(0).tolist() == pytest.approx([1, 1], abs=0.02)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_cover_reaches_every_part_of_the_box(dim: int) -> None:
    space = BoxSpace(Box([0] * dim, [1] * dim, cover=1024))

    values = space.values(space.all().points[0])

    assert values.shape == (1024, dim)
    counts = torch.histc(values[:, 0], bins=8, min=0, max=1)
    assert counts.min() > 100


def test_a_point_outside_lands_on_the_edge() -> None:
    near = BOX.nearest(torch.full((1, 1, 2), 99.0), 3, eligible=None)

    assert torch.allclose(BOX.values(near.points)[0, 0], torch.tensor([1.0, 30.0]))


def test_points_around_an_edge_stay_inside_and_differ() -> None:
    near = BOX.around(BOX.high.expand(1, 1, 2), 2, eligible=None)

    assert near.rows.tolist() == [[*range(8)]]
    assert (near.points <= BOX.high).all()


def test_values_never_leave_the_box_by_rounding() -> None:
    space = BoxSpace(Box([0.1], [0.3]))
    edge = torch.tensor([[-2.0], [2.0], [1.7320509]])

    values = space.values(edge)

    assert values.min() >= np.float32(0.1)
    assert values.max() <= np.float32(0.3)


def test_an_embedded_box_is_what_the_model_encodes() -> None:
    space = BOX.embedded_by(lambda values: values * 2, device="cpu")
    middle = BOX.points(np.array([[0.5, 10.0]], dtype=np.float32))

    assert space.to_embedding(middle).tolist() == [[1.0, 20.0]]
