"""Bootstrapped heads and variational weights: their posteriors, and bandits that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes import same_decision, same_weights, vectors_of

from fastbandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from fastbandit.reward.bootstrap_model import BootstrapPosterior, BootstrapReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.reward.variational_model import VariationalPosterior, VariationalReward
from fastbandit.settings.files import Settings
from fastbandit.training.fit_reward import RewardFit, fit_reward
from fastbandit.types import Inputs, Interactions

NETWORK = NetworkSettings(embedding=4, hidden=(6,), weight_penalty=0.1, dropout_penalty=1.0)
CONTEXTS, ARMS = vectors_of(60, 3, seed=1), vectors_of(60, 2, seed=2)
QUICK = {
    "training.reward": {"iterations": 40, "batch": 64},
    "training.generator": {"iterations": 20, "pairs": 128, "sample": 64},
}


def history(kind: str = "real", repeats: int = 1) -> Interactions:
    rewards = CONTEXTS[:, 0] * ARMS[:, 0]
    rewards = (rewards > 0).astype(np.float32) if kind == "binary" else rewards
    three = [np.tile(part, (repeats, 1)) for part in (CONTEXTS, ARMS, rewards[:, None])]
    return Interactions(Inputs(dense=three[0]), Inputs(dense=three[1]), three[2][:, 0])


def made(make: type[Any], kind: str = "real", repeats: int = 1, **more: Any) -> Any:
    rng = torch.Generator().manual_seed(3)
    model = make(Dense(3), Dense(2), settings=NETWORK, reward=kind, rng=rng, **more)
    told = history(kind, repeats)
    model.start(told, fresh=len(told))
    fit_reward(model, told, RewardFit(iterations=400, batch=64), rng=rng)
    model.fit_posterior(told)
    return model.requires_grad_(False)


# -- bootstrapped heads


def test_a_head_of_real_rewards_is_a_weighted_ridge_regression_of_its_own() -> None:
    model, told = made(BootstrapReward, heads=3, prior_precision=2.0), history()
    x = model.features(model.embed_contexts(told.contexts), model.embed_arms(told.arms)).double()
    y = model.standardised(torch.from_numpy(told.rewards)).double()
    lots = torch.from_numpy(uniforms(decision_seeds(2, 0, 60), 3, Stream.TRAINING)).double()
    weights = -torch.log(lots) * torch.exp(-2 * model.log_noise).double()

    heads = model.centre + model.spread.T * 3**0.5

    for head, weight, prior in zip(heads, weights.T, model._priors(), strict=True):
        precision = 2.0 * torch.eye(x.shape[1]) + x.T @ (weight[:, None] * x)
        wanted = torch.linalg.solve(precision, x.T @ (weight * y) + 2.0 * prior)
        assert torch.allclose(head.double(), wanted, atol=1e-3)


def test_a_head_of_binary_rewards_stands_where_its_likelihood_is_flat() -> None:
    model = made(BootstrapReward, "binary", heads=3)
    heads = (model.centre + model.spread.T * 3**0.5).double()

    slopes, _ = model._slopes(history("binary"), heads)

    assert torch.allclose(slopes, heads - model._priors(), atol=0.05)


def test_every_head_is_drawn_and_nothing_else() -> None:
    model = made(BootstrapReward, heads=4)

    shifts = model.shift(torch.from_numpy(uniforms(decision_seeds(0, 0, 200), 4, Stream(0))))

    found = {tuple(np.round(row, 5)) for row in shifts.numpy()}
    assert len(found) == 4


@pytest.mark.parametrize("make", [BootstrapReward, VariationalReward])
@pytest.mark.parametrize("kind", ["real", "binary"])
def test_more_data_leaves_less_doubt(make: type[Any], kind: str) -> None:
    def posterior(repeats: int) -> float:
        model = made(make, kind, repeats)
        contexts, arms = Inputs(dense=CONTEXTS[:8]), Inputs(dense=ARMS[:8])
        embedded = model.embed_contexts(contexts), model.embed_arms(arms)[None]
        bound, mean = model.upper(embedded[0], width=1.0), model.mean(embedded[0])
        return float((bound(embedded[1]) - mean(embedded[1])).mean())

    assert posterior(20) < 0.8 * posterior(1)


def test_a_single_head_is_refused() -> None:
    with pytest.raises(SettingError, match="at least 2 heads"):
        made(BootstrapReward, heads=1)


# -- variational weights


def test_the_divergence_is_that_of_two_gaussians() -> None:
    model = made(VariationalReward, prior_precision=4.0)
    mine = torch.distributions.Normal(model.trained_weights(), model.log_deviation.exp())
    prior = torch.distributions.Normal(0.0, 0.5)

    wanted = torch.distributions.kl_divergence(mine, prior).sum()

    assert torch.allclose(model.divergence(), wanted, rtol=1e-4)


def test_trained_deviations_are_those_of_each_weight_given_all_others() -> None:
    rng = torch.Generator().manual_seed(3)
    model = made(VariationalReward)
    fit_reward(model.requires_grad_(True), history(), RewardFit(iterations=400, batch=60), rng=rng)
    told = history()
    x = model.features(model.embed_contexts(told.contexts), model.embed_arms(told.arms))
    sure = torch.exp(-2 * model.log_noise)
    alone = 1 / (1.0 + sure * x.square().sum(0))  # each weight given all others

    assert torch.allclose(model.log_deviation.exp(), alone.sqrt(), rtol=0.35)


# -- bandits


@pytest.mark.parametrize("posterior", ["bootstrap", "variational"])
@pytest.mark.parametrize("search", ["generator", "ascent", "exhaustive"])
@pytest.mark.parametrize("explore", ["ts", "ucb", "greedy"])
def test_a_bandit_decides_replays_and_goes_on_after_loading(
    posterior: str, search: str, explore: str, tmp_path: Path
) -> None:
    bandit = Bandit(
        arms=vectors_of(30, 2, seed=2),
        context=3,
        posterior=posterior,
        search=search,
        exploration=explore,
        preset=Settings(QUICK),
        progress=False,
    )
    told: dict[str, Any] = {
        "contexts": CONTEXTS,
        "arms": np.arange(60) % 30,
        "rewards": [0, 1] * 30,
    }
    bandit.update(**told)
    first = bandit.select(CONTEXTS)
    bandit.save(tmp_path / "kept")

    loaded = Bandit.load(tmp_path / "kept", progress=False)

    assert same_decision(bandit.select(CONTEXTS, seeds=first.seeds), first)
    assert same_decision(loaded.select(CONTEXTS, seeds=first.seeds), first)
    for each in (bandit, loaded):
        each.update(**told)
    assert same_weights(bandit, loaded)


def test_settings_reach_both_kinds_of_doubt() -> None:
    sections: dict[str, dict[str, Any]] = {
        "posterior.bootstrap": {"heads": 7},
        "posterior.variational": {"prior_precision": 3.0},
    }
    settings = Settings(sections)

    def posterior(name: str) -> Any:
        return Bandit(arms=ARMS, context=3, posterior=name, preset=settings).blueprint.posterior

    assert posterior("bootstrap") == BootstrapPosterior(heads=7)
    assert posterior("variational") == VariationalPosterior(prior_precision=3.0)


def many_arms(posterior: str, explore: str = "ts") -> Bandit:
    bandit = Bandit(
        arms=vectors_of(600, 2, seed=2),
        context=3,
        posterior=posterior,
        exploration=explore,
        preset=Settings(QUICK),
        progress=False,
    )
    bandit.update(contexts=CONTEXTS, arms=np.arange(60), rewards=[0, 1] * 30)
    return bandit


@pytest.mark.parametrize(
    ("posterior", "explore"), [("variational", "ts"), ("bootstrap", "ts"), ("bootstrap", "greedy")]
)
def test_what_can_be_frozen_chooses_the_same_arms(posterior: str, explore: str) -> None:
    bandit = many_arms(posterior, explore)

    frozen = bandit.freeze().select(CONTEXTS, seeds=bandit.select(CONTEXTS).seeds)

    inputs = bandit.blueprint.context.read(CONTEXTS, what="contexts")
    by_torch = bandit.policy.select(inputs, seeds=frozen.seeds)
    scores = bandit.policy.model.in_rewards(by_torch.scores)
    assert (frozen.rows == by_torch.rows.numpy()).mean() > 0.95
    assert np.allclose(frozen.scores, scores.numpy(), atol=1e-3)
