"""Arms that are ids explore by posteriors of their own, in torch and frozen alike."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit import (
    Bandit,
    FrozenBandit,
    Sparse,
    ThompsonSampling,
    UpperConfidence,
)
from fastbandit.errors import (
    NotFiniteError,
    RewardError,
    SettingError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.noise.philox import Stream, normals_at
from fastbandit.reward.arm_effects_posterior import ArmEffectsPosterior
from fastbandit.reward.effects_model import EffectsReward
from fastbandit.types import Inputs

COLUMNS = 5
CHEAP = ArmEffectsPosterior(units=0)


def trained(arms: int = 30, *, updates: int = 3, rounds: int = 200, **settings: Any) -> Bandit:
    """Return a bandit whose arms each like contexts in a direction of their own."""
    rng = np.random.default_rng(0)
    likes = rng.normal(size=(arms, COLUMNS))
    settings = {"posterior": CHEAP, "ids": range(arms), "context": COLUMNS, **settings}
    bandit = Bandit(progress=False, **settings)
    for _ in range(updates):
        contexts = rng.normal(size=(rounds, COLUMNS))
        decision = bandit.select(contexts)
        worth = (contexts * likes[decision.rows[:, 0]]).sum(axis=1)
        bandit.update(contexts=contexts, arms=decision.arms, rewards=(worth > 1).astype(float))
    return bandit


def asked(count: int = 50) -> np.ndarray:
    return np.random.default_rng(9).normal(size=(count, COLUMNS))


def seeds(count: int = 50) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def test_it_learns_which_arm_is_liked_in_which_context() -> None:
    rng = np.random.default_rng(1)
    bandit = Bandit(ids=["left", "right"], context=2, posterior=CHEAP, progress=False)
    for _ in range(4):
        contexts = rng.normal(size=(100, 2))
        arms = bandit.select(contexts).arms
        is_right = np.array([arm == "right" for arm in arms])
        bandit.update(contexts=contexts, arms=arms, rewards=is_right == (contexts[:, 0] > 0))

    chosen = bandit.select([[-2.0, 0.0], [2.0, 0.0]], explore=False)

    assert chosen.arms == ["left", "right"]


def test_a_draw_changes_choices() -> None:
    bandit = trained()

    drawn, greedy = (bandit.select(asked(300), explore=explore).rows for explore in (True, False))

    assert (drawn != greedy).mean() > 0.1


def test_arms_are_drawn_apart_from_one_another() -> None:
    noise = normals_at(seeds(4_000), np.arange(3), Stream.ARMS)

    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.06
    assert noise.std() == pytest.approx(1.0, abs=0.03)


def test_an_arm_s_noise_does_not_depend_on_the_others() -> None:
    all_at_once = normals_at(seeds(5), np.arange(100), Stream.ARMS)

    assert np.array_equal(
        normals_at(seeds(5), np.array([42]), Stream.ARMS)[:, 0], all_at_once[:, 42]
    )


@pytest.mark.parametrize("explore", [ThompsonSampling(0.3), UpperConfidence(0.5), "greedy"])
@pytest.mark.parametrize("arms", [30, 700])
def test_a_frozen_bandit_chooses_the_same_arms(arms: int, explore: Any) -> None:
    bandit = trained(arms, exploration=explore)
    frozen = bandit.freeze()
    request = bandit._state.read_request(bandit.blueprint, asked(), k=3)

    torch_made = bandit.policy.select(request.contexts, seeds=request.seeds, count=3)
    compiled = frozen.select(asked(), k=3, seeds=request.seeds)

    assert np.array_equal(torch_made.rows.numpy(), compiled.rows)
    assert np.allclose(torch_made.scores.numpy(), compiled.scores, atol=1e-5)


def test_a_frozen_bandit_comes_back_from_its_folder(tmp_path: Path) -> None:
    frozen = trained(context=COLUMNS).freeze()
    frozen.save(tmp_path / "frozen")

    again = FrozenBandit.load(tmp_path / "frozen")

    one, two = (each.select(asked(), seeds=seeds()) for each in (frozen, again))
    assert one.arms == two.arms
    assert np.array_equal(one.scores, two.scores)


def test_a_loaded_bandit_learns_exactly_as_the_saved_one(tmp_path: Path) -> None:
    bandit = trained()
    bandit.save(tmp_path / "bandit")
    other = Bandit.load(tmp_path / "bandit")

    for each in (bandit, other):
        each.update(contexts=asked(), arms=[3] * 50, rewards=[1.0] * 50)

    one, two = (each.select(asked(), seeds=seeds()) for each in (bandit, other))
    assert one.arms == two.arms
    assert np.array_equal(one.scores, two.scores)


def test_new_arms_are_tried_and_removed_ones_never() -> None:
    bandit = trained(ids=[f"arm {n}" for n in range(30)], exploration=ThompsonSampling(2.0))
    bandit.add_arms(ids=["new"])
    bandit.discard_arms(["arm 3"])

    arms = bandit.select(asked(2_000)).arms

    assert "new" in arms
    assert "arm 3" not in arms


def test_words_are_read_without_a_network() -> None:
    bandit = Bandit(ids=range(4), context=Sparse(50))

    assert bandit.blueprint.posterior == ArmEffectsPosterior(units=0)


def test_rewards_of_any_size_are_learned() -> None:
    rng = np.random.default_rng(0)
    bandit = Bandit(ids=range(3), context=2, reward="real", posterior=CHEAP, progress=False)
    for _ in range(4):
        contexts = rng.normal(size=(100, 2))
        rows = bandit.select(contexts).rows[:, 0]
        bandit.update(contexts=contexts, arms=rows, rewards=1e4 * rows + 1e3 * rng.normal(size=100))

    assert (bandit.select(asked(20)[:, :2]).rows == 2).mean() > 0.9


def test_the_same_history_gives_the_same_bits() -> None:
    one, two = (trained(posterior=ArmEffectsPosterior(units=8)) for _ in range(2))

    left, right = (each.policy.model.state_dict() for each in (one, two))

    assert all(np.array_equal(left[name].numpy(), right[name].numpy()) for name in left)


def test_a_context_that_is_not_finite_is_refused_and_changes_nothing() -> None:
    bandit = trained()
    before = bandit.select(asked(), seeds=seeds()).arms

    with pytest.raises(NotFiniteError):
        bandit.select([[np.nan] * COLUMNS])
    with pytest.raises(UnknownArmError):
        bandit.update(contexts=asked(1), arms=["nobody"], rewards=[1.0])

    assert bandit.select(asked(), seeds=seeds()).arms == before


# -- from every reward


def observed(bandit: Bandit, order: list[int]) -> Bandit:
    """Return a copy that observed some rewards one by one, in an order."""
    other = copy.copy(bandit)
    contexts, rng = asked(), np.random.default_rng(2)
    arms, rewards = rng.integers(6, size=50), rng.integers(2, size=50)
    for place in order:
        other.observe(
            contexts=contexts[[place]], arms=[int(arms[place])], rewards=[float(rewards[place])]
        )
    return other


def weights_of(bandit: Bandit) -> tuple[np.ndarray, np.ndarray]:
    model = bandit.policy.model
    assert isinstance(model, EffectsReward)
    assert model.fitted is not None
    return model.fitted.effects.means, model.fitted.effects.deviations


def test_the_order_of_observed_rewards_changes_nothing_beyond_rounding() -> None:
    bandit = trained()

    one, two = (observed(bandit, order) for order in (list(range(50)), list(range(49, -1, -1))))

    for left, right in zip(weights_of(one), weights_of(two), strict=True):
        assert np.allclose(left, right, atol=1e-9)


def test_an_observed_reward_moves_its_arm_as_all_of_its_rewards_at_once_would() -> None:
    bandit = trained()
    fitted = bandit.policy.model.fitted
    history = bandit._state.history
    assert history is not None
    mine = history.take(history.arms.ids == 3)
    rewards = np.r_[mine.rewards, 1.0]

    bandit.observe(contexts=asked(1), arms=[3], rewards=[1.0])

    before = fitted.effects
    z = np.concatenate([fitted.inputs(mine.contexts), fitted.inputs(Inputs(dense=asked32(1)))])
    precision = z.T @ z / before.noise + np.diag(
        1 / np.r_[before.used[0], np.full(z.shape[1] - 1, before.used[1])] ** 2
    )
    wanted = np.linalg.solve(precision, z.T @ (rewards - z @ before.shared) / before.noise)
    assert np.allclose(weights_of(bandit)[0][3], wanted, atol=1e-6)


def asked32(count: int) -> np.ndarray:
    return asked(count).astype(np.float32)


def test_observing_leaves_copies_and_other_arms_alone() -> None:
    bandit = trained()
    before = [part.copy() for part in weights_of(bandit)]

    other = copy.copy(bandit)
    other.observe(contexts=asked(1), arms=[3], rewards=[1.0])

    assert all(np.array_equal(*pair) for pair in zip(before, weights_of(bandit), strict=True))
    is_same = (weights_of(other)[0] == before[0]).all(axis=1)
    assert np.flatnonzero(~is_same).tolist() == [3]


def test_a_new_arm_is_learned_from_its_first_reward() -> None:
    bandit = trained()
    bandit.add_arms(ids=["new"])

    bandit.observe(contexts=asked(1), arms=["new"], rewards=[1.0])

    means, deviations = weights_of(bandit)
    assert len(means) == 31
    assert means[30].any()
    assert (deviations[30] <= bandit.policy.model.fitted.effects.prior + 1e-12).all()


def test_what_was_observed_is_saved_and_learned_in_the_next_update(tmp_path: Path) -> None:
    bandit = observed(trained(), list(range(50)))
    bandit.save(tmp_path / "bandit")
    other = Bandit.load(tmp_path / "bandit")
    assert bandit.select(asked(), seeds=seeds()).arms == other.select(asked(), seeds=seeds()).arms

    for each in (bandit, other):
        each.update(contexts=np.zeros((0, COLUMNS)), arms=[], rewards=[])

    assert len(bandit._state.history) == 650
    assert bandit.version == 4
    assert bandit.select(asked(), seeds=seeds()).arms == other.select(asked(), seeds=seeds()).arms


def test_bad_rewards_are_refused_and_change_nothing() -> None:
    bandit = trained()
    before = weights_of(bandit)[0].copy()

    with pytest.raises(NotFiniteError):
        bandit.observe(contexts=asked(1), arms=[3], rewards=[np.nan])
    with pytest.raises(RewardError):
        bandit.observe(contexts=asked(1), arms=[3], rewards=[0.5])
    with pytest.raises(UnknownArmError):
        bandit.observe(contexts=asked(1), arms=["nobody"], rewards=[1.0])
    with pytest.raises(ShapeError):
        bandit.observe(contexts=asked(2), arms=[3], rewards=[1.0])

    assert np.array_equal(weights_of(bandit)[0], before)


def test_the_first_reward_of_all_is_an_update() -> None:
    bandit = Bandit(ids=["a", "b"], context=2, posterior=CHEAP, progress=False)

    bandit.observe(contexts=[[0.0, 1.0]], arms=["a"], rewards=[1.0])

    assert bandit.version == 1


def test_a_network_learns_in_updates_alone() -> None:
    bandit = Bandit(arms=np.eye(3), context=2, posterior="neural")

    with pytest.raises(SettingError, match=r"Call update\(\)"):
        bandit.observe(contexts=[[0.0, 1.0]], arms=[0], rewards=[1.0])
