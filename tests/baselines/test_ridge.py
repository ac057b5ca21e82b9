"""Ridge regressions agree with the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fastbandit.baselines import ridge
from fastbandit.baselines.ridge import DisjointRidge, LinearModel, Prior, SharedRidge
from fastbandit.noise.philox import decision_seeds

Floats = NDArray[np.float64]
Interactions = tuple[Floats, NDArray[np.int64], Floats]


def blank(kind: str) -> LinearModel:
    if kind == "disjoint":
        return DisjointRidge.blank(8, 3, Prior(1.0))
    arms = np.random.default_rng(4).normal(size=(8, 4))
    return SharedRidge.blank(arms, 3, Prior(1.0))


def naive_shared(interactions: Interactions, arms: Floats) -> tuple[Floats, Floats]:
    contexts, rows, rewards = interactions
    features = np.stack([np.kron(x, arms[row]) for x, row in zip(contexts, rows, strict=True)])
    covariance = np.linalg.inv(2.0 * np.eye(features.shape[1]) + features.T @ features)
    return covariance @ features.T @ rewards, covariance


@pytest.fixture
def interactions() -> Interactions:
    rng = np.random.default_rng(3)
    return rng.normal(size=(25, 3)), rng.integers(0, 8, 25), rng.normal(size=25)


@pytest.mark.parametrize("block", [1, 50, 2**22])
def test_the_shared_bonus_by_structure_equals_the_plain_formula(
    block: int, interactions: Interactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ridge, "_BLOCK", block)
    arms = np.random.default_rng(4).normal(size=(8, 4))
    model = SharedRidge.blank(arms, 3, Prior(2.0)).learn(*interactions)
    weights, covariance = naive_shared(interactions, arms)
    contexts = np.random.default_rng(5).normal(size=(5, 3))

    features = np.einsum("bc,nd->bncd", contexts, arms).reshape(5, 8, 12)

    assert np.allclose(model.means(contexts), features @ weights)
    variances = np.einsum("bnp,pq,bnq->bn", features, covariance, features)
    assert np.allclose(model.stds(contexts), np.sqrt(variances))


def test_the_disjoint_model_is_one_ridge_regression_for_each_arm(
    interactions: Interactions,
) -> None:
    contexts, rows, rewards = interactions
    model = DisjointRidge.blank(9, 3, Prior(2.0)).learn(*interactions)
    fresh = np.random.default_rng(5).normal(size=(5, 3))

    for arm in range(9):  # the last one was never tried
        x, r = contexts[rows == arm], rewards[rows == arm]
        covariance = np.linalg.inv(2.0 * np.eye(3) + x.T @ x)
        assert np.allclose(model.means(fresh)[:, arm], fresh @ covariance @ x.T @ r)
        variances = np.einsum("bc,cd,bd->b", fresh, covariance, fresh)
        assert np.allclose(model.stds(fresh)[:, arm], np.sqrt(variances))


@pytest.mark.parametrize("kind", ["shared", "disjoint"])
def test_learning_in_parts_is_learning_at_once(kind: str, interactions: Interactions) -> None:
    model = blank(kind)
    contexts = np.eye(3)

    x, rows, rewards = interactions
    parts = model.learn(x[:10], rows[:10], rewards[:10]).learn(x[10:], rows[10:], rewards[10:])
    whole = model.learn(*interactions)

    assert np.allclose(parts.means(contexts), whole.means(contexts))
    assert np.allclose(parts.stds(contexts), whole.stds(contexts))


@pytest.mark.parametrize("kind", ["shared", "disjoint"])
def test_draws_are_spread_as_the_posterior_is(kind: str, interactions: Interactions) -> None:
    model = blank(kind).learn(*interactions)
    context = np.array([[0.5, -1.0, 0.3]])

    draws = model.draws(np.repeat(context, 4_000, 0), decision_seeds(0, 0, 4_000), scale=2.0)

    stds = 2.0 * model.stds(context)[0]
    assert np.allclose(draws.mean(axis=0), model.means(context)[0], atol=4 * stds.max() / 63)
    assert np.allclose(draws.std(axis=0), stds, rtol=0.06)


@pytest.mark.parametrize("kind", ["shared", "disjoint"])
def test_fading_in_batches_is_a_weighted_ridge_regression(
    kind: str, interactions: Interactions
) -> None:
    contexts, rows, rewards = interactions
    model: Ridge
    if kind == "disjoint":
        model = DisjointRidge.blank(8, 3, Prior(2.0, 5.0))
    else:
        arms = np.random.default_rng(4).normal(size=(8, 4))
        model = SharedRidge.blank(arms, 3, Prior(2.0, 5.0))
    roots = 0.5 ** (np.arange(24, -1, -1) / 10.0)

    for part in (slice(0, 7), slice(7, 8), slice(8, 25)):
        model = model.learn(contexts[part], rows[part], rewards[part])

    plain = DisjointRidge.blank(8, 3, Prior(2.0))
    at_once: Ridge = plain
    if isinstance(model, SharedRidge):
        at_once = SharedRidge.blank(model.arms, 3, Prior(2.0))
    at_once = at_once.learn(contexts * roots[:, None], rows, rewards * roots)
    fresh = np.random.default_rng(5).normal(size=(5, 3))
    assert np.allclose(model.means(fresh), at_once.means(fresh))
    assert np.allclose(model.stds(fresh), at_once.stds(fresh))
