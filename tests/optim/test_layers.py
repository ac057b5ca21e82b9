"""Layers start from the rng alone."""

from __future__ import annotations

import torch

from fastbandit.optim.layers import convolution, linear


def test_layers_start_from_the_rng_alone() -> None:
    one, two = (linear(3, 4, rng=torch.Generator().manual_seed(5)) for _ in range(2))
    other = linear(3, 4, rng=torch.Generator().manual_seed(6))

    assert torch.equal(one.weight, two.weight)
    assert not torch.equal(one.weight, other.weight)


def test_weights_lie_within_one_over_the_root_of_the_inputs_and_biases_are_zero(
    rng: torch.Generator,
) -> None:
    flat, planes = linear(100, 50, rng=rng), convolution(4, 30, rng=rng)

    assert 0.09 < float(flat.weight.detach().abs().max()) <= 0.1
    assert 0.15 < float(planes.weight.detach().abs().max()) <= 1 / 6
    assert not flat.bias.any()
    assert not planes.bias.any()


def test_a_convolution_leaves_the_size_of_its_planes(rng: torch.Generator) -> None:
    assert convolution(2, 3, rng=rng)(torch.zeros(1, 2, 9, 7)).shape == (1, 3, 9, 7)


def test_making_a_layer_leaves_torchs_own_random_state_alone(rng: torch.Generator) -> None:
    before = torch.get_rng_state()

    linear(3, 4, rng=rng)
    convolution(3, 4, rng=rng)

    assert torch.equal(torch.get_rng_state(), before)
