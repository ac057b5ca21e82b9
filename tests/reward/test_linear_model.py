"""The regression on principal directions has an exact posterior."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from fakes import vectors_of
from plans import plan_for

from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.features.text_columns import Text
from fastbandit.reward.linear_model import LinearReward, fitted
from fastbandit.reward.model import NetworkSettings
from fastbandit.types import Inputs, Interactions

CONTEXTS, ARMS = vectors_of(300, 3, seed=1), vectors_of(300, 2, seed=2)


def regression(rewards: np.ndarray) -> LinearReward:
    settings = NetworkSettings(embedding=4, hidden=(6,), weight_penalty=0.0, dropout_penalty=0.0)
    rng = torch.Generator().manual_seed(3)
    model = LinearReward(plan_for(Dense(3), Dense(2), settings), rng=rng)
    history = Interactions(Inputs(dense=CONTEXTS), Inputs(dense=ARMS), rewards)
    model.observe_arms(history.arms)
    model.start(history, fresh=len(history))
    model.fit_posterior(history)
    return model.requires_grad_(False)


def predicted_by(model: LinearReward) -> np.ndarray:
    contexts = model.embed_contexts(Inputs(dense=CONTEXTS))
    arms = model.embed_arms(Inputs(dense=ARMS))
    return np.asarray(model.in_rewards(model.mean(contexts)(arms[:, None])[:, 0]))


def test_the_regression_integrates_constants_out_exactly() -> None:
    rng = np.random.default_rng(0)
    z, rows = np.c_[rng.normal(size=(40, 2)), np.ones(40)], rng.integers(0, 7, 40)
    rewards, prior = rng.normal(size=40), np.diag([1.0, 3.0, 1e-6])

    centre, spread, noise = fitted(
        z, rewards, np.ones(40), rows, prior=prior, own=0.5, is_binary=False
    )

    flags = np.eye(7)[rows]
    covariance = noise * np.eye(40) + 0.25 * flags @ flags.T
    precision = z.T @ np.linalg.solve(covariance, z) + prior
    np.testing.assert_allclose(spread @ spread.T, np.linalg.inv(precision), rtol=1e-3, atol=1e-4)
    exact = np.linalg.solve(precision, z.T @ np.linalg.solve(covariance, rewards))
    np.testing.assert_allclose(centre, exact, rtol=1e-3, atol=1e-3)


def test_rewards_that_are_linear_in_context_and_arm_are_predicted() -> None:
    rewards = 3 + CONTEXTS[:, 0] - 2 * ARMS[:, 1]

    assert np.abs(predicted_by(regression(rewards)) - rewards).max() < 0.1


def test_a_product_of_context_and_arm_is_seen() -> None:
    rewards = ARMS[:, 1] + CONTEXTS[:, 0] * ARMS[:, 0]

    model = regression(rewards)

    assert model.network.product
    assert np.var(rewards - predicted_by(model)) / np.var(rewards) < 0.1


def test_products_that_explain_nothing_are_left_out_again() -> None:
    model, plain = regression(CONTEXTS[:, 0] * ARMS[:, 0]), ARMS[:, 0] + CONTEXTS[:, 1]
    assert model.network.product
    history = Interactions(Inputs(dense=CONTEXTS), Inputs(dense=ARMS), plain)

    model.observe_arms(history.arms)
    model.start(history, fresh=len(history))
    model.fit_posterior(history)

    assert not model.network.product
    assert torch.equal(model.embed_arms(history.arms), regression(plain).embed_arms(history.arms))
    np.testing.assert_allclose(predicted_by(model), predicted_by(regression(plain)), atol=1e-5)


@pytest.mark.parametrize("first", [0, 1])
def test_a_saved_regression_is_loaded_with_products_or_without(first: int) -> None:
    each = [regression(ARMS[:, 0]), regression(CONTEXTS[:, 0] * ARMS[:, 0])]
    saved, other = each[first], each[1 - first]
    assert saved.network.product != other.network.product

    other.load_state_dict(saved.state_dict())

    assert other.noise_size == saved.noise_size
    np.testing.assert_array_equal(predicted_by(other), predicted_by(saved))


def test_directions_stay_as_they_were_first_found() -> None:
    model = regression(CONTEXTS[:, 0])
    before = model.embed_arms(Inputs(dense=ARMS))

    model.observe_arms(Inputs(dense=ARMS[:, :1].repeat(2, axis=1)))

    assert before.any()
    assert torch.equal(model.embed_arms(Inputs(dense=ARMS)), before)


def matched(rewards_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[float, float]:
    """Learn texts of 600 pairs; return how far predictions follow new ones, and the mean match."""
    rng = np.random.default_rng(5)
    words = np.array([f"a{n}" for n in range(6)] + [f"b{n}" for n in range(6)])
    topics = rng.integers(0, 2, (2, 1200))
    texts = [[" ".join(words[6 * t + rng.integers(0, 6, 4)]) for t in side] for side in topics]
    space = Text("about", dim=4).fitted([*texts[0], *texts[1]])
    kind = Dense.of(Schema((space,)))
    settings = NetworkSettings(embedding=4, hidden=(6,), weight_penalty=0.0, dropout_penalty=0.0)
    model = LinearReward(
        plan_for(kind, kind, settings), rng=torch.Generator().manual_seed(3)
    ).requires_grad_(False)
    contexts, arms = (kind.read({"about": side}, what="texts") for side in texts)
    rewards = rewards_of(*topics).astype(np.float32)
    history = Interactions(contexts.take(slice(600)), arms.take(slice(600)), rewards[:600])
    model.observe_arms(history.arms)
    model.start(history, fresh=600)
    model.fit_posterior(history)
    seen = model.features(model.embed_contexts(contexts), model.embed_arms(arms)) @ model.centre
    size = model.settings.embedding
    products = model.centre[-1 - size : -1]
    return float(np.corrcoef(seen.numpy()[600:], rewards[600:])[0, 1]), float(products[:4].mean())


def test_texts_that_are_alike_are_learned_from_few_rewards() -> None:
    follows, weight = matched(lambda one, other: one == other)

    assert follows > 0.8
    assert weight > 0


def test_texts_that_should_differ_are_learned_too() -> None:
    follows, weight = matched(lambda one, other: one != other)

    assert follows > 0.8
    assert weight < 0
