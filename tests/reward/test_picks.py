"""Points picked one after another, and what their rewards leave unknown."""

from __future__ import annotations

import torch

from fastbandit.reward.picks import look, pick


def test_picks_leave_the_posterior_that_their_rewards_would() -> None:
    halves = torch.randn(30, 8, generator=torch.Generator().manual_seed(1)).double()
    means = torch.zeros(30).double()

    columns = pick(means, halves, count=3, noise=0.1)

    taken, left = [], torch.eye(8).double()
    for _ in range(3):
        best = int((halves @ left * halves).sum(1).argmax())
        taken.append(halves[best])
        seen = torch.stack(taken)
        left = torch.linalg.inv(torch.eye(8).double() + seen.T @ seen / 0.1)
    assert torch.allclose(torch.eye(8).double() - columns @ columns.T, left, atol=1e-6)


def test_a_pick_without_noise_leaves_nothing_unknown_of_its_point() -> None:
    halves = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double()

    columns = pick(torch.zeros(2).double(), halves, count=1, noise=0.0)

    assert torch.allclose(columns.abs(), torch.tensor([[1.0], [0.0]]).double())


def test_looking_comes_closer_to_the_best_point_than_the_cover() -> None:
    best, seen = torch.tensor([0.31, 0.77]), []

    def halves(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append((points - best).norm(dim=1).min())
        return -(points - best).square().sum(1), torch.zeros(len(points), 1)

    means, _ = look(halves, 2)

    assert min(seen[1:]) < min(0.01, float(seen[0]))
    assert torch.isclose(means.max(), -(min(seen) ** 2))
