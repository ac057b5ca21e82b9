"""A reward model learns its history, and where rewards drift only its newest part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes import same_weights, vectors_of
from plans import plan_for

from fastbandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense
from fastbandit.reward.dropout_model import DropoutReward
from fastbandit.reward.model import NetworkSettings
from fastbandit.settings.files import Settings
from fastbandit.training.fit_reward import RewardFit, _draw_rows, fit_reward, recall
from fastbandit.types import Inputs, Interactions

NETWORK = NetworkSettings(embedding=4, hidden=(8,), weight_penalty=0.1, dropout_penalty=1.0)
ARMS = vectors_of(20, 3, seed=2)
CONTEXTS, ROWS = vectors_of(100, 3, seed=1), np.arange(100) % 20
REWARDS = (CONTEXTS * ARMS[ROWS]).sum(1)
QUICK: dict[str, Any] = {"iterations": 150, "batch": 64}


def history(count: int = 8) -> Interactions:
    numbers = np.arange(count, dtype=np.float32)
    return Interactions(Inputs(dense=numbers[:, None]), Inputs(ids=np.arange(count)), numbers)


def interactions(rewards: Any) -> Interactions:
    return Interactions(Inputs(dense=CONTEXTS), Inputs(dense=ARMS[ROWS]), rewards)


def test_all_of_the_past_counts_alike_by_default() -> None:
    past = history()

    assert recall(past, RewardFit()) is past
    assert past.total == 8.0


@pytest.mark.parametrize(("window", "newest"), [(3, [5, 6, 7]), (8, range(8)), (99, range(8))])
def test_a_window_keeps_the_newest(window: int, newest: Any) -> None:
    recalled = recall(history(), RewardFit(window=window))

    assert recalled.rewards.tolist() == list(newest)
    assert recalled.arms.ids is not None
    assert recalled.arms.ids.tolist() == list(newest)


def test_an_interaction_counts_half_as_much_a_half_life_later() -> None:
    recalled = recall(history(5), RewardFit(half_life=2.0))

    assert recalled.weights is not None
    assert np.allclose(recalled.weights[[0, 2, 4]], [0.25, 0.5, 1.0])
    assert recalled.total == pytest.approx(recalled.weights.sum())


def test_a_minibatch_has_interactions_as_often_as_their_weights_say() -> None:
    sums = torch.tensor([1.0, 1.0, 4.0], dtype=torch.float64)

    rows = _draw_rows(3, sums, 4000, rng=torch.Generator().manual_seed(1))

    shares = torch.bincount(rows, minlength=3) / 4000
    assert shares[1] == 0
    assert shares[2] == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("kind", ["real", "binary"])
def test_the_loss_falls(kind: str) -> None:
    rewards = REWARDS if kind == "real" else (REWARDS > 0).astype(np.float32)
    learned = interactions(rewards)
    plan = plan_for(Dense(3), Dense(3), NETWORK, reward=kind)
    learner = DropoutReward(plan, rng=torch.Generator().manual_seed(3))
    learner.start(learned, fresh=100)

    def loss() -> float:
        rng = torch.Generator().manual_seed(5)
        with torch.no_grad():
            rows = torch.from_numpy(rewards)
            return learner.loss(learned.contexts, learned.arms, rows, total=100, rng=rng).item()

    before = loss()
    fit_reward(learner, learned, RewardFit(iterations=150, batch=64), rng=torch.Generator())

    assert loss() < before - 0.2


@pytest.mark.parametrize("posterior", ["dropout", "gradient", "last-layer"])
@pytest.mark.parametrize("forgetting", [{"window": 150}, {"half_life": 30.0}])
def test_a_bandit_that_forgets_follows_rewards_that_changed_sign(
    posterior: str, forgetting: dict[str, Any]
) -> None:
    def earned(**more: Any) -> float:
        settings = Settings({"training.reward": {**QUICK, **more}})
        bandit = Bandit(
            arms=ARMS,
            context=3,
            reward="real",
            search="exhaustive",
            posterior=posterior,
            preset=settings,
            progress=False,
        )
        contexts, rows = vectors_of(300, 3, seed=5), np.arange(300) % 20
        rewards = contexts[:, 0] * ARMS[rows, 0]
        rewards[:150] *= -1.0
        bandit.update(contexts=contexts, arms=rows, rewards=rewards)
        chosen = bandit.select(vectors_of(60, 3, seed=6), explore=False)
        return float((vectors_of(60, 3, seed=6)[:, 0] * ARMS[chosen.rows[:, 0], 0]).mean())

    assert earned(**forgetting) > earned() + 0.2


def test_a_window_shorter_than_what_is_fresh_is_learned() -> None:
    settings = Settings(
        {"training.reward": {"iterations": 5, "window": 3}, "posterior.gradient": {"ridge": 2.0}}
    )
    bandit = Bandit(arms=ARMS, context=3, exploration="ucb", search="exhaustive", preset=settings)

    bandit.update(contexts=vectors_of(9, 3), arms=range(9), rewards=[0, 1, 0] * 3)

    assert bandit.version == 1


@pytest.mark.parametrize("posterior", ["gradient", "last-layer"])
def test_the_posterior_of_what_fades_is_wider(posterior: str) -> None:
    def deviations(**more: float) -> float:
        settings = Settings({"training.reward": {**QUICK, **more}})
        bandit = Bandit(
            arms=ARMS,
            context=3,
            search="exhaustive",
            posterior=posterior,
            preset=settings,
            progress=False,
        )
        rewards = np.random.default_rng(7).random(400) < 0.5
        bandit.update(contexts=vectors_of(400, 3), arms=np.arange(400) % 20, rewards=rewards)
        model = bandit.policy.model
        contexts = model.embed_contexts(Inputs(dense=vectors_of(5, 3, seed=6)))
        arms = model.embed_arms(Inputs(dense=ARMS))[None]
        bonus = model.upper(contexts, width=1.0)(arms) - model.mean(contexts)(arms)
        return float(bonus.mean())

    assert deviations(half_life=10.0) > 1.2 * deviations()


def test_a_saved_bandit_forgets_as_before(tmp_path: Path) -> None:
    settings = Settings({"training.reward": {"iterations": 5, "window": 6, "half_life": 4.0}})
    bandit = Bandit(arms=ARMS, context=3, search="exhaustive", preset=settings, progress=False)
    happened: dict[str, Any] = {
        "contexts": vectors_of(9, 3),
        "arms": range(9),
        "rewards": [0, 1, 0] * 3,
    }
    bandit.update(**happened)
    bandit.save(tmp_path / "saved")

    loaded = Bandit.load(tmp_path / "saved", progress=False)
    for each in (bandit, loaded):
        each.update(**happened)

    assert loaded.blueprint.training.reward.window == 6
    assert same_weights(bandit, loaded)


@pytest.mark.parametrize(
    "wrong", [{"window": 0}, {"half_life": 0.0}, {"half_life": -1.0}, {"half_life": float("nan")}]
)
def test_a_window_or_half_life_of_nothing_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="leave it out"):
        RewardFit(**wrong)


def test_the_curve_has_the_mean_loss_of_every_fifty_iterations_and_the_last() -> None:
    plan = plan_for(Dense(3), Dense(3), NETWORK)
    learner = DropoutReward(plan, rng=torch.Generator().manual_seed(3))
    past = interactions(REWARDS)
    learner.start(past, fresh=100)
    seen: list[int] = []

    fit_reward(
        learner,
        past,
        RewardFit(iterations=60, batch=8),
        rng=torch.Generator(),
        curve=lambda iterations, loss: seen.append(iterations),
    )

    assert seen == [50, 60]
