"""The Matérn kernel: its frequencies, and lengths fitted by maximum likelihood."""

from __future__ import annotations

import torch

from fastbandit.reward.matern import Kernel, Seen, fit_kernel, frequencies


def test_frequencies_sample_the_kernel() -> None:
    drawn = frequencies(200_000, 2, rng=torch.Generator().manual_seed(0))
    away = torch.tensor([[0.3, 0.4], [1.0, 0.0], [0.0, 2.0]]).double()
    distance = 5**0.5 * away.norm(dim=1)

    found = torch.cos(away @ drawn.T).mean(1)

    wanted = (1 + distance + distance.square() / 3) * torch.exp(-distance)
    assert torch.allclose(found, wanted, atol=0.01)


def sines(length: float) -> Seen:
    points = torch.rand(200, 2, generator=torch.Generator().manual_seed(1)).double()
    noise = torch.randn(200, generator=torch.Generator().manual_seed(2)).double()
    rewards = torch.sin(points[:, 0] / length) + 0.1 * noise
    return Seen(torch.zeros(200, 1).double(), points, rewards, torch.ones(200).double())


def test_a_side_that_matters_gets_the_shorter_length_and_noise_is_found() -> None:
    kernel = fit_kernel(sines(0.1), before=None)

    assert kernel.lengths[0] < 0.5 < kernel.lengths[1]
    assert 0.003 < kernel.noise < 0.03


def test_an_earlier_kernel_is_improved_on() -> None:
    before = Kernel(1.0, 1.0, 1.0, torch.full((2,), 5.0).double())

    kernel = fit_kernel(sines(0.1), before=before)

    assert kernel.lengths[0] < 0.5


def test_a_kernel_comes_back_from_its_logarithms() -> None:
    kernel = Kernel(2.0, 0.1, 3.0, torch.tensor([0.5, 4.0]).double())

    again = Kernel.of(kernel.numbers())

    assert torch.allclose(again.numbers(), kernel.numbers())
    assert torch.allclose(again.lengths, kernel.lengths)
