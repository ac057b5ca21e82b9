"""A small network learns the deviations of a posterior."""

from __future__ import annotations

import pytest
import torch
from fakes import catalogue_of, vectors_of
from torch import Tensor

from fastbandit.reward import surrogate
from fastbandit.reward.network import RewardNetwork
from fastbandit.reward.surrogate import fit_deviations
from fastbandit.types import Inputs

CONTEXTS = vectors_of(50, 3, seed=1)


def deviations(contexts: Tensor, arms: Tensor) -> Tensor:
    """Return deviations that grow with the distance of an arm from its context."""
    return 2.0 + (contexts - arms).norm(dim=-1)


def network() -> RewardNetwork:
    return RewardNetwork(3, (16,), dropout=False, rng=torch.Generator().manual_seed(2))


def embed(inputs: Inputs) -> Tensor:
    return torch.as_tensor(inputs.dense)


def fitted(made: RewardNetwork) -> tuple[Tensor, Tensor]:
    arms = catalogue_of(vectors_of(80, 3, seed=2))
    contexts, rng = Inputs(dense=CONTEXTS), torch.Generator().manual_seed(3)
    return fit_deviations(made, deviations, arms, embed, contexts, rng=rng)


def test_deviations_of_contexts_and_arms_are_learned() -> None:
    made = network()

    shift, scale = fitted(made)

    contexts, arms = torch.from_numpy(CONTEXTS), torch.from_numpy(vectors_of(50, 3, seed=4))
    true = deviations(contexts, arms)
    found = shift + scale * made(contexts, arms)
    assert (found - true).square().mean() < 0.1 * true.var()
    assert not any(weight.requires_grad for weight in made.parameters())


def test_units_are_the_mean_and_the_spread_of_the_deviations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(surrogate, "_ITERATIONS", 1)

    shift, scale = fitted(network())

    assert 3.0 < shift.item() < 6.0
    assert 0.3 < scale.item() < 3.0
