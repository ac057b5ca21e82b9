"""Uniform mixing, and the probabilities of the arms."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from fakes import seeds_of, vectors_of
from little_frozen import CONTEXTS, fresh, frozen_bandit

from fastbandit import Bandit, FrozenBandit, Ids
from fastbandit.arms.eligibility import draw_eligible
from fastbandit.errors import NotFiniteError, SettingError, ShapeError, UnknownArmError
from fastbandit.runtime.propensity import Propensities, are_uniform, is_uniform

CONTEXT = CONTEXTS[0]
ARMS = vectors_of(40, 3, seed=1)
SEEDS = seeds_of(4000)


@pytest.fixture(scope="module")
def shared(little_training: None) -> FrozenBandit:
    return frozen_bandit(arms=ARMS, posterior="last-layer")  # which is less sure than dropout


@pytest.fixture
def frozen(shared: FrozenBandit) -> FrozenBandit:
    return fresh(shared)


def total(found: Propensities) -> float:
    return float(found.probabilities.sum() + found.rest * (found.eligible_count - len(found.rows)))


# -- propensities


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("eligible", [None, [3, 5, 8], np.arange(40) < 20])
def test_probabilities_of_all_open_arms_sum_to_one(
    frozen: FrozenBandit, epsilon: float, eligible: Any
) -> None:
    found = frozen.propensities(CONTEXT, epsilon=epsilon, eligible=eligible)

    assert total(found) == pytest.approx(1)
    assert found.probabilities.min() >= epsilon / found.eligible_count
    assert found.rest == epsilon / found.eligible_count


@pytest.mark.parametrize("eligible", [None, [3, 5, 8, 13], np.arange(40) < 20])
def test_probabilities_are_the_frequencies_of_choices_made_with_the_same_floor(
    frozen: FrozenBandit, eligible: Any
) -> None:
    found = frozen.propensities(CONTEXT, draws=4000, epsilon=0.2, eligible=eligible)

    chosen = [
        frozen.select_one(CONTEXT, seed=seed, eligible=eligible, epsilon=0.2).arm
        for seed in SEEDS.tolist()
    ]

    counts = Counter(chosen)
    for arm, chance, error in zip(
        found.arms, found.probabilities, found.standard_errors, strict=True
    ):
        of_counting = np.sqrt(chance * (1 - chance) / len(SEEDS))
        assert abs(counts[arm] / len(SEEDS) - chance) < 4 * np.hypot(error, of_counting)
    others = sum(count for arm, count in counts.items() if arm not in found.arms)
    expected = found.rest * (found.eligible_count - len(found.arms))
    assert abs(others / len(SEEDS) - expected) < 4 * np.sqrt(0.25 / len(SEEDS))


def test_the_standard_error_is_that_of_a_share_above_epsilon(frozen: FrozenBandit) -> None:
    found = frozen.propensities(CONTEXT, draws=500, epsilon=0.1)

    shares = (found.probabilities - found.rest) / 0.9
    expected = np.sqrt(shares * (1 - shares) / 500) * 0.9
    np.testing.assert_allclose(found.standard_errors, expected)


def test_only_eligible_arms_have_a_probability(frozen: FrozenBandit) -> None:
    frozen.discard_arms([5])

    found = frozen.propensities(CONTEXT, eligible=[3, 5, 8])

    assert set(found.arms) <= {3, 8}
    assert found.eligible_count == 2


def test_a_predicate_tells_which_arms_were_open(frozen: FrozenBandit) -> None:
    frozen.set_columns({"price": np.arange(40)})

    found = frozen.propensities(CONTEXT, eligible={"price": {"<": 10}})

    assert found.eligible_count == 10
    assert found.rows.max() < 10


def test_the_likeliest_comes_first_and_others_share_the_rest(frozen: FrozenBandit) -> None:
    found = frozen.propensities(CONTEXT)
    other = next(row for row in range(40) if row not in found.arms)

    assert (np.diff(found.probabilities) <= 0).all()
    assert found.of(found.arms[0]) == found.probabilities[0]
    assert found.of(other) == 0.01 / 40


def test_an_arm_that_was_not_eligible_has_no_probability(frozen: FrozenBandit) -> None:
    found = frozen.propensities(CONTEXT, eligible=[3])

    with pytest.raises(UnknownArmError, match="eligible"):
        found.of(4)


def test_the_seed_fixes_the_draws(frozen: FrozenBandit) -> None:
    one, same, other = (frozen.propensities(CONTEXT, seed=seed) for seed in (1, 1, 2))

    np.testing.assert_array_equal(one.probabilities, same.probabilities)
    assert one.arms != other.arms or one.probabilities.tolist() != other.probabilities.tolist()


@pytest.mark.parametrize(
    ("explore", "search"),
    [("greedy", "generator"), ("greedy", "exhaustive"), ("ucb", "generator")],
)
def test_a_policy_that_draws_nothing_puts_all_on_one_arm(
    little_training: None, explore: str, search: str
) -> None:
    certain = frozen_bandit(arms=ARMS, exploration=explore, search=search)

    found = certain.propensities(CONTEXT, epsilon=0.1)

    assert found.is_exact
    assert found.arms == [certain.select_one(CONTEXT).arm]
    assert found.probabilities.tolist() == pytest.approx([0.9 + 0.1 / 40])
    assert found.standard_errors.tolist() == [0]


def test_a_greedy_climb_starts_anywhere_and_is_no_exact_policy(little_training: None) -> None:
    greedy = frozen_bandit(arms=ARMS, exploration="greedy", search="ascent")

    found = greedy.propensities(CONTEXT, draws=50)

    assert not found.is_exact
    assert found.draws == 50


def test_a_context_of_ids_has_propensities_too(little_training: None) -> None:
    bandit = Bandit(arms=ARMS, context=Ids(3))
    bandit.update(contexts=[0, 1, 2], arms=[0, 1, 2], rewards=[0, 1, 0])

    assert total(bandit.freeze().propensities([2])) == pytest.approx(1)


@pytest.mark.parametrize(
    "request_of",
    [
        {"epsilon": -0.1},
        {"epsilon": 1.5},
        {"epsilon": float("nan")},
        {"epsilon": "a little"},
        {"draws": 0},
        {"draws": 2.5},
    ],
)
def test_epsilon_is_a_probability_and_draws_are_counted(
    frozen: FrozenBandit, request_of: dict[str, Any]
) -> None:
    with pytest.raises(SettingError):
        frozen.propensities(CONTEXT, **request_of)


def test_propensities_are_of_one_context(frozen: FrozenBandit) -> None:
    with pytest.raises(ShapeError):
        frozen.propensities(CONTEXTS)
    with pytest.raises(NotFiniteError):
        frozen.propensities([np.nan, 0, 0, 0])


# -- deciding with uniform mixing


def test_without_epsilon_nothing_changes(frozen: FrozenBandit) -> None:
    plain = frozen.select(CONTEXTS, seeds=SEEDS[:30])
    mixed = frozen.select(CONTEXTS, seeds=SEEDS[:30], epsilon=0.0)

    np.testing.assert_array_equal(plain.rows, mixed.rows)


def test_epsilon_of_one_is_the_uniform_choice_of_the_same_seeds(frozen: FrozenBandit) -> None:
    decision = frozen.select(CONTEXTS, seeds=SEEDS[:30], epsilon=1.0)

    expected = draw_eligible(SEEDS[:30], None, arms=40, count=1)
    np.testing.assert_array_equal(decision.rows, expected)


@pytest.mark.parametrize("eligible", [None, [3, 5, 8, 13], np.arange(40) < 20])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0])
def test_one_decision_with_epsilon_is_that_of_many(
    frozen: FrozenBandit, epsilon: float, eligible: Any
) -> None:
    frozen.discard_arms([0, 8])
    contexts = np.tile(CONTEXT, (300, 1))

    many = frozen.select(contexts, seeds=SEEDS[:300], epsilon=epsilon, eligible=eligible)

    for seed, row in zip(SEEDS[:300].tolist(), many.rows[:, 0], strict=True):
        assert frozen.select_one(CONTEXT, seed=seed, epsilon=epsilon, eligible=eligible).row == row


def test_only_decisions_that_fall_to_epsilon_change(frozen: FrozenBandit) -> None:
    contexts, seeds = np.tile(CONTEXT, (2000, 1)), SEEDS[:2000]
    fallen = are_uniform(seeds, 0.25)

    plain = frozen.select(contexts, seeds=seeds)
    mixed = frozen.select(contexts, seeds=seeds, epsilon=0.25)

    assert abs(len(fallen) / 2000 - 0.25) < 0.04
    kept = np.setdiff1d(np.arange(2000), fallen)
    np.testing.assert_array_equal(plain.rows[kept], mixed.rows[kept])
    counts = np.bincount(mixed.rows[fallen, 0], minlength=40)
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 72  # 0.1 % of chi-square, 39


def test_one_seed_and_many_fall_to_epsilon_alike() -> None:
    fallen = set(are_uniform(SEEDS[:500], 0.3).tolist())

    assert fallen == {n for n, seed in enumerate(SEEDS[:500].tolist()) if is_uniform(seed, 0.3)}


def test_several_arms_at_epsilon_are_different_and_best_first(frozen: FrozenBandit) -> None:
    decision = frozen.select(CONTEXTS, k=5, epsilon=1.0, eligible=np.arange(40) < 6)

    assert all(len(set(rows)) == 5 for rows in decision.rows.tolist())
    assert (np.diff(decision.scores, axis=1) <= 0).all()
    assert decision.rows.max() < 6


def test_more_arms_than_are_open_at_epsilon_leave_places_empty(frozen: FrozenBandit) -> None:
    decision = frozen.select(CONTEXTS, k=3, epsilon=1.0, eligible=[7, 9])

    assert [set(arms) for arms in decision.arms] == [{7, 9}] * len(CONTEXTS)
    assert (decision.rows[:, 2] == -1).all()


def test_each_context_keeps_to_its_own_arms_at_epsilon(frozen: FrozenBandit) -> None:
    eligible = [[number, number + 1] for number in range(len(CONTEXTS))]

    rows = frozen.select(CONTEXTS, epsilon=1.0, eligible=eligible).rows[:, 0]

    assert set(rows - np.arange(len(CONTEXTS))) == {0, 1}


def test_epsilon_never_draws_an_arm_that_is_gone(frozen: FrozenBandit) -> None:
    frozen.discard_arms(range(0, 40, 2))
    frozen.add_arms(ARMS[:1], ids=["new"])

    for _ in range(2):
        drawn = set(frozen.select(np.tile(CONTEXT, (500, 1)), epsilon=1.0).arms)

        assert drawn == {*range(1, 40, 2), "new"}
        frozen.index()


@pytest.mark.parametrize("epsilon", [-0.5, 2, "some", True])
def test_epsilon_that_is_no_probability_is_refused(frozen: FrozenBandit, epsilon: Any) -> None:
    with pytest.raises(SettingError, match="probability"):
        frozen.select_one(CONTEXT, epsilon=epsilon)
    with pytest.raises(SettingError, match="probability"):
        frozen.select(CONTEXTS, epsilon=epsilon)
