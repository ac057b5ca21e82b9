"""The folded network is the network."""

from __future__ import annotations

import pytest
import torch
from torch import Generator

from fastbandit.reward.network import RewardNetwork
from fastbandit.score import Affine

SHAPES = [
    {"hidden": (7,)},
    {"hidden": (7, 5)},
    {"hidden": (7, 5, 6)},
    {"hidden": (7, 5), "product": False},
    {"hidden": (7,), "wide": False},
    {"hidden": (7, 5), "product": False, "wide": False, "dropout": False},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_the_folded_network_gives_what_forward_gives(
    shape: dict[str, object], masked: bool, rng: Generator
) -> None:
    network = RewardNetwork(4, rng=rng, **shape)  # type: ignore[arg-type]
    contexts, arms = (torch.randn(6, 4, generator=rng) for _ in range(2))
    masks = None
    if masked and network.dropouts:
        numbers = torch.rand(6, sum(network.input_sizes), generator=rng)
        masks = network.masks(numbers.clamp(1e-3, 1 - 1e-3))

    folded = network.fold(contexts, masks)(arms[:, None])[:, 0]

    assert torch.allclose(folded, network(contexts, arms, masks), atol=1e-5)


def test_a_fold_through_a_map_is_the_map_and_then_the_fold(rng: Generator) -> None:
    network = RewardNetwork(4, (7, 5), rng=rng)
    folded = network.fold(torch.randn(3, 4, generator=rng))
    affine = Affine(torch.randn(4, generator=rng), torch.randn(2, 4, generator=rng))
    points = torch.randn(3, 8, 2, generator=rng)

    assert torch.allclose(folded.through(affine)(points), folded(affine(points)), atol=1e-5)


def test_making_a_network_leaves_torchs_own_random_state_alone(rng: Generator) -> None:
    before = torch.get_rng_state()

    RewardNetwork(4, (7, 5), rng=rng)

    assert torch.equal(torch.get_rng_state(), before)
