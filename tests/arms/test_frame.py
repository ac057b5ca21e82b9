"""Coordinates in which the arms fill a box."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import vectors_of

from fastbandit.arms.frame import aligned, frame_of


def sheet(count: int = 200) -> torch.Tensor:
    """Give embeddings of 6 columns that lie on a sheet of 2 dimensions."""
    flat = torch.from_numpy(vectors_of(count, 2)) * torch.tensor([100.0, 0.01])
    return flat @ torch.from_numpy(vectors_of(2, 6, seed=5)) + 3


def test_a_frame_has_as_many_axes_as_the_arms_have_directions() -> None:
    frame = frame_of(sheet())

    assert frame.to_embedding.axes.shape == (2, 6)


def test_coordinates_and_back_are_the_same_arms() -> None:
    embeddings = torch.from_numpy(vectors_of(100, 5))
    frame = frame_of(embeddings)

    assert torch.allclose(frame.to_embedding(frame.coordinates(embeddings)), embeddings, atol=1e-4)


def test_coordinates_have_mean_0_and_deviation_1() -> None:
    points = frame_of(sheet()).coordinates(sheet())

    assert torch.allclose(points.mean(0), torch.zeros(2), atol=1e-2)
    assert torch.allclose(points.std(0), torch.ones(2), atol=2e-2)


def test_what_lies_off_the_sheet_is_projected_onto_it() -> None:
    embeddings = sheet()
    frame = frame_of(embeddings)
    normal = torch.linalg.svd(frame.to_embedding.axes.double())[2][-1].float()

    moved = frame.coordinates(embeddings + 0.5 * normal)

    assert torch.allclose(moved[:, 1], frame.coordinates(embeddings)[:, 1], atol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_arms_that_are_all_alike_have_one_axis(count: int) -> None:
    embeddings = torch.full((count, 4), 2.5)
    frame = frame_of(embeddings)

    points = frame.coordinates(embeddings)

    assert points.shape == (count, 1)
    assert points.isfinite().all()
    assert torch.allclose(frame.to_embedding(points), embeddings)


def test_an_aligned_frame_leaves_arms_where_they_were() -> None:
    embeddings = torch.from_numpy(vectors_of(300, 4))
    old = frame_of(embeddings).coordinates(embeddings)
    turn = torch.linalg.qr(torch.from_numpy(vectors_of(4, 4, seed=3)))[0]
    turned = embeddings @ turn + 7  # the same arms, seen by another model

    frame = aligned(frame_of(turned), turned, old)

    assert torch.allclose(frame.coordinates(turned), old, atol=1e-2)
    assert torch.allclose(frame.to_embedding(frame.coordinates(turned)), turned, atol=1e-3)


def test_a_frame_of_another_size_is_not_aligned() -> None:
    embeddings = torch.from_numpy(vectors_of(50, 4))
    frame = frame_of(embeddings)

    assert aligned(frame, embeddings, torch.zeros(50, 3)) is frame


def test_a_frame_does_not_depend_on_the_order_of_the_arms() -> None:
    embeddings = torch.from_numpy(vectors_of(100, 3) * np.array([1, 2, 4], dtype=np.float32))

    one, two = frame_of(embeddings), frame_of(embeddings.flip(0))

    assert torch.allclose(one.to_embedding.axes, two.to_embedding.axes, atol=1e-4)


def test_a_frame_is_laid_out_as_a_snapshot_gives_it_back() -> None:
    frame = frame_of(sheet())

    assert frame.to_embedding.axes.is_contiguous()
    assert frame.inverse.is_contiguous()
