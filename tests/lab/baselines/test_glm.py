"""Generalised linear bandits: online Newton steps, and arms found without scoring them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import LinearTS, LinUCB
from fastbandit.errors import (
    EligibilityError,
    FastbanditError,
    NotFiniteError,
    RewardError,
    SettingError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.noise.philox import decision_seeds
from lab.baselines import GLOC, GLOCTS, QGLOC, glm, inner_product
from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.experiments.run import run

Make = Callable[..., Any]
FEW = SyntheticRounds("h1", 3, 40, noise=0.3, seed=1)
MANY = SyntheticRounds("h1", 3, 5_000, noise=0.3, seed=1)
every = pytest.mark.parametrize("make", [GLOC, GLOCTS, QGLOC])
every_searched = pytest.mark.parametrize("make", [GLOCTS, QGLOC])
few_and_many = pytest.mark.parametrize("world", [FEW, MANY], ids=["few arms", "many arms"])


def trained(make: Make, world: SyntheticRounds = FEW, *, rounds: int = 60, **settings: Any) -> Any:
    bandit = make(arms=world.arms, context=3, **settings)
    contexts = world.contexts(0, rounds)
    decision = bandit.select(contexts)
    rewards = world.observed(0, decision.rows[:, 0])
    if settings.get("reward") == "binary":
        rewards = (rewards > 0).astype(float)
    bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
    return bandit


def exact_best(bandit: Any, contexts: Any, seeds: Any) -> Any:
    """Score all arms under the same draw, and give the best and the mean score."""
    scores = bandit._score(contexts.astype(np.float64), seeds, explore=True)
    return scores.max(axis=1), scores.mean(axis=1)


@every
def test_the_first_choices_are_uniform_and_say_so(make: Make) -> None:
    decision = make(arms=FEW.arms, context=3).select(FEW.contexts(0, 2_000))

    counts = np.bincount(decision.rows[:, 0], minlength=40)
    assert decision.uniform
    assert ((counts - 50) ** 2 / 50).sum() < 72.1  # 0.1 % of chi-square, 39 degrees


@few_and_many
@every
def test_several_arms_are_different_and_best_first(make: Make, world: SyntheticRounds) -> None:
    decision = trained(make, world).select(world.contexts(60, 5), k=4)

    assert [len(set(arms)) for arms in decision.arms] == [4] * 5
    assert (np.diff(decision.scores, axis=1) <= 0).all()


@few_and_many
@every
@pytest.mark.parametrize("is_shared", [True, False], ids=["one mask", "a mask each"])
def test_only_eligible_arms_are_chosen(make: Make, world: SyntheticRounds, is_shared: bool) -> None:
    mask = np.random.default_rng(0).random((1 if is_shared else 9, world.size)) < 0.1
    mask[:, 0] = True

    decision = trained(make, world).select(world.contexts(60, 9), eligible=mask)

    assert np.broadcast_to(mask, (9, world.size))[np.arange(9), decision.rows[:, 0]].all()


@few_and_many
@every
def test_asking_for_more_than_is_eligible_gives_all_that_is_eligible(
    make: Make, world: SyntheticRounds
) -> None:
    decision = trained(make, world).select(world.contexts(60, 2), k=3, eligible=[[3, 5], [7]])

    assert [set(arms) for arms in decision.arms] == [{3, 5}, {7}]
    assert decision.rows[1].tolist() == [7, -1, -1]
    assert np.isneginf(decision.scores[1, 1:]).all()


@few_and_many
@every
def test_decisions_replay_from_the_seed_in_any_batches(make: Make, world: SyntheticRounds) -> None:
    whole, split = trained(make, world, seed=5), trained(make, world, seed=5)
    contexts = world.contexts(60, 6)

    at_once = whole.select(contexts)
    one_by_one = [split.select(contexts[i : i + 1]) for i in range(6)]

    assert np.array_equal(at_once.seeds, decision_seeds(5, 60, 6))
    assert at_once.arms == [decision.arms[0] for decision in one_by_one]


@few_and_many
@every
def test_no_contexts_are_no_decisions(make: Make, world: SyntheticRounds) -> None:
    assert trained(make, world).select(np.zeros((0, 3))).arms == []


BAD_SELECTS: list[tuple[dict[str, Any], type[FastbanditError]]] = [
    ({"contexts": [[np.nan, 0.0, 0.0]]}, NotFiniteError),
    ({"contexts": [0.0, 0.0, 0.0]}, ShapeError),
    ({"contexts": np.zeros((2, 3)), "eligible": []}, EligibilityError),
    ({"contexts": np.zeros((2, 3)), "k": 0}, SettingError),
]
BAD_UPDATES: list[tuple[dict[str, Any], type[FastbanditError]]] = [
    ({"contexts": [[np.inf, 0.0, 0.0]] * 2}, NotFiniteError),
    ({"arms": [0, 99]}, UnknownArmError),
    ({"rewards": [0.0, 0.5]}, RewardError),
    ({"rewards": [0.0]}, ShapeError),
]


@every
@pytest.mark.parametrize(("bad", "error"), BAD_SELECTS)
def test_a_bad_select_raises_and_uses_up_no_decision(
    make: Make, bad: dict[str, Any], error: type[FastbanditError]
) -> None:
    bandit = make(arms=FEW.arms, context=3)

    with pytest.raises(error):
        bandit.select(**bad)

    assert np.array_equal(bandit.select(FEW.contexts(0, 1)).seeds, decision_seeds(0, 0, 1))


@every
@pytest.mark.parametrize(("bad", "error"), BAD_UPDATES)
def test_a_bad_update_raises_and_leaves_the_bandit_as_it_was(
    make: Make, bad: dict[str, Any], error: type[FastbanditError]
) -> None:
    good = {"contexts": FEW.contexts(0, 2), "arms": [3, 4], "rewards": [0.0, 1.0]}
    bandit, compiled = (make(arms=FEW.arms, context=3, reward="binary") for _ in range(2))
    for each in (bandit, compiled):
        each.update(**good)

    with pytest.raises(error):
        bandit.update(**(good | bad))

    after, expected = (each.select(FEW.contexts(2, 9)) for each in (bandit, compiled))
    assert after.version == 1
    assert after.arms == expected.arms
    assert np.array_equal(after.scores, expected.scores)


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (GLOC, {"width": -1.0}),
        (GLOCTS, {"scale": np.nan}),
        (QGLOC, {"width": np.inf}),
        (GLOC, {"curvature": 0.0}),
        (GLOC, {"ridge": 0.0}),
        (GLOC, {"arms": None, "ids": ["a", "b"]}),
    ],
)
def test_settings_out_of_range_are_rejected(make: Make, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        make(**({"arms": FEW.arms, "context": 3} | settings))


def test_more_products_than_fit_into_memory_are_rejected_with_the_arithmetic() -> None:
    with pytest.raises(SettingError, match=r"40000 arms of 9044 numbers.*2\.7 GiB"):
        QGLOC(arms=np.zeros((40_000, 133), dtype=np.float32), context=1)


def test_with_the_identity_newton_steps_are_ridge_regression() -> None:
    contexts, rows = FEW.contexts(0, 50), np.arange(50) % 40
    rewards = FEW.observed(0, rows)
    online, exact = GLOC(arms=FEW.arms, context=3), LinUCB(arms=FEW.arms, context=3)
    for bandit in (online, exact):
        bandit.update(contexts=contexts, arms=rows, rewards=rewards)

    assert np.allclose(online._model.newton, exact._model.weights.reshape(-1), atol=1e-5)


@every
def test_a_batch_is_learned_as_its_rewards_one_at_a_time(make: Make) -> None:
    contexts, rows = FEW.contexts(0, 12), np.arange(12)
    rewards = (FEW.observed(0, rows) > 0).astype(float)
    whole, split = (make(arms=FEW.arms, context=3, reward="binary") for _ in range(2))
    whole.update(contexts=contexts, arms=rows, rewards=rewards)
    for i in range(12):
        split.update(contexts=contexts[i : i + 1], arms=rows[i : i + 1], rewards=rewards[i : i + 1])

    assert np.allclose(whole._model.newton, split._model.newton)
    assert np.allclose(whole._model.ridge.moment, split._model.ridge.moment)


def test_the_regression_is_on_predictions_made_before_each_reward() -> None:
    bandit = GLOC(arms=[[2.0]], context=1)
    bandit.update(contexts=[[1.0], [1.0]], arms=[0, 0], rewards=[1.0, 0.0])

    first = 2.0 * (2.0 / 5.0)  # after one reward of 1: weight = x y / (1 + x²)
    assert bandit._model.ridge.moment == pytest.approx([2.0 * 0.0 + 2.0 * first])


@few_and_many
@every
def test_scores_of_binary_rewards_are_probabilities(make: Make, world: SyntheticRounds) -> None:
    decision = trained(make, world, reward="binary").select(world.contexts(60, 20), k=2)

    assert ((decision.scores > 0) & (decision.scores < 1)).all()


@every
def test_a_logistic_model_learns_which_arm_pays(make: Make) -> None:
    bandit = make(arms=np.eye(2), context=1, reward="binary", intercept=True)
    rewards = np.tile([1.0, 0.0], 100)
    bandit.update(contexts=np.ones((200, 1)), arms=[0, 1] * 100, rewards=rewards)

    decision = bandit.select(np.ones((5, 1)), explore=False, k=2)

    assert decision.rows.tolist() == [[0, 1]] * 5
    assert (decision.scores[:, 0] > 0.8).all()
    assert (decision.scores[:, 1] < 0.2).all()


@few_and_many
@every
def test_without_exploration_the_best_mean_is_chosen(make: Make, world: SyntheticRounds) -> None:
    bandit = trained(make, world)
    contexts = world.contexts(60, 10)

    greedy = bandit.select(contexts, explore=False)

    means = bandit._model.means(contexts.astype(np.float64))
    gap = means.max(axis=1) - greedy.scores[:, 0]
    assert (gap < 0.01 * (means.max(axis=1) - means.mean(axis=1))).all()


@every_searched
def test_few_arms_are_scanned_and_many_are_looked_up(make: Make) -> None:
    scanned = trained(make, FEW).select(FEW.contexts(60, 3))
    found = trained(make, MANY).select(MANY.contexts(60, 3))

    assert (scanned.evaluations.tolist(), scanned.lookups.tolist()) == ([40] * 3, [0] * 3)
    assert (found.evaluations.tolist(), found.lookups.tolist()) == ([32] * 3, [1] * 3)


def test_gloc_scores_every_arm() -> None:
    decision = trained(GLOC, MANY).select(MANY.contexts(60, 3))

    assert (decision.evaluations.tolist(), decision.lookups.tolist()) == ([5_000] * 3, [0] * 3)


@every_searched
def test_evaluations_are_those_of_eligible_arms_alone(make: Make) -> None:
    decision = trained(make, MANY).select(MANY.contexts(60, 1), eligible=range(5))

    assert decision.evaluations.tolist() == [5]


@every_searched
def test_the_index_comes_close_to_the_exact_scan_under_the_same_draw(make: Make) -> None:
    bandit = trained(make, MANY, rounds=300)
    contexts = MANY.contexts(300, 100)

    decision = bandit.select(contexts)

    best, mean = exact_best(bandit, contexts, decision.seeds)
    quality = (decision.scores[:, 0] - mean) / (best - mean)
    assert quality.mean() > 0.99
    assert quality.min() > 0.9


@every_searched
def test_without_faiss_all_arms_are_scanned(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = trained(make, MANY)
    monkeypatch.setattr(inner_product, "find_spec", lambda name: None)
    contexts = MANY.contexts(60, 4)

    decision = bandit.select(contexts)

    best, _ = exact_best(bandit, contexts, decision.seeds)
    assert np.allclose(decision.scores[:, 0], best, atol=1e-5)
    assert decision.evaluations.tolist() == [5_000] * 4


@every_searched
def test_searching_in_small_blocks_changes_no_choice(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = MANY.contexts(60, 12)
    whole = trained(make, MANY).select(contexts, k=2)

    monkeypatch.setattr(glm, "_BLOCK", 500)
    parts = trained(make, MANY).select(contexts, k=2)

    assert np.array_equal(whole.rows, parts.rows)


def test_the_score_of_qgloc_is_the_mean_and_a_multiple_of_the_variance() -> None:
    bandit = trained(QGLOC, FEW, width=0.7)
    contexts = FEW.contexts(60, 5).astype(np.float64)
    model = bandit._model
    least = np.linalg.norm(contexts, axis=1) * model.narrowest  # arms have length 1

    expected = model.means(contexts) + (0.7 / least)[:, None] * model.stds(contexts) ** 2

    assert np.allclose(
        bandit._score(contexts, decision_seeds(0, 0, 5), explore=True), expected, atol=1e-6
    )


@pytest.mark.parametrize(("make", "rival"), [(GLOC, LinUCB), (GLOCTS, LinearTS), (QGLOC, LinUCB)])
def test_rewards_come_close_to_those_of_exact_regression(make: Make, rival: Make) -> None:
    world = SyntheticRounds("h1", 4, 5_000, noise=0.1, seed=0)
    settings = {"rounds": 1_000, "batch": 100, "audits": 0}

    online = run(world, make(arms=world.arms, context=4), **settings)
    exact = run(world, rival(arms=world.arms, context=4), **settings)

    assert online.share > exact.share - 0.04
