"""Version 0 decides by popularity once it is known, and says how likely each arm is."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, FrozenBandit
from fastbandit.errors import InputError
from fastbandit.runtime.popularity import OTHERS

ARMS = 200
CONTEXT = [0.0, 0.0]
SEEDS = np.arange(4_000, dtype=np.uint64)
ROWS = np.array([OTHERS, 3, 5, 8, 9])
MEANS = np.array([0.10, 0.05, 0.05, 0.40, 0.12])
DEVIATIONS = np.array([0.10, 0.08, 0.08, 0.20, 0.10])


@pytest.fixture
def frozen() -> FrozenBandit:
    made = Bandit(arms=vectors_of(ARMS, 3, seed=2), context=2).freeze()
    made.apply_delta(ROWS, MEANS, DEVIATIONS)
    return made


def drawn(frozen: FrozenBandit, **terms: object) -> np.ndarray:  # type: ignore[type-arg]
    contexts = np.zeros((len(SEEDS), 2), dtype=np.float32)
    return frozen.select(contexts, seeds=SEEDS, **terms).rows[:, 0]  # type: ignore[arg-type]


def test_before_any_reward_all_arms_are_as_likely() -> None:
    frozen = Bandit(arms=vectors_of(ARMS, 3, seed=2), context=2).freeze()

    assert frozen.select(np.zeros((1, 2))).uniform
    assert frozen.propensities(CONTEXT).rest == pytest.approx(1 / ARMS)


def test_popular_arms_are_taken_more_often_and_others_are_still_tried(
    frozen: FrozenBandit,
) -> None:
    counts = np.bincount(drawn(frozen), minlength=ARMS)

    assert counts.argmax() == 8
    assert 0.5 < counts[8] / len(SEEDS) < 0.95
    assert np.count_nonzero(np.delete(counts, ROWS[1:])) > 100


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_propensities_are_those_of_its_decisions(frozen: FrozenBandit, epsilon: float) -> None:
    found = frozen.propensities(CONTEXT, epsilon=epsilon)
    shares = np.bincount(drawn(frozen, epsilon=epsilon), minlength=ARMS) / len(SEEDS)

    assert found.is_exact
    assert found.probabilities.sum() + 196 * found.rest == pytest.approx(1.0)
    for row in (3, 5, 8, 9):
        assert found.of(row) == pytest.approx(shares[row], abs=0.02)
    assert 196 * found.rest == pytest.approx(np.delete(shares, ROWS[1:]).sum(), abs=0.02)


def test_only_eligible_arms_are_taken(frozen: FrozenBandit) -> None:
    taken = drawn(frozen, eligible=[3, 9, 20])
    found = frozen.propensities(CONTEXT, eligible=[3, 9, 20], epsilon=0.0)

    assert {*taken.tolist()} == {3, 9, 20}
    assert found.of(20) == pytest.approx((taken == 20).mean(), abs=0.03)


def test_a_seed_decides_the_same_one_by_one(frozen: FrozenBandit) -> None:
    one_by_one = [frozen.select_one(CONTEXT, seed=seed).row for seed in range(50)]

    assert one_by_one == drawn(frozen)[:50].tolist()


def test_without_exploration_the_most_popular_arm_is_taken(frozen: FrozenBandit) -> None:
    assert {*drawn(frozen, explore=False).tolist()} == {8}


def test_a_slate_holds_different_arms(frozen: FrozenBandit) -> None:
    rows = frozen.select(np.zeros((20, 2)), k=ARMS).rows

    assert all(len({*row}) == ARMS for row in rows.tolist())


def test_arms_that_came_later_are_among_the_others(frozen: FrozenBandit) -> None:
    frozen.add_arms(vectors_of(100, 3, seed=3), ids=list(range(1000, 1100)))
    frozen.discard_arms([8])
    taken = drawn(frozen)

    assert (taken >= ARMS).any()
    assert not (taken == 8).any()
    assert frozen.propensities(CONTEXT).eligible_count == ARMS + 99


def test_a_delta_without_the_others_is_rejected(frozen: FrozenBandit) -> None:
    with pytest.raises(InputError, match="row -1 first"):
        frozen.apply_delta(ROWS[1:], MEANS[1:], DEVIATIONS[1:])
