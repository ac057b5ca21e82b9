"""Bootstrapped heads: each is a regression of its own, and a draw is one of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from little_linear_ends import history, made

from fastbandit.errors import SettingError
from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from fastbandit.reward.bootstrap_model import BootstrapPosterior


def test_a_head_of_real_rewards_is_a_weighted_ridge_regression_of_its_own() -> None:
    model, seen = made(BootstrapPosterior(heads=3, prior_precision=2.0)), history()
    x = model.features(model.embed_contexts(seen.contexts), model.embed_arms(seen.arms)).double()
    y = model.standardised(torch.from_numpy(seen.rewards)).double()
    draws = torch.from_numpy(uniforms(decision_seeds(2, 0, 60), 3, Stream.TRAINING)).double()
    weights = -torch.log(draws) * torch.exp(-2 * model.log_noise).double()

    heads = model.centre + model.spread.T * 3**0.5

    for head, weight, prior in zip(heads, weights.T, model._priors(), strict=True):
        precision = 2.0 * torch.eye(x.shape[1]) + x.T @ (weight[:, None] * x)
        wanted = torch.linalg.solve(precision, x.T @ (weight * y) + 2.0 * prior)
        assert torch.allclose(head.double(), wanted, atol=1e-3)


def test_a_head_of_binary_rewards_stands_where_its_likelihood_is_flat() -> None:
    model = made(BootstrapPosterior(heads=3), "binary")
    heads = (model.centre + model.spread.T * 3**0.5).double()

    slopes, _ = model._slopes(history("binary"), heads)

    assert torch.allclose(slopes, heads - model._priors(), atol=0.05)


def test_every_head_is_drawn_and_nothing_else() -> None:
    model = made(BootstrapPosterior(heads=4))

    shifts = model.shift(torch.from_numpy(uniforms(decision_seeds(0, 0, 200), 4, Stream(0))))

    found = {tuple(np.round(row, 5)) for row in shifts.numpy()}
    assert len(found) == 4


def test_a_single_head_is_rejected() -> None:
    with pytest.raises(SettingError, match="at least 2 heads"):
        made(BootstrapPosterior(heads=1))
