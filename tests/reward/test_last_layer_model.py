"""The last layer's posterior is that of Bayesian linear regression."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import vectors_of
from plans import plan_for

from fastbandit.features.kinds import Dense
from fastbandit.reward.last_layer_model import LastLayerReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.types import Inputs, Interactions

CONTEXTS, ARMS = vectors_of(60, 3, seed=1), vectors_of(60, 4, seed=2)
REWARDS = (CONTEXTS[:, 0] * ARMS[:, 0] + 3).astype(np.float32)


def made(*, wide: bool, kind: str) -> tuple[LastLayerReward, Interactions]:
    settings = NetworkSettings(
        embedding=4, hidden=(6, 5), weight_penalty=0.0, dropout_penalty=0.0, wide=wide
    )
    rng = torch.Generator().manual_seed(3)
    plan = plan_for(Dense(3), Dense(4), settings, reward=kind)
    model = LastLayerReward(plan, prior_precision=2.0, rng=rng).requires_grad_(False)
    model.log_noise.fill_(-0.7)
    rewards = REWARDS if kind == "real" else (REWARDS > 3).astype(np.float32)
    history = Interactions(Inputs(dense=CONTEXTS), Inputs(dense=ARMS), rewards)
    model.start(history, fresh=60)
    model.fit_posterior(history)
    return model, history


def features_of(model: LastLayerReward) -> torch.Tensor:
    """Give what acts linearly on the output: last hidden units, inputs of the wide path, 1."""
    contexts = model.embed_contexts(Inputs(dense=CONTEXTS))
    arms = model.embed_arms(Inputs(dense=ARMS))
    inputs = torch.cat([contexts, arms, contexts * arms], dim=1)
    hidden = inputs
    for layer in list(model.network.layers)[:-1]:
        hidden = torch.nn.functional.leaky_relu(layer(hidden), 0.1)
    parts = [hidden, inputs] if model.settings.wide else [hidden]
    return torch.cat([*parts, torch.ones(len(hidden), 1)], dim=1).double()


@pytest.mark.parametrize("wide", [True, False])
def test_mean_and_doubt_are_those_of_bayesian_regression(wide: bool) -> None:
    model, _ = made(wide=wide, kind="real")
    features = features_of(model)
    targets = torch.from_numpy((REWARDS - REWARDS.mean()) / REWARDS.std()).double()
    noise = torch.exp(2 * model.log_noise).double()
    covariance = torch.linalg.inv(
        2.0 * torch.eye(features.shape[1]).double() + features.T @ features / noise
    )
    centre = covariance @ features.T @ targets / noise
    posterior = ((features @ covariance) * features).sum(1).sqrt()

    contexts = model.embed_contexts(Inputs(dense=CONTEXTS))
    points = model.embed_arms(Inputs(dense=ARMS))[:, None]
    mean = model.mean(contexts)(points)[:, 0]
    bound = model.upper(contexts, width=1.5)(points)[:, 0]

    assert np.allclose(mean, features @ centre, atol=1e-3)
    assert np.allclose(bound - mean, 1.5 * posterior, atol=1e-3)


def test_binary_doubt_is_laplaces_about_the_trained_weights() -> None:
    model, _ = made(wide=True, kind="binary")
    features = features_of(model)
    contexts = model.embed_contexts(Inputs(dense=CONTEXTS))
    points = model.embed_arms(Inputs(dense=ARMS))[:, None]
    logits = model.network(contexts, points[:, 0])
    chance = torch.sigmoid(logits).double()
    precision = 2.0 * torch.eye(features.shape[1]).double()
    precision += features.T @ (features * (chance * (1 - chance))[:, None])
    posterior = ((features @ torch.linalg.inv(precision)) * features).sum(1).sqrt()

    mean = model.mean(contexts)(points)[:, 0]
    bound = model.upper(contexts, width=1.0)(points)[:, 0]

    assert np.allclose(mean, logits, atol=1e-4)
    assert np.allclose(bound - mean, posterior, atol=1e-3)


def test_draws_have_the_posteriors_mean_and_spread() -> None:
    model, _ = made(wide=True, kind="real")
    context = model.embed_contexts(Inputs(dense=CONTEXTS[:1]))
    points = model.embed_arms(Inputs(dense=ARMS[:5]))[None]
    rng = torch.Generator().manual_seed(0)
    numbers = torch.rand(8_000, model.noise_size, generator=rng).clamp(1e-6, 1 - 1e-6)

    draws = model.draw(context.expand(8_000, -1), numbers, scale=1.0)(points)

    mean = model.mean(context)(points)[0]
    posterior = model.upper(context, width=1.0)(points)[0] - mean
    assert torch.allclose(draws.std(0), posterior, rtol=0.05)
    assert torch.allclose(draws.mean(0), mean, atol=0.05)
