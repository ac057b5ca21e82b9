"""Concrete Dropout against its formula (FINDINGS, section 4)."""

from __future__ import annotations

import math

import pytest
import torch

from fastbandit.reward.network import ConcreteDropout, RewardNetwork


def test_the_rate_starts_at_a_tenth() -> None:
    assert ConcreteDropout(3).rate.item() == pytest.approx(0.1)


@pytest.mark.parametrize("uniform", [0.01, 0.5, 0.89, 0.91, 0.999])
def test_a_mask_follows_the_formula(uniform: float) -> None:
    p, temperature = 0.1, 0.1
    odds = math.log(p) - math.log(1 - p) + math.log(uniform) - math.log(1 - uniform)
    drop = 1 / (1 + math.exp(-odds / temperature))

    mask = ConcreteDropout(1).mask(torch.tensor([uniform]))

    assert mask.item() == pytest.approx((1 - drop) / (1 - p), rel=1e-4, abs=1e-6)


def test_masks_keep_the_mean_nearly() -> None:
    numbers = torch.rand(100_000, generator=torch.Generator().manual_seed(1))

    assert ConcreteDropout(1).mask(numbers).mean().item() == pytest.approx(1, abs=0.02)


def test_the_penalty_is_the_sum_over_layers_of_weights_and_entropy(rng: torch.Generator) -> None:
    network = RewardNetwork(4, (6, 5), rng=rng)
    with torch.no_grad():
        for number, dropout in enumerate(network.dropouts):
            dropout.logit.fill_(number - 2.0)  # type: ignore[union-attr, operator]

    weights, entropies = 0.0, 0.0
    for number, layer in enumerate(network.layers):
        p = 1 / (1 + math.exp(2.0 - number))
        inputs = layer.in_features
        weights += layer.weight.square().sum().item() / (1 - p)  # type: ignore[operator, union-attr]
        entropies += inputs * (p * math.log(p) + (1 - p) * math.log(1 - p))  # type: ignore[operator]

    assert network.weight_penalty().item() == pytest.approx(weights, rel=1e-5)
    assert network.entropy_penalty().item() == pytest.approx(entropies, rel=1e-5)
