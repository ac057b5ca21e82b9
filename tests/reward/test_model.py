"""What all reward models share: units of rewards, penalties, and normal numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from fakes import vectors_of
from plans import plan_for
from torch import Generator

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.model import NetworkSettings, NeuralReward, box_muller, normals_need
from fastbandit.types import Inputs, Interactions

SETTINGS = NetworkSettings(embedding=4, hidden=(6,), weight_penalty=0.5, dropout_penalty=0.0)


def made(rng: Generator, *, reward: str = "real", **changes: Any) -> NeuralReward:
    settings = replace(SETTINGS, **changes)
    return DropoutReward(plan_for(Dense(2), Dense(2), settings, reward=reward), rng=rng)


def history(rewards: list[float], weights: list[float] | None = None) -> Interactions:
    inputs = Inputs(dense=vectors_of(len(rewards), 2))
    counted = None if weights is None else np.array(weights)
    return Interactions(inputs, inputs, np.array(rewards, np.float32), counted)


def test_real_rewards_are_standardised_by_what_was_seen_and_come_back(rng: Generator) -> None:
    model, rewards = made(rng), torch.tensor([1.0, 5.0])

    model.start(history([1.0, 5.0]), fresh=2)

    assert model.standardised(rewards).tolist() == [-1.0, 1.0]
    assert torch.equal(model.in_rewards(model.standardised(rewards)), rewards)


def test_weights_count_in_the_mean_of_rewards(rng: Generator) -> None:
    model = made(rng)

    model.start(history([1.0, 5.0], [3.0, 1.0]), fresh=2)

    assert float(model.reward_shift) == 2.0


def test_equal_rewards_have_a_scale_of_1(rng: Generator) -> None:
    model = made(rng)

    model.start(history([7.0, 7.0]), fresh=2)

    assert (float(model.reward_shift), float(model.reward_scale)) == (7.0, 1.0)


def test_binary_rewards_are_probabilities(rng: Generator) -> None:
    model = made(rng, reward="binary")

    model.start(history([0.0, 1.0]), fresh=2)

    assert model.in_rewards(torch.tensor([0.0, math.log(3.0)])).tolist() == pytest.approx(
        [0.5, 0.75]
    )


def test_penalties_are_divided_by_observations_unless_constant(rng: Generator) -> None:
    model = made(rng)
    whole = 0.5 * model.network.weight_penalty()

    assert torch.isclose(model.penalty(10.0), whole / 10)
    model.settings = replace(model.settings, penalties="constant")
    assert torch.isclose(model.penalty(10.0), whole)


def test_embeddings_are_penalised_where_it_is_asked_for(rng: Generator) -> None:
    model = made(rng, weight_penalty=0.0, embedding_penalty=2.0)

    encoders = model.context_encoder.weight_penalty() + model.arm_encoder.weight_penalty()
    assert torch.isclose(model.penalty(1.0), 2.0 * encoders)


def test_a_bound_that_is_not_compiled_is_rejected_with_what_would_do(rng: Generator) -> None:
    with pytest.raises(SettingError, match="DropoutReward has no compiled upper"):
        made(rng).compiled("upper")


def test_box_muller_has_radius_and_angle_of_its_uniform_numbers() -> None:
    uniforms = torch.tensor([[math.exp(-2.0), 0.25], [math.exp(-0.5), 0.5]])

    found = box_muller(uniforms, 2)

    wanted = torch.tensor([[0.0, 2.0], [-1.0, 0.0]])  # 2 at 90 degrees, 1 at 180
    assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(("count", "needed"), [(1, 2), (2, 2), (5, 6)])
def test_normal_numbers_come_from_an_even_number_of_uniform_ones(count: int, needed: int) -> None:
    assert normals_need(count) == needed
    assert box_muller(torch.full((3, needed), 0.5), count).shape == (3, count)
