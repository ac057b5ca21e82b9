"""What all baselines have in common: the same select and update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import BestArmBandit, LinearTS, LinUCB, RandomBandit
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


def trained(make: Make, *, ids: Any = None, rounds: int = 60, **settings: Any) -> Any:
    bandit = make(arms=WORLD.arms, ids=ids, **settings)
    contexts = WORLD.contexts(0, rounds)
    decision = bandit.select(contexts)
    rewards = WORLD.observed(0, decision.rows[:, 0])
    bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
    return bandit


@every
def test_the_first_choices_are_uniform_and_say_so(make: Make) -> None:
    decision = make(arms=WORLD.arms).select(WORLD.contexts(0, 2_000))

    counts = np.bincount(decision.rows[:, 0], minlength=40)
    assert decision.uniform
    assert decision.version == 0
    assert ((counts - 50) ** 2 / 50).sum() < 72.1  # 0.1 % of chi-square, 39 degrees


@every_learner
def test_choices_after_an_update_are_not_uniform(make: Make) -> None:
    decision = trained(make).select(WORLD.contexts(60, 5))

    assert not decision.uniform
    assert decision.version == 1
    assert np.isfinite(decision.scores).all()


@every
def test_one_arm_for_each_context_is_a_flat_list_of_ids(make: Make) -> None:
    decision = trained(make, ids=NAMES).select(WORLD.contexts(60, 5))

    assert decision.rows.shape == decision.scores.shape == (5, 1)
    assert decision.arms == [NAMES[row] for row in decision.rows[:, 0]]


@every
def test_several_arms_are_different_and_best_first(make: Make) -> None:
    decision = trained(make, ids=NAMES).select(WORLD.contexts(60, 5), k=4)

    assert [len(set(arms)) for arms in decision.arms] == [4] * 5
    assert (np.diff(decision.scores, axis=1) <= 0).all()
    assert decision.arms == [[NAMES[row] for row in rows] for rows in decision.rows]


@every
@pytest.mark.parametrize("rounds", [0, 60])
def test_asking_for_more_than_is_eligible_gives_all_of_these(make: Make, rounds: int) -> None:
    bandit = trained(make, ids=NAMES) if rounds else make(arms=WORLD.arms, ids=NAMES)
    eligible = [["arm 3", "arm 5"], ["arm 7"]]

    decision = bandit.select(WORLD.contexts(60, 2), k=3, eligible=eligible)

    assert [set(arms) for arms in decision.arms] == [{"arm 3", "arm 5"}, {"arm 7"}]
    assert decision.rows[0, 2] == -1
    assert decision.rows[1].tolist() == [7, -1, -1]
    assert np.isneginf(decision.scores[1, 1:]).all()


@every
def test_asking_for_more_arms_than_there_are_gives_them_all(make: Make) -> None:
    decision = trained(make).select(WORLD.contexts(60, 1), k=50)

    assert sorted(decision.arms[0]) == list(range(40))
    assert decision.rows.shape == (1, 50)


@every
def test_only_eligible_arms_are_chosen(make: Make) -> None:
    mask = np.random.default_rng(0).random((30, 40)) < 0.1
    mask[:, 0] = True

    decision = trained(make).select(WORLD.contexts(60, 30), eligible=mask)

    assert mask[np.arange(30), decision.rows[:, 0]].all()


@every
def test_decisions_have_the_seeds_of_their_numbers_and_do_not_depend_on_batches(make: Make) -> None:
    whole, split = trained(make, seed=5), trained(make, seed=5)
    contexts = WORLD.contexts(60, 6)

    at_once = whole.select(contexts)
    one_by_one = [split.select(contexts[i : i + 1]) for i in range(6)]

    assert np.array_equal(at_once.seeds, decision_seeds(5, 60, 6))
    assert at_once.arms == [decision.arms[0] for decision in one_by_one]


@every
def test_no_contexts_are_no_decisions(make: Make) -> None:
    decision = trained(make).select(np.zeros((0, 3)))

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
def test_bad_settings_are_rejected(
    make: Make, settings: dict[str, Any], error: type[FastbanditError]
) -> None:
    with pytest.raises(error):
        make(**({"arms": WORLD.arms} | settings))
