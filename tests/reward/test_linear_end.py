"""The linear end of a network: its features times its weights are the network."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fakes import vectors_of
from plans import plan_for
from torch import Generator, Tensor

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.reward.linear_end import LinearEnd
from fastbandit.reward.model import NetworkSettings
from fastbandit.types import Inputs

SETTINGS = NetworkSettings(embedding=4, hidden=(6, 5), weight_penalty=0.0, dropout_penalty=0.0)


class OneColumn(LinearEnd):
    """A draw moves all weights along one column of the spread."""

    def shift(self, uniforms: Tensor) -> Tensor:
        return uniforms * self.spread[:, 0]


def made(rng: Generator, *, wide: bool = True) -> OneColumn:
    plan = plan_for(Dense(3), Dense(2), replace(SETTINGS, wide=wide))
    model = OneColumn(plan, 4.0, columns=1, rng=rng).requires_grad_(False)
    model.centre.copy_(model.trained_weights())
    return model


def embedded(model: OneColumn) -> tuple[Tensor, Tensor]:
    contexts = model.embed_contexts(Inputs(dense=vectors_of(5, 3, seed=1)))
    return contexts, model.embed_arms(Inputs(dense=vectors_of(5, 2, seed=2)))


@pytest.mark.parametrize("wide", [True, False])
def test_features_times_trained_weights_are_what_the_network_predicts(
    wide: bool, rng: Generator
) -> None:
    model = made(rng, wide=wide)
    contexts, arms = embedded(model)

    predicted = model.features(contexts, arms) @ model.trained_weights()

    assert torch.allclose(predicted, model.network(contexts, arms), atol=1e-5)


@pytest.mark.parametrize("wide", [True, False])
def test_a_draw_has_the_centre_moved_by_scale_times_the_shift(wide: bool, rng: Generator) -> None:
    model = made(rng, wide=wide)
    model.spread.fill_(0.3)
    contexts, arms = embedded(model)

    scores = model.draw(contexts, torch.full((5, 1), 0.5), scale=2.0)(arms[:, None])[:, 0]

    weights = model.centre + 2.0 * 0.5 * 0.3
    assert torch.allclose(scores, model.features(contexts, arms) @ weights, atol=1e-5)


def test_an_upper_bound_adds_width_times_the_length_of_the_features_under_the_spread(
    rng: Generator,
) -> None:
    model = made(rng)
    contexts, arms = embedded(model)
    points = arms[:, None]

    bonus = model.upper(contexts, width=3.0)(points) - model.mean(contexts)(points)

    lengths = (model.features(contexts, arms) @ model.spread[:, 0]).abs()
    assert torch.allclose(bonus[:, 0], 3.0 * lengths, atol=1e-5)


def test_before_any_reward_the_spread_is_that_of_the_prior(rng: Generator) -> None:
    model = made(rng)

    assert model.spread[0, 0] == 0.5  # the root of 1 / 4
    assert model.spread.shape == (sum(model.parts), 1)


def test_draws_are_compiled_and_bounds_are_not(rng: Generator) -> None:
    model = made(rng)

    assert model.compiled("draw").draws_from == "last-layer"
    with pytest.raises(SettingError, match="has no compiled upper"):
        model.compiled("upper")
