"""The folded bound is the naive one: sqrt(gᵀ Z⁻¹ g / m) with gradients from autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fakes import vectors_of
from plans import plan_for
from torch import Tensor

from fastbandit.features.kinds import Dense
from fastbandit.reward.gradient_model import GradientPosterior, GradientReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.types import Inputs, Interactions

SHAPES = [
    {"hidden": (6,)},
    {"hidden": (6, 5)},
    {"hidden": (6, 5), "product": False, "wide": False},
]
HISTORY = Interactions(
    Inputs(dense=vectors_of(40, 3, seed=1)),
    Inputs(dense=vectors_of(40, 5, seed=2)),
    vectors_of(40, 1, seed=3)[:, 0],
)


def made(shape: dict[str, Any], **more: Any) -> GradientReward:
    settings = NetworkSettings(
        **{"embedding": 4, "weight_penalty": 0.0, "dropout_penalty": 0.0, **shape}
    )
    rng = torch.Generator().manual_seed(3)
    plan = plan_for(Dense(3), Dense(5), settings)
    model = GradientReward(plan, GradientPosterior(ridge=0.5, **more), rng=rng)
    model.start(HISTORY, fresh=len(HISTORY))
    return model


def naive_gradients(model: GradientReward, contexts: Inputs, arms: Inputs) -> Tensor:
    """Give each pair's gradient: the head's layers (weight row by row with its bias), then wide."""
    network = model.network
    with torch.no_grad():
        embedded = model.embed_contexts(contexts), model.embed_arms(arms)
    rows = []
    for context, arm in zip(*embedded, strict=True):
        reward = network(context[None], arm[None]).sum()
        layers: list[Any] = list(network.layers)
        parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
        if network.wide is not None:
            parameters.append(network.wide.weight)
        slopes = list(torch.autograd.grad(reward, parameters))
        wide = [slopes.pop().flatten()] if network.wide is not None else []
        joined = [
            torch.cat([w, b[:, None]], dim=1).flatten()
            for w, b in zip(slopes[::2], slopes[1::2], strict=True)
        ]
        rows.append(torch.cat([*joined, *wide]))
    return torch.stack(rows).double()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("full_below", [2048, 1], ids=["full", "diagonal"])
@pytest.mark.parametrize("gradients", ["current", "when chosen"])
def test_the_bound_equals_the_naive_formula(
    shape: dict[str, Any], full_below: int, gradients: str
) -> None:
    model = made(shape, full_below=full_below, gradients=gradients)
    model.fit_posterior(HISTORY)
    width_of_network = model.network.input_sizes[-1]
    past = naive_gradients(model, HISTORY.contexts, HISTORY.arms)
    information = 0.5 * torch.eye(past.shape[1]).double() + past.T @ past / width_of_network
    if full_below == 1:
        information = torch.diag(information.diagonal())
    contexts, arms = Inputs(dense=vectors_of(7, 3, seed=8)), Inputs(dense=vectors_of(7, 5, seed=9))
    now = naive_gradients(model, contexts, arms)
    variance = ((now @ torch.linalg.inv(information)) * now).sum(1) / width_of_network

    with torch.no_grad():
        embedded = model.embed_contexts(contexts)
        points = model.embed_arms(arms)[:, None]
        mean = model.mean(embedded)(points)[:, 0]
        bound = model.upper(embedded, width=2.0)(points)[:, 0]

    assert model.is_full == (full_below > 1)
    assert np.allclose((bound - mean).double(), 2 * variance.sqrt(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("full_below", [2048, 1], ids=["full", "diagonal"])
def test_draws_spread_as_the_bound_says(full_below: int) -> None:
    model = made(SHAPES[0], full_below=full_below)
    with torch.no_grad():
        model.fit_posterior(HISTORY)
        context = model.embed_contexts(Inputs(dense=vectors_of(1, 3, seed=8)))
        points = model.embed_arms(Inputs(dense=vectors_of(4, 5, seed=9)))[None]
        posterior = model.upper(context, width=1.0)(points) - model.mean(context)(points)
        rng = torch.Generator().manual_seed(0)
        numbers = torch.rand(8_000, model.noise_size, generator=rng).clamp(1e-6, 1 - 1e-6)
        draws = model.draw(context.expand(8_000, -1), numbers, scale=1.0)(points)

    assert torch.allclose(draws.std(0), posterior[0], rtol=0.05)
    assert torch.allclose(draws.mean(0), model.mean(context)(points)[0], atol=0.05)


def test_what_was_tried_is_less_uncertain() -> None:
    model = made(SHAPES[0])
    with torch.no_grad():
        contexts = model.embed_contexts(HISTORY.contexts)
        points = model.embed_arms(HISTORY.arms)[:, None]
        before = model.upper(contexts, width=1.0)(points)
        model.fit_posterior(HISTORY)
        after = model.upper(contexts, width=1.0)(points)

    assert (after < before).all()


def test_a_posterior_fitted_twice_is_that_fitted_once() -> None:
    model = made(SHAPES[0])
    model.fit_posterior(HISTORY)
    once = model.inverse.clone()

    model.fit_posterior(HISTORY)

    assert torch.allclose(model.inverse, once)
