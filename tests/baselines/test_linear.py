"""Linear policies choose by a linear model and an exploration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import LinearTS, LinUCB, RandomBandit, ridge
from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import (
    SettingError,
)
from fastbandit.features.kinds import Ids, Sparse

Make = Callable[..., Any]
WORLD = Synthetic("h1", 3, 40, noise=0.3, seed=1)


def linear_ts(*, context: Any = 3, **settings: Any) -> LinearTS:
    return LinearTS(context=context, **settings)


def lin_ucb(**settings: Any) -> LinUCB:
    return LinUCB(context=3, **settings)


def disjoint_ts(**settings: Any) -> LinearTS:
    return LinearTS(context=3, disjoint=True, **settings)


def disjoint_ucb(**settings: Any) -> LinUCB:
    return LinUCB(context=3, disjoint=True, **settings)


LINEAR: list[Make] = [linear_ts, lin_ucb, disjoint_ts, disjoint_ucb]
every_linear = pytest.mark.parametrize("make", LINEAR)


def trained(make: Make, *, ids: Any = None, rounds: int = 60, **settings: Any) -> Any:
    bandit = make(arms=WORLD.arms, ids=ids, **settings)
    contexts = WORLD.contexts(0, rounds)
    decision = bandit.select(contexts)
    rewards = WORLD.observed(0, decision.rows[:, 0])
    bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
    return bandit


def mean_reward(bandit: Any, env: Synthetic, *, batches: int, size: int) -> float:
    total = 0.0
    for first in range(0, batches * size, size):
        contexts = env.contexts(first, size)
        decision = bandit.select(contexts)
        rows = decision.rows[:, 0]
        total += float(env.means(contexts, rows).sum())
        rewards = env.observed(first, rows)
        bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
    return total / (batches * size)


def test_arms_that_are_alike_get_the_same_draw_of_a_shared_model() -> None:
    arms = np.concatenate([WORLD.arms[:5], WORLD.arms[:5]])
    bandit = LinearTS(arms=arms, context=3)
    bandit.update(contexts=WORLD.contexts(0, 2), arms=[0, 1], rewards=[1.0, 0.0])

    scores = bandit.select(WORLD.contexts(2, 20), k=2).scores

    assert np.allclose(scores[:, 0], scores[:, 1], atol=1e-6)


@every_linear
def test_linear_bandits_beat_random_on_linear_rewards(make: Make) -> None:
    env = Synthetic("h1", 3, 15, noise=0.1, seed=2)
    size = {"batches": 8, "size": 50}

    learned = mean_reward(make(arms=env.arms), env, **size)
    random = mean_reward(RandomBandit(arms=env.arms), env, **size)
    best = float(env.best(env.contexts(0, 400))[1].mean())

    assert learned > random + 0.4 * (best - random)


@pytest.mark.parametrize("make", [linear_ts, lin_ucb])
def test_a_shared_model_soon_comes_close_to_the_best_choice(make: Make) -> None:
    bandit = trained(make, rounds=400)
    contexts = WORLD.contexts(400, 100)

    chosen = WORLD.means(contexts, bandit.select(contexts, explore=False).rows[:, 0])

    assert (WORLD.best(contexts)[1] - chosen).mean() < 0.1


@every_linear
def test_without_exploration_the_best_mean_is_chosen(make: Make) -> None:
    bandit = trained(make, rounds=30)
    contexts = WORLD.contexts(30, 4)

    greedy = bandit.select(contexts, explore=False)
    again = bandit.select(contexts, explore=False)

    means = bandit._model.means(contexts.astype(np.float64))
    assert np.array_equal(greedy.rows[:, 0], means.argmax(axis=1))
    assert greedy.arms == again.arms


@every_linear
def test_linear_bandits_say_that_they_score_every_arm(make: Make) -> None:
    decision = trained(make).select(WORLD.contexts(60, 3))

    assert decision.evaluations.tolist() == [40] * 3
    assert decision.lookups.tolist() == [0] * 3


@every_linear
def test_scoring_in_small_blocks_changes_no_choice(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = WORLD.contexts(60, 12)
    whole = trained(make).select(contexts, k=2)

    monkeypatch.setattr(ridge, "_BLOCK", 100)
    parts = trained(make).select(contexts, k=2)

    assert np.array_equal(whole.rows, parts.rows)


def test_a_disjoint_bandit_needs_no_features_of_its_arms() -> None:
    bandit = LinUCB(ids=["a", "b"], context=2, disjoint=True)
    contexts = np.repeat(np.eye(2), 20, axis=0)
    bandit.update(contexts=contexts, arms=["a"] * 20 + ["b"] * 20, rewards=np.ones(40))

    assert bandit.select(np.eye(2), explore=False).arms == ["a", "b"]


def test_a_shared_bandit_needs_features_of_its_arms() -> None:
    with pytest.raises(SettingError, match="disjoint=True"):
        LinearTS(ids=["a", "b"], context=2)


def test_an_intercept_learns_arms_that_are_good_for_everyone() -> None:
    contexts = WORLD.contexts(0, 100)
    bandit = LinearTS(arms=[[1.0], [-1.0]], context=3, intercept=True)
    bandit.update(contexts=contexts, arms=[0, 1] * 50, rewards=[1.0, -1.0] * 50)

    assert bandit.select(contexts, explore=False).arms == [0] * 100


def test_sparse_contexts_are_read_as_dense_ones() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    contexts = WORLD.contexts(0, 20)
    dense, sparse = LinUCB(arms=WORLD.arms, context=3), LinUCB(arms=WORLD.arms, context=Sparse(3))

    dense.update(contexts=contexts, arms=range(20), rewards=np.ones(20))
    sparse.update(contexts=scipy_sparse.csr_matrix(contexts), arms=range(20), rewards=np.ones(20))

    assert dense.select(contexts).arms == sparse.select(scipy_sparse.csr_matrix(contexts)).arms


@pytest.mark.parametrize(
    ("settings", "arithmetic"),
    [
        ({"ids": range(100_000), "disjoint": True}, r"2 x 100000 x 50² numbers.*3\.7 GiB"),
        ({"arms": np.zeros((1, 300))}, r"50 x 300 = 15000 weights.*5\.0 GiB"),
    ],
)
def test_a_model_too_large_for_memory_is_rejected_with_the_arithmetic(
    settings: dict[str, Any], arithmetic: str
) -> None:
    with pytest.raises(SettingError, match=arithmetic):
        LinearTS(context=50, **settings)


@pytest.mark.parametrize(
    "settings", [{"ridge": 0.0}, {"scale": -1.0}, {"scale": np.nan}, {"context": Ids(4)}]
)
def test_linear_settings_out_of_range_are_rejected(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        linear_ts(**({"arms": WORLD.arms} | settings))
