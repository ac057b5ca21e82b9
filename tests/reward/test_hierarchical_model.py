"""Constants of arms with features, and which model says what features tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastbandit import Bandit, FrozenBandit, ThompsonSampling
from fastbandit.arms.own_lists import BANK, LISTED, own_lists
from fastbandit.reward.hierarchical_model import HierarchicalReward
from fastbandit.search.exhaustive import Exhaustive

QUICK = {"training.reward": {"iterations": 60}, "training.generator": {"iterations": 60}}
ARMS, DIM = 1100, 5


def contexts_of(count: int, *, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)


def features_of(count: int = ARMS) -> Any:
    return np.random.default_rng(1).normal(size=(count, DIM)).astype(np.float32)


def new(**changes: Any) -> Bandit:
    from fastbandit.settings.files import Settings

    settings = {"arms": features_of(), "context": 3, "progress": False, **changes}
    return Bandit(preset=Settings(sections=QUICK), **settings)


def trained(**changes: Any) -> Bandit:
    """Return a bandit that learned 400 rewards; some arms are better than their features say."""
    bandit, rng = new(**changes), np.random.default_rng(5)
    for seed in (2, 3):
        contexts, rows = contexts_of(200, seed=seed), rng.integers(0, 60, 200)
        rewards = rng.random(200) < np.where(rows % 3 == 0, 0.8, 0.2)
        bandit.update(contexts=contexts, arms=rows, rewards=rewards)
    return bandit


def model_of(bandit: Bandit) -> HierarchicalReward:
    model = bandit.policy.model
    assert isinstance(model, HierarchicalReward)
    return model


# -- the regression


def test_the_network_is_taken_where_a_line_predicts_nothing() -> None:
    features = features_of()
    bandit, rng = new(arms=features, reward="real"), np.random.default_rng(3)
    contexts, rows = contexts_of(400, seed=1), rng.integers(0, ARMS, 400)

    bandit.update(contexts=contexts, arms=rows, rewards=3 * np.abs(contexts[:, 0]))

    assert model_of(bandit).current is model_of(bandit).network


def test_the_regression_is_taken_where_it_predicts_better() -> None:
    features = features_of()
    bandit, rng = new(arms=features, reward="real"), np.random.default_rng(3)
    contexts, rows = contexts_of(80, seed=1), rng.integers(0, ARMS, 80)
    noise = 0.1 * rng.normal(size=80)

    bandit.update(contexts=contexts, arms=rows, rewards=features[rows] @ np.ones(DIM) + noise)

    assert model_of(bandit).current is model_of(bandit).linear


def test_the_regression_is_not_asked_among_a_few_arms() -> None:
    features = features_of(900)
    bandit, rng = new(arms=features, reward="real"), np.random.default_rng(3)
    contexts, rows = contexts_of(80, seed=1), rng.integers(0, 900, 80)

    bandit.update(contexts=contexts, arms=rows, rewards=features[rows] @ np.ones(DIM))

    assert model_of(bandit).current is model_of(bandit).network


# -- deciding


def test_an_arm_that_is_better_than_its_features_say_is_chosen() -> None:
    chosen = trained(exploration="greedy").select(contexts_of(50, seed=9)).rows[:, 0]

    assert ((chosen < 60) & (chosen % 3 == 0)).mean() > 0.9


@pytest.mark.parametrize("explore", ["ts", "ucb", "greedy"])
@pytest.mark.parametrize("search", ["generator", "ascent", "exhaustive"])
def test_torch_and_compiled_code_choose_the_same_arms(explore: str, search: str) -> None:
    if (explore, search) == ("ucb", "exhaustive"):
        pytest.skip("a bound that is scanned cannot be frozen")
    bandit = trained(exploration=explore, search=search)
    contexts, seeds = contexts_of(60, seed=9), np.arange(60, dtype=np.uint64) * 977
    request = bandit._state.read_request(bandit.blueprint, contexts, k=3)

    by_torch = bandit.policy.select(request.contexts, seeds=seeds, count=3)
    frozen = bandit.freeze().select(contexts, k=3, seeds=seeds)

    assert (by_torch.rows.numpy() == frozen.rows).mean() > 0.99


def test_two_lists_find_what_a_scan_finds() -> None:
    bandit = trained(exploration=ThompsonSampling(scale=1.0))

    assert bandit.audit(contexts_of(100, seed=9)).quality > 0.99


def test_draws_of_constants_differ_from_arm_to_arm_and_are_repeated_by_their_seed() -> None:
    bandit = trained(search=Exhaustive())
    own = model_of(bandit).own(torch.zeros(2, 8), seeds=np.array([3, 4], np.uint64), scale=1.0)
    assert own is not None
    rows = torch.arange(60)[None]

    again = model_of(bandit).own(torch.zeros(2, 8), seeds=np.array([4, 3], np.uint64), scale=1.0)

    assert again is not None
    np.testing.assert_array_equal(own(rows), again(rows).flip(0))
    means = model_of(bandit).constants_posterior.arrays[0][:60]
    assert np.abs(np.corrcoef(own(rows).numpy() - means)[0, 1]) < 0.4


def test_lists_hold_the_best_arms_of_each_draw() -> None:
    rng = np.random.default_rng(0)
    means, widths = rng.normal(size=(2, 2000)).astype(np.float32)
    widths = np.abs(widths)

    rows, parts = own_lists(means, widths, scale=1.0, is_drawn=True, stamp=3)
    plain, bound = own_lists(means, widths, scale=1.0, is_drawn=False, stamp=3)

    assert rows.shape == (BANK, LISTED)
    assert (np.diff(parts, axis=1) <= 0).all()
    np.testing.assert_array_equal(plain[0], np.argsort(-(means + widths))[:LISTED])
    np.testing.assert_allclose(bound[0], np.sort(means + widths)[::-1][:LISTED])


# -- learning at once, and files


def test_a_reward_changes_the_constant_of_its_arm_at_once() -> None:
    bandit = trained()
    before = model_of(bandit).constants_posterior.arrays[0].copy()

    bandit.observe(contexts=contexts_of(3, seed=1), arms=[7, 7, 7], rewards=[1, 1, 1])

    after = model_of(bandit).constants_posterior.arrays[0]
    assert after[7] > before[7]
    assert (np.delete(after, 7) == np.delete(before, 7)).all()


def test_a_bandit_that_observed_is_saved_and_goes_on(tmp_path: Path) -> None:
    bandit, contexts = trained(), contexts_of(20, seed=4)
    bandit.observe(contexts=contexts[:2], arms=[5, 800], rewards=[1, 0])
    bandit.save(tmp_path / "saved")

    again = Bandit.load(tmp_path / "saved", progress=False)

    assert again.select(contexts).arms == bandit.select(contexts).arms
    for one in (bandit, again):
        one.update(contexts=contexts[:1], arms=[3], rewards=[1])
    assert again.select(contexts).arms == bandit.select(contexts).arms


def test_a_frozen_bandit_keeps_its_constants_in_its_files(tmp_path: Path) -> None:
    frozen, contexts = trained().freeze(), contexts_of(20, seed=4)
    seeds = np.arange(20, dtype=np.uint64)
    frozen.save(tmp_path / "frozen")

    again = FrozenBandit.load(tmp_path / "frozen")

    np.testing.assert_array_equal(
        again.select(contexts, seeds=seeds).rows, frozen.select(contexts, seeds=seeds).rows
    )


def test_arms_that_come_later_have_no_constant_and_can_be_chosen() -> None:
    bandit = trained()
    bandit.add_arms(10 * features_of(3), ids=["a", "b", "c"])
    contexts = contexts_of(40, seed=4)

    frozen = bandit.freeze()

    eligible = ["a", "b", "c"]
    assert set(frozen.select(contexts, eligible=eligible).arms) <= set(eligible)
    bandit.observe(contexts=contexts[:1], arms=["b"], rewards=[1])
    assert len(model_of(bandit).constants_posterior.arrays[0]) == ARMS + 2
