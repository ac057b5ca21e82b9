"""A posterior from masks that are held still."""

from __future__ import annotations

import torch
from fakes import vectors_of
from plans import plan_for

from fastbandit.features.kinds import Dense
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.types import Inputs

SETTINGS = NetworkSettings(embedding=4, hidden=(6,), weight_penalty=0.1, dropout_penalty=1.0)


def made(**changes: object) -> DropoutReward:
    rng = torch.Generator().manual_seed(3)
    model = DropoutReward(plan_for(Dense(3), Dense(4), SETTINGS), rng=rng)
    return model.requires_grad_(False)


def test_a_draw_tells_its_masks_as_noise() -> None:
    model = made()
    contexts = model.embed_contexts(Inputs(dense=vectors_of(5, 3)))
    numbers = torch.rand(5, model.noise_size, generator=torch.Generator().manual_seed(1))

    score = model.draw(contexts, numbers.clamp(1e-6, 1 - 1e-6), scale=1.0)
    calm = model.draw(contexts, numbers.clamp(1e-6, 1 - 1e-6), scale=0.0)

    assert score.noise.shape == (5, 12 + 6)
    assert score.noise.min() >= -1
    assert not calm.noise.any()


def test_a_draw_is_the_network_under_its_masks() -> None:
    model = made()
    contexts = model.embed_contexts(Inputs(dense=vectors_of(5, 3)))
    arms = model.embed_arms(Inputs(dense=vectors_of(5, 4)))
    numbers = torch.rand(5, model.noise_size, generator=torch.Generator().manual_seed(1))
    numbers = numbers.clamp(1e-6, 1 - 1e-6)

    score = model.draw(contexts, numbers, scale=1.0)

    expected = model.network(contexts, arms, model.network.masks(numbers))
    assert torch.allclose(score(arms[:, None])[:, 0], expected, atol=1e-5)


def test_penalties_are_per_observation() -> None:
    model = made()

    assert torch.allclose(model.penalty(10), 10 * model.penalty(100))
