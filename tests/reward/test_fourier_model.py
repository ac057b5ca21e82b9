"""The posterior over random Fourier features is that of a Gaussian process; bandits on a box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes import same_decision, same_weights, vectors_of
from torch import Tensor

from fastbandit import Bandit, Box, GeneratorSearch, GradientAscent, Ids, Image, Sparse
from fastbandit.errors import SettingError
from fastbandit.exploration import ThompsonSampling, UpperConfidence
from fastbandit.features.kinds import Dense, Point
from fastbandit.reward.dropout_model import DropoutPosterior
from fastbandit.reward.fourier_model import FourierPosterior, FourierReward
from fastbandit.reward.gradient_model import GradientPosterior
from fastbandit.settings.files import Settings
from fastbandit.types import Inputs, Interactions

CONTEXTS = vectors_of(60, 3, seed=1)
POINTS = (2 + 3 * np.random.default_rng(2).random((60, 2))).astype(np.float32)
REWARDS = (5 + CONTEXTS[:, 0] * np.sin(3 * POINTS[:, 0])).astype(np.float32)
BOX = Box([2.0, 2.0], [5.0, 5.0], cover=256)


def history(count: int = 60, *, weights: Any = None) -> Interactions:
    contexts, points = Inputs(dense=CONTEXTS[:count]), Inputs(dense=POINTS[:count])
    return Interactions(contexts, points, REWARDS[:count], weights)


def made(seen: Interactions | None = None, *, features: int = 64, fresh: int = 60) -> FourierReward:
    rng = torch.Generator().manual_seed(3)
    model = FourierReward(
        Dense(3),
        Point((2.0, 2.0), (5.0, 5.0)),
        posterior=FourierPosterior(features=features),
        rng=rng,
    )
    seen = history() if seen is None else seen
    model.start(seen, fresh=fresh)
    model.fit_posterior(seen)
    return model


def seen_by(model: FourierReward) -> tuple[Tensor, Tensor]:
    contexts = model.embed_contexts(Inputs(dense=CONTEXTS))
    return contexts, model.embed_arms(Inputs(dense=POINTS))


def uniforms(model: FourierReward, count: int, *, more: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(5)
    return torch.rand(count, model.noise_size + more, generator=rng).clamp(1e-6, 1 - 1e-6)


# -- the posterior


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 2.0, 60)])
def test_mean_and_deviation_are_those_of_a_gaussian_process(weights: Any) -> None:
    model = made(history(weights=weights))
    contexts, arms = seen_by(model)
    features = model.fourier_features(contexts.double(), arms.double())
    alike = features @ features.T
    counted = torch.ones(60).double() if weights is None else torch.from_numpy(weights)
    noise = torch.diag(model.kernel[1].exp() / counted)
    shift, scale = float(model.reward_shift), float(model.reward_scale)
    targets = (torch.from_numpy(REWARDS).double() - shift) / scale
    known = torch.linalg.solve(alike + noise, alike)
    variance = (alike - alike @ known).diagonal()

    mean = model.mean(contexts)(arms[:, None])[:, 0]
    upper = model.upper(contexts, width=2.0)(arms[:, None])[:, 0]

    assert torch.allclose(mean.double(), known.T @ targets, atol=1e-4)
    assert torch.allclose((upper - mean).double(), 2 * variance.sqrt(), atol=1e-3)


def test_draws_have_the_spread_of_the_posterior() -> None:
    model = made()
    contexts, arms = seen_by(model)
    one = contexts[:1].expand(4000, -1)

    draws = model.draw(one, uniforms(model, 4000), scale=0.5)(arms[None, :5])
    mean = model.mean(contexts[:1])(arms[None, :5])
    deviation = model.upper(contexts[:1], width=0.5)(arms[None, :5]) - mean

    assert torch.allclose(draws.mean(0), mean[0], atol=0.05)
    assert torch.allclose(draws.std(0), deviation[0], rtol=0.1)


def test_the_same_seed_draws_the_same_function() -> None:
    one, two = made(), made()
    contexts, arms = seen_by(one)
    numbers = uniforms(one, 60)

    first, second = (m.draw(contexts, numbers, scale=1.0)(arms[None]) for m in (one, two))

    assert torch.equal(first, second)


@pytest.mark.parametrize("kind", ["draw", "upper", "upper beside others"])
def test_slopes_agree_with_finite_differences(kind: str) -> None:
    model = made().double()
    contexts = torch.from_numpy(CONTEXTS[:4]).double()
    numbers = uniforms(model, 4, more=1).double()
    score = {
        "draw": lambda: model.draw(contexts, numbers[:, 1:], scale=1.0),
        "upper": lambda: model.upper(contexts, width=1.0),
        "upper beside others": lambda: model.upper_beside(contexts, numbers, width=1.0),
    }[kind]()
    points = torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(1)).double()

    _, slopes = score.slope(points)

    for side, step in enumerate(1e-5 * torch.eye(2).double()):
        wanted = (score(points + step) - score(points - step)) / 2e-5
        assert torch.allclose(slopes[..., side], wanted, atol=1e-5)


# -- the kernel


def test_the_kernel_is_fitted_when_the_history_has_grown_by_a_quarter() -> None:
    model = made(history(40))
    first = model.kernel.clone()

    model.fit_posterior(history(49))
    assert torch.equal(model.kernel, first)

    model.fit_posterior(history(50))
    assert not torch.equal(model.kernel, first)


def test_equal_rewards_are_no_obstacle() -> None:
    seen = Interactions(Inputs(dense=CONTEXTS[:1]), Inputs(dense=POINTS[:1]), REWARDS[:1])
    model = made(seen, fresh=1)
    contexts, arms = seen_by(model)

    score = model.upper_beside(contexts, uniforms(model, 60, more=1), width=1.0)

    assert score(arms[None]).isfinite().all()


# -- decisions before the next update


def test_a_decision_alone_has_the_plain_bound() -> None:
    model = made(fresh=1)
    contexts, arms = seen_by(model)

    beside = model.upper_beside(contexts, uniforms(model, 60, more=1), width=0.5)(arms[None])

    assert torch.allclose(beside, model.upper(contexts, width=0.5)(arms[None]), atol=1e-5)


def test_decisions_of_a_batch_spread_over_the_box() -> None:
    def spread(batched: bool) -> float:
        explore = UpperConfidence(1.0, batched=batched)
        bandit = trained(exploration=explore, context=1, contexts=np.ones((60, 1)))
        return float(np.asarray(bandit.select(np.ones((40, 1))).arms).std(axis=0).sum())

    assert spread(False) < 0.1 < spread(True)


def test_without_exploring_all_explorations_agree() -> None:
    model = made()
    contexts, arms = seen_by(model)
    seeds = np.arange(60, dtype=np.uint64)
    explorations = (ThompsonSampling(0.7), UpperConfidence(1.0, batched=True), UpperConfidence())

    quiet = [e.quiet().score(model, contexts, seeds=seeds)(arms[None]) for e in explorations]

    assert torch.allclose(quiet[0], quiet[1], atol=1e-4)
    assert torch.allclose(quiet[0], quiet[2], atol=1e-4)


# -- bandits


def trained(contexts: Any = CONTEXTS, **settings: Any) -> Bandit:
    plan: dict[str, Any] = {"arms": BOX, "context": 3, "reward": "real", "progress": False}
    bandit = Bandit(**{**plan, **settings})
    bandit.update(contexts=contexts, arms=POINTS, rewards=REWARDS)
    return bandit


@pytest.mark.parametrize("explore", ["ts", "ucb", "greedy"])
def test_a_box_has_fourier_features_and_is_climbed_by_default(explore: str) -> None:
    plan = Bandit(arms=BOX, context=3, exploration=explore).blueprint

    assert plan.posterior == FourierPosterior()
    assert isinstance(plan.search, GradientAscent)


@pytest.mark.parametrize(
    ("settings", "posterior"),
    [
        ({"posterior": "neural"}, DropoutPosterior),
        ({"posterior": "neural", "exploration": "ucb"}, GradientPosterior),
    ],
)
def test_a_box_may_still_have_a_network_and_a_generator(
    settings: dict[str, Any], posterior: type
) -> None:
    plan = Bandit(arms=BOX, context=3, **settings).blueprint

    assert isinstance(plan.posterior, posterior)
    assert isinstance(plan.search, GeneratorSearch)


def test_settings_reach_the_fourier_features() -> None:
    settings = Settings({"posterior.fourier": {"features": 32}})

    assert Bandit(arms=BOX, context=3, preset=settings).blueprint.posterior == FourierPosterior(32)


def test_fourier_features_need_a_box() -> None:
    with pytest.raises(SettingError, match="arms that fill a box: got arms of kind Dense"):
        Bandit(arms=np.eye(3), context=2, posterior="fourier")


@pytest.mark.parametrize("explore", ["ts", "ucb"])
def test_a_saved_bandit_goes_on_where_it_stopped(explore: str, tmp_path: Path) -> None:
    bandit = trained(exploration=explore, posterior=FourierPosterior(features=48))
    bandit.save(tmp_path / "saved")

    loaded = Bandit.load(tmp_path / "saved", progress=False)

    assert same_weights(bandit, loaded)
    assert same_decision(bandit.select(CONTEXTS), loaded.select(CONTEXTS))
    for each in (bandit, loaded):
        each.update(contexts=CONTEXTS[:20], arms=POINTS[:20], rewards=REWARDS[:20])
    assert same_weights(bandit, loaded)


@pytest.mark.parametrize("explore", ["ts", "ucb"])
def test_a_decision_does_not_depend_on_those_beside_it(explore: str) -> None:
    bandit = trained(exploration=explore)
    decision = bandit.select(CONTEXTS)

    alone = bandit.select(CONTEXTS[7:8], seeds=decision.seeds[7:8])

    assert np.allclose(np.asarray(alone.arms)[0], np.asarray(decision.arms)[7], atol=0.02)


def test_the_search_comes_near_a_fine_cover() -> None:
    for explore in ("ts", "ucb"):
        assert trained(exploration=explore).audit(CONTEXTS).quality > 0.99


@pytest.mark.parametrize("search", ["generator", "exhaustive"])
def test_fourier_features_go_with_every_search(search: str) -> None:
    quick = {"training.generator": {"iterations": 20, "pairs": 128, "sample": 64}}
    bandit = trained(search=search, preset=Settings(quick))

    assert np.asarray(bandit.select(CONTEXTS).arms).shape == (60, 2)


@pytest.mark.parametrize(
    ("context", "contexts"),
    [
        (Ids(30), np.arange(60) % 30),
        (Image(8, 8), np.random.default_rng(1).random((60, 8, 8))),
        (Sparse(4), np.abs(vectors_of(60, 4))),
        (Dense(40), vectors_of(60, 40)),
    ],
)
def test_contexts_of_every_kind_are_seen(context: Any, contexts: Any) -> None:
    bandit = trained(context=context, contexts=contexts)

    assert np.isfinite(bandit.select(contexts).scores).all()


def test_the_best_point_is_found_for_each_context() -> None:
    rng = np.random.default_rng(4)
    contexts = rng.uniform(-1, 1, size=(300, 1)).astype(np.float32)
    points = rng.uniform(2, 5, size=(300, 2)).astype(np.float32)
    bandit = Bandit(arms=BOX, context=1, reward="real", progress=False)
    best = 3.5 + contexts[:, 0]
    bandit.update(contexts=contexts, arms=points, rewards=-np.square(points[:, 0] - best))

    chosen = np.asarray(bandit.select(contexts[:40], explore=False).arms)

    assert np.abs(chosen[:, 0] - best[:40]).mean() < 0.1


def test_rewards_of_0_and_1_are_learned() -> None:
    rng = np.random.default_rng(4)
    points = rng.uniform(2, 5, size=(400, 2)).astype(np.float32)
    contexts = np.ones((400, 1), dtype=np.float32)
    rewards = rng.random(400) < np.exp(-np.square(points[:, 0] - 4))
    bandit = Bandit(arms=BOX, context=1, progress=False)
    bandit.update(contexts=contexts, arms=points, rewards=rewards.astype(float))

    chosen = np.asarray(bandit.select(contexts[:40]).arms)

    assert np.abs(chosen[:, 0] - 4).mean() < 0.5


def test_rewards_are_in_their_own_units() -> None:
    decision = trained(exploration="greedy").select(CONTEXTS)

    assert 4 < decision.scores.min() <= decision.scores.max() < 9


def test_a_box_cannot_be_frozen() -> None:
    with pytest.raises(SettingError, match="arm space"):
        trained().freeze()
