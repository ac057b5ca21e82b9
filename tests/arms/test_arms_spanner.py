"""Points that span a cloud."""

from __future__ import annotations

import torch

from fastbandit.arms.spanner import spanning_positions


def test_each_position_is_picked_once() -> None:
    points = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))

    assert sorted(spanning_positions(points, 50).tolist()) == list(range(20))


def test_the_farthest_point_comes_first_and_its_copy_late() -> None:
    points = torch.tensor([[1.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 5.0]])

    picked = spanning_positions(points, 3).tolist()

    assert picked[:2] == [1, 3]
    assert picked[2] != 2
