"""Baselines: the same select and update, and each does what its name says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import BestArmBandit, LinearTS, LinUCB, RandomBandit, ridge
from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import (
    DuplicateArmError,
    EligibilityError,
    FastbanditError,
    InputError,
    NotFiniteError,
    RewardError,
    SettingError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.features.kinds import Ids, Sparse
from fastbandit.noise.philox import decision_seeds
from lab.baselines import GLMUCB, KernelUCB

Make = Callable[..., Any]

WORLD = Synthetic("h1", 3, 40, noise=0.3, seed=1)
NAMES = [f"arm {row}" for row in range(40)]


def linear_ts(*, context: Any = 3, **settings: Any) -> LinearTS:
    return LinearTS(context=context, **settings)


def lin_ucb(**settings: Any) -> LinUCB:
    return LinUCB(context=3, **settings)


def disjoint_ts(**settings: Any) -> LinearTS:
    return LinearTS(context=3, disjoint=True, **settings)


def disjoint_ucb(**settings: Any) -> LinUCB:
    return LinUCB(context=3, disjoint=True, **settings)


def glm_ucb(**settings: Any) -> GLMUCB:
    return GLMUCB(context=3, **settings)


def kernel_ucb(**settings: Any) -> KernelUCB:
    return KernelUCB(context=3, **settings)


LINEAR: list[Make] = [linear_ts, lin_ucb, disjoint_ts, disjoint_ucb]
LEARNERS: list[Make] = [BestArmBandit, *LINEAR, glm_ucb, kernel_ucb]
ALL: list[Make] = [RandomBandit, *LEARNERS]

every = pytest.mark.parametrize("make", ALL)
every_learner = pytest.mark.parametrize("make", LEARNERS)
every_linear = pytest.mark.parametrize("make", LINEAR)


def taught(make: Make, *, ids: Any = None, rounds: int = 60, **settings: Any) -> Any:
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


# -- the front door, the same for all


@every
def test_the_first_choices_are_uniform_and_say_so(make: Make) -> None:
    decision = make(arms=WORLD.arms).select(WORLD.contexts(0, 2_000))

    counts = np.bincount(decision.rows[:, 0], minlength=40)
    assert decision.uniform
    assert decision.version == 0
    assert ((counts - 50) ** 2 / 50).sum() < 72.1  # 0.1 % of chi-square, 39 degrees


@every_learner
def test_choices_after_an_update_are_not_uniform(make: Make) -> None:
    decision = taught(make).select(WORLD.contexts(60, 5))

    assert not decision.uniform
    assert decision.version == 1
    assert np.isfinite(decision.scores).all()


@every
def test_one_arm_for_each_context_is_a_flat_list_of_ids(make: Make) -> None:
    decision = taught(make, ids=NAMES).select(WORLD.contexts(60, 5))

    assert decision.rows.shape == decision.scores.shape == (5, 1)
    assert decision.arms == [NAMES[row] for row in decision.rows[:, 0]]


@every
def test_several_arms_are_different_and_best_first(make: Make) -> None:
    decision = taught(make, ids=NAMES).select(WORLD.contexts(60, 5), k=4)

    assert [len(set(arms)) for arms in decision.arms] == [4] * 5
    assert (np.diff(decision.scores, axis=1) <= 0).all()
    assert decision.arms == [[NAMES[row] for row in rows] for rows in decision.rows]


@every
@pytest.mark.parametrize("rounds", [0, 60])
def test_asking_for_more_than_is_allowed_gives_all_that_is_allowed(make: Make, rounds: int) -> None:
    bandit = taught(make, ids=NAMES) if rounds else make(arms=WORLD.arms, ids=NAMES)
    eligible = [["arm 3", "arm 5"], ["arm 7"]]

    decision = bandit.select(WORLD.contexts(60, 2), k=3, eligible=eligible)

    assert [set(arms) for arms in decision.arms] == [{"arm 3", "arm 5"}, {"arm 7"}]
    assert decision.rows[0, 2] == -1
    assert decision.rows[1].tolist() == [7, -1, -1]
    assert np.isneginf(decision.scores[1, 1:]).all()


@every
def test_asking_for_more_arms_than_there_are_gives_them_all(make: Make) -> None:
    decision = taught(make).select(WORLD.contexts(60, 1), k=50)

    assert sorted(decision.arms[0]) == list(range(40))
    assert decision.rows.shape == (1, 50)


@every
def test_only_eligible_arms_are_chosen(make: Make) -> None:
    mask = np.random.default_rng(0).random((30, 40)) < 0.1
    mask[:, 0] = True

    decision = taught(make).select(WORLD.contexts(60, 30), eligible=mask)

    assert mask[np.arange(30), decision.rows[:, 0]].all()


@every
def test_decisions_have_the_seeds_of_their_numbers_and_do_not_depend_on_batches(make: Make) -> None:
    whole, split = taught(make, seed=5), taught(make, seed=5)
    contexts = WORLD.contexts(60, 6)

    at_once = whole.select(contexts)
    one_by_one = [split.select(contexts[i : i + 1]) for i in range(6)]

    assert np.array_equal(at_once.seeds, decision_seeds(5, 60, 6))
    assert at_once.arms == [decision.arms[0] for decision in one_by_one]


@every
def test_no_contexts_are_no_decisions(make: Make) -> None:
    decision = taught(make).select(np.zeros((0, 3)))

    assert len(decision) == 0
    assert decision.arms == []


@every
def test_an_update_without_rewards_changes_nothing(make: Make) -> None:
    bandit = make(arms=WORLD.arms)
    bandit.update(contexts=np.zeros((0, 3)), arms=[], rewards=[])

    assert bandit.select(WORLD.contexts(0, 1)).uniform


BAD_SELECTS: list[tuple[dict[str, Any], type[FastbanditError]]] = [
    ({"contexts": [[np.nan, 0.0, 0.0]]}, NotFiniteError),
    ({"contexts": [0.0, 0.0, 0.0]}, ShapeError),
    ({"contexts": np.zeros((2, 3)), "eligible": ["nobody"]}, UnknownArmError),
    ({"contexts": np.zeros((2, 3)), "eligible": []}, EligibilityError),
    ({"contexts": np.zeros((2, 3)), "eligible": np.ones(7, dtype=bool)}, ShapeError),
    ({"contexts": np.zeros((2, 3)), "k": 0}, SettingError),
]
BAD_UPDATES: list[tuple[dict[str, Any], type[FastbanditError]]] = [
    ({"contexts": [[np.inf, 0.0, 0.0]] * 2}, NotFiniteError),
    ({"arms": [0, 99]}, UnknownArmError),
    ({"arms": [0]}, ShapeError),
    ({"rewards": [0.0, 0.5]}, RewardError),
    ({"rewards": [0.0, np.nan]}, NotFiniteError),
    ({"rewards": [0.0]}, ShapeError),
]


@every
@pytest.mark.parametrize(("bad", "error"), BAD_SELECTS)
def test_a_bad_select_raises_and_uses_up_no_decision(
    make: Make, bad: dict[str, Any], error: type[FastbanditError]
) -> None:
    bandit = make(arms=WORLD.arms)

    with pytest.raises(error):
        bandit.select(**bad)

    assert np.array_equal(bandit.select(WORLD.contexts(0, 1)).seeds, decision_seeds(0, 0, 1))


@every
@pytest.mark.parametrize(("bad", "error"), BAD_UPDATES)
def test_a_bad_update_raises_and_leaves_the_bandit_as_it_was(
    make: Make, bad: dict[str, Any], error: type[FastbanditError]
) -> None:
    good = {"contexts": WORLD.contexts(0, 2), "arms": [3, 4], "rewards": [0.0, 1.0]}
    bandit, compiled = (make(arms=WORLD.arms, reward="binary") for _ in range(2))
    for each in (bandit, compiled):
        each.update(**good)

    with pytest.raises(error):
        bandit.update(**(good | bad))

    after, expected = (each.select(WORLD.contexts(2, 9)) for each in (bandit, compiled))
    assert after.version == 1
    assert after.arms == expected.arms
    assert np.array_equal(after.scores, expected.scores)


@every
@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"arms": np.zeros((0, 3))}, InputError),
        ({"arms": [[np.nan] * 3]}, NotFiniteError),
        ({"arms": None}, SettingError),
        ({"ids": NAMES[:-1]}, ShapeError),
        ({"ids": NAMES[:-1] + NAMES[:1]}, DuplicateArmError),
        ({"reward": "counts"}, SettingError),
        ({"seed": "tomorrow"}, SettingError),
    ],
)
def test_bad_settings_are_refused(
    make: Make, settings: dict[str, Any], error: type[FastbanditError]
) -> None:
    with pytest.raises(error):
        make(**({"arms": WORLD.arms} | settings))


# -- random and best arm


def test_a_random_bandit_stays_random_whatever_it_is_told() -> None:
    bandit = taught(RandomBandit)

    assert bandit.select(WORLD.contexts(60, 3)).uniform
    assert bandit.select(WORLD.contexts(60, 3)).version == 1


def test_arms_may_be_ids_alone() -> None:
    decision = RandomBandit(ids=["a", "b"]).select(np.zeros((20, 3)))

    assert set(decision.arms) == {"a", "b"}


def teach_arms(bandit: Any, rewards: dict[int, list[float]]) -> None:
    pairs = [(arm, reward) for arm, group in rewards.items() for reward in group]
    contexts = np.zeros((len(pairs), 3))
    bandit.update(contexts=contexts, arms=[a for a, _ in pairs], rewards=[r for _, r in pairs])


def test_the_best_arm_is_not_the_luckiest_one() -> None:
    bandit = BestArmBandit(arms=WORLD.arms)
    teach_arms(bandit, {1: [1.0] * 20, 2: [3.0], 3: [-1.0] * 10})

    assert set(bandit.select(np.zeros((10, 3))).arms) == {1}


def test_the_score_of_the_best_arm_is_its_mean_held_back() -> None:
    bandit = BestArmBandit(arms=WORLD.arms, prior_count=4.0)
    teach_arms(bandit, {1: [1.0, 1.0], 2: [0.0, 0.0]})

    decision = bandit.select(np.zeros((1, 3)), k=2)

    assert decision.scores[0] == pytest.approx([(2 + 4 * 0.5) / 6, 0.5])


def test_level_arms_share_the_decisions() -> None:
    bandit = BestArmBandit(arms=WORLD.arms)
    teach_arms(bandit, {4: [1.0], 5: [1.0], 6: [0.0]})

    counts = np.bincount(bandit.select(np.zeros((400, 3))).rows[:, 0], minlength=40)

    assert counts[4] + counts[5] == 400
    assert min(counts[4], counts[5]) > 150


def test_better_arms_come_before_level_ones() -> None:
    bandit = BestArmBandit(arms=WORLD.arms)
    teach_arms(bandit, {3: [1.0, 1.0], 4: [1.0], 5: [1.0], 6: [0.0]})

    rows = bandit.select(np.zeros((50, 3)), k=2).rows

    assert set(rows[:, 0]) == {3}
    assert set(rows[:, 1]) == {4, 5}


def test_without_any_success_the_best_arm_is_still_looked_for_everywhere() -> None:
    bandit = BestArmBandit(arms=WORLD.arms, reward="binary")
    teach_arms(bandit, {1: [0.0], 2: [0.0]})

    assert len(set(bandit.select(np.zeros((300, 3))).arms)) == 40


# -- linear


def test_arms_that_are_alike_get_the_same_draw_of_a_shared_model() -> None:
    arms = np.concatenate([WORLD.arms[:5], WORLD.arms[:5]])
    bandit = LinearTS(arms=arms, context=3)
    bandit.update(contexts=WORLD.contexts(0, 2), arms=[0, 1], rewards=[1.0, 0.0])

    scores = bandit.select(WORLD.contexts(2, 20), k=2).scores

    assert np.allclose(scores[:, 0], scores[:, 1], atol=1e-6)


@every_linear
def test_linear_bandits_beat_random_on_a_linear_world(make: Make) -> None:
    env = Synthetic("h1", 3, 15, noise=0.1, seed=2)
    size = {"batches": 8, "size": 50}

    learned = mean_reward(make(arms=env.arms), env, **size)
    random = mean_reward(RandomBandit(arms=env.arms), env, **size)
    best = float(env.best(env.contexts(0, 400))[1].mean())

    assert learned > random + 0.4 * (best - random)


@pytest.mark.parametrize("make", [linear_ts, lin_ucb])
def test_a_shared_model_soon_comes_close_to_the_best_choice(make: Make) -> None:
    bandit = taught(make, rounds=400)
    contexts = WORLD.contexts(400, 100)

    chosen = WORLD.means(contexts, bandit.select(contexts, explore=False).rows[:, 0])

    assert (WORLD.best(contexts)[1] - chosen).mean() < 0.1


@every_linear
def test_without_exploration_the_best_mean_is_chosen(make: Make) -> None:
    bandit = taught(make, rounds=30)
    contexts = WORLD.contexts(30, 4)

    greedy = bandit.select(contexts, explore=False)
    again = bandit.select(contexts, explore=False)

    means = bandit._model.means(contexts.astype(np.float64))
    assert np.array_equal(greedy.rows[:, 0], means.argmax(axis=1))
    assert greedy.arms == again.arms


@every_linear
def test_linear_bandits_say_that_they_score_every_arm(make: Make) -> None:
    decision = taught(make).select(WORLD.contexts(60, 3))

    assert decision.evaluations.tolist() == [40] * 3
    assert decision.lookups.tolist() == [0] * 3


@every_linear
def test_scoring_in_small_blocks_changes_no_choice(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = WORLD.contexts(60, 12)
    whole = taught(make).select(contexts, k=2)

    monkeypatch.setattr(ridge, "_BLOCK", 100)
    parts = taught(make).select(contexts, k=2)

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
def test_a_model_too_large_for_memory_is_refused_with_the_arithmetic(
    settings: dict[str, Any], arithmetic: str
) -> None:
    with pytest.raises(SettingError, match=arithmetic):
        LinearTS(context=50, **settings)


@pytest.mark.parametrize(
    "settings", [{"ridge": 0.0}, {"scale": -1.0}, {"scale": np.nan}, {"context": Ids(4)}]
)
def test_linear_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        linear_ts(**({"arms": WORLD.arms} | settings))
