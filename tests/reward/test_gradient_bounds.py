"""Bounds and draws from gradients: few arms or many, arms or points, all agree."""

from __future__ import annotations

import pytest
import torch
from fakes import vectors_of
from plans import plan_for
from torch import Generator, Tensor

from fastbandit.features.kinds import Dense
from fastbandit.reward.gradient_bounds import LinearDraw, UpperBound, outer, trace_of
from fastbandit.reward.gradient_model import GradientPosterior, GradientReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.reward.network import RewardNetwork
from fastbandit.score import Affine
from fastbandit.types import Inputs, Interactions

HISTORY = Interactions(
    Inputs(dense=vectors_of(30, 3, seed=1)),
    Inputs(dense=vectors_of(30, 2, seed=2)),
    vectors_of(30, 1, seed=3)[:, 0],
)


def trained(*, wide: bool = True) -> GradientReward:
    settings = NetworkSettings(
        embedding=4, hidden=(6,), weight_penalty=0.0, dropout_penalty=0.0, wide=wide
    )
    plan, rng = plan_for(Dense(3), Dense(2), settings), torch.Generator().manual_seed(3)
    model = GradientReward(plan, GradientPosterior(), rng=rng).requires_grad_(False)
    model.start(HISTORY, fresh=30)
    model.fit_posterior(HISTORY)
    return model


def embedded(model: GradientReward, arms: int) -> tuple[Tensor, Tensor]:
    contexts = model.embed_contexts(Inputs(dense=vectors_of(2, 3, seed=8)))
    return contexts, model.embed_arms(Inputs(dense=vectors_of(arms, 2, seed=9)))[None]


def test_many_arms_at_once_have_the_bounds_of_a_few_at_a_time() -> None:
    model = trained()
    contexts, arms = embedded(model, 40)
    bound = model.upper(contexts, width=2.0)

    few = torch.cat([bound(arms[:, :20]), bound(arms[:, 20:])], dim=1)

    assert torch.allclose(bound(arms), few, atol=1e-4)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("count", [5, 40])
def test_a_bound_through_a_map_is_the_map_and_then_the_bound(wide: bool, count: int) -> None:
    model, rng = trained(wide=wide), torch.Generator().manual_seed(5)
    bound = model.upper(embedded(model, 1)[0], width=2.0).function
    affine = Affine(torch.randn(4, generator=rng), torch.randn(2, 4, generator=rng))
    points = torch.randn(2, count, 2, generator=rng)

    assert isinstance(bound, UpperBound)
    assert torch.allclose(bound.through(affine)(points), bound(affine(points)), atol=1e-3)


@pytest.mark.parametrize("wide", [True, False])
def test_a_draw_through_a_map_is_the_map_and_then_the_draw(wide: bool) -> None:
    model, rng = trained(wide=wide), torch.Generator().manual_seed(5)
    numbers = torch.rand(2, model.noise_size, generator=rng).clamp(1e-6, 1 - 1e-6)
    draw = model.draw(embedded(model, 1)[0], numbers, scale=1.0).function
    affine = Affine(torch.randn(4, generator=rng), torch.randn(2, 4, generator=rng))
    points = torch.randn(2, 6, 2, generator=rng)

    assert isinstance(draw, LinearDraw)
    assert torch.allclose(draw.through(affine)(points), draw(affine(points)), atol=1e-3)


def test_a_trace_has_the_rewards_of_the_network(rng: Generator) -> None:
    network = RewardNetwork(4, (7, 5), rng=rng, dropout=False).requires_grad_(False)
    folded = network.fold(torch.randn(3, 4, generator=rng))
    arms = torch.randn(3, 6, 4, generator=rng)

    trace = trace_of(folded, network, arms)

    assert torch.allclose(trace.rewards, folded(arms), atol=1e-5)


def test_the_gradient_of_a_layer_is_its_slopes_times_its_inputs_and_1() -> None:
    found = outer(torch.tensor([2.0, 3.0]), torch.tensor([5.0, 7.0]))

    assert found.tolist() == [10.0, 14.0, 2.0, 15.0, 21.0, 3.0]
