"""Variational weights: their divergence, and the deviations that training finds."""

from __future__ import annotations

import torch
from little_linear_ends import history, made

from fastbandit.reward.variational_model import VariationalPosterior
from fastbandit.training.fit_reward import RewardFit, fit_reward


def test_the_divergence_is_that_of_two_gaussians() -> None:
    model = made(VariationalPosterior(prior_precision=4.0))
    mine = torch.distributions.Normal(model.trained_weights(), model.log_deviation.exp())
    prior = torch.distributions.Normal(0.0, 0.5)

    wanted = torch.distributions.kl_divergence(mine, prior).sum()

    assert torch.allclose(model.divergence(), wanted, rtol=1e-4)


def test_trained_deviations_are_those_of_each_weight_given_all_others() -> None:
    rng = torch.Generator().manual_seed(3)
    model = made(VariationalPosterior())
    fit_reward(model.requires_grad_(True), history(), RewardFit(iterations=400, batch=60), rng=rng)
    seen = history()
    x = model.features(model.embed_contexts(seen.contexts), model.embed_arms(seen.arms))
    sure = torch.exp(-2 * model.log_noise)
    alone = 1 / (1.0 + sure * x.square().sum(0))  # each weight given all others

    assert torch.allclose(model.log_deviation.exp(), alone.sqrt(), rtol=0.35)
