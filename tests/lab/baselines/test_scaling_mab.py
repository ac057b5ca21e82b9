"""Scaling bandits: bounds of KL-UCB, how many arms pay, and what is forgotten."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from fastbandit.errors import SettingError
from lab.baselines.scaling_mab import (
    FixedPlays,
    KLScaling,
    MultiplePlayTS,
    SharedWindow,
    Tally,
    best_plays,
    is_plausible,
)

SHARES = st.floats(0.0, 1.0)


def kl(p: float, q: float) -> float:
    terms = [a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0]
    return sum(terms)


def plausible(level: float, mean: float, count: float, rounds: int) -> bool:
    return bool(is_plausible(level, np.array([mean]), np.array([count]), rounds=rounds)[0])


def play(bandit: MultiplePlayTS, means: np.ndarray, rounds: int, *, seed: int = 0) -> list[int]:
    """Return how many arms were played in each round."""
    rng, plays = np.random.default_rng(seed), []
    for _ in range(rounds):
        rows = bandit.select()
        bandit.update(rows, (rng.random(len(rows)) < means[rows]).astype(float))
        plays.append(len(rows))
    return plays


# -- KL-UCB


@given(mean=st.floats(0.01, 0.99), count=st.integers(1, 500), rounds=st.integers(2, 10_000))
def test_levels_are_plausible_up_to_the_bound_of_kl_ucb(
    mean: float, count: int, rounds: int
) -> None:
    limit = math.log(rounds) / count
    high = 1 - 1e-12
    bound = high if kl(mean, high) <= limit else brentq(lambda q: kl(mean, q) - limit, mean, high)

    assert plausible(bound - 1e-6, mean, count, rounds)
    assert not plausible(min(1.0, bound + 1e-6), mean, count, rounds)


@given(level=SHARES, mean=SHARES, count=st.integers(1, 100), rounds=st.integers(1, 1000))
def test_bounds_narrow_with_rewards_and_widen_with_rounds(
    level: float, mean: float, count: int, rounds: int
) -> None:
    if plausible(level, mean, count + 1, rounds):
        assert plausible(level, mean, count, rounds)
    if plausible(level, mean, count, rounds):
        assert plausible(level, mean, count, rounds + 1)


def test_an_arm_without_rewards_may_be_worth_anything_below_1() -> None:
    assert plausible(0.999, 0.0, 0, 1)
    assert not plausible(1.0, 0.0, 0, 1)


# -- how many plays


@given(st.lists(SHARES, min_size=1, max_size=20), st.floats(0.0, 0.99))
def test_the_best_plays_are_the_most_that_pay(means: list[float], cost: float) -> None:
    ranked = sorted(means, reverse=True)
    paying = [n for n in range(1, len(means) + 1) if sum(ranked[:n]) > cost * n + 1e-9]
    at_most = [n for n in range(1, len(means) + 1) if sum(ranked[:n]) > cost * n - 1e-9]

    assert max(paying, default=1) <= best_plays(np.array(means), cost) <= max(at_most, default=1)


@pytest.mark.parametrize("good", [1, 3, 7])
@pytest.mark.parametrize("seed", [0, 1])
def test_plays_converge_to_the_number_of_arms_above_the_cost(good: int, seed: int) -> None:
    means = np.where(np.arange(10) < good, 0.9, 0.02)
    rng = np.random.default_rng(seed)
    bandit = MultiplePlayTS(10, scaling=KLScaling(0.85), rng=rng)

    plays = play(bandit, means, 2000, seed=seed)

    assert best_plays(means, 0.85) == good
    assert np.mean(plays[-300:]) == pytest.approx(good, abs=0.35)


def test_arms_below_the_cost_are_played_while_the_mean_of_all_pays() -> None:
    means = np.array([0.95, 0.9, 0.3, 0.05, 0.05])

    bandit = MultiplePlayTS(5, scaling=KLScaling(0.6), rng=np.random.default_rng(0))

    assert best_plays(means, 0.6) == 3
    assert np.mean(play(bandit, means, 3000)[-500:]) == pytest.approx(3, abs=0.35)


def test_plays_move_by_at_most_one_and_stay_within_the_arms() -> None:
    means = np.linspace(0.1, 0.9, 8)
    bandit = MultiplePlayTS(8, scaling=KLScaling(0.6), rng=np.random.default_rng(0))

    plays = np.array(play(bandit, means, 400))

    assert plays[0] == 8
    assert np.abs(np.diff(plays)).max() <= 1
    assert plays.min() >= 1
    assert plays.max() <= 8


def test_where_no_arm_pays_one_is_played() -> None:
    bandit = MultiplePlayTS(4, scaling=KLScaling(0.9), rng=np.random.default_rng(0))

    assert set(play(bandit, np.full(4, 0.1), 200)[10:]) == {1}


@pytest.mark.parametrize("plays", [0, 5])
def test_a_round_has_between_one_play_and_one_for_each_arm(plays: int) -> None:
    with pytest.raises(SettingError, match="between 1 and 4"):
        MultiplePlayTS(4, scaling=FixedPlays(plays), rng=np.random.default_rng(0))


def test_each_arm_is_played_at_most_once_a_round() -> None:
    bandit = MultiplePlayTS(6, scaling=FixedPlays(4), rng=np.random.default_rng(0))

    for _ in range(20):
        rows = bandit.select()
        assert len(set(rows.tolist())) == 4
        bandit.update(rows, np.ones(4))


def test_the_same_seed_plays_the_same() -> None:
    means = np.linspace(0.1, 0.9, 8)
    one, two = (
        MultiplePlayTS(8, scaling=KLScaling(0.6), rng=np.random.default_rng(3)) for _ in range(2)
    )

    assert play(one, means, 200) == play(two, means, 200)


# -- forgetting


def test_what_is_forgotten_leaves_the_tally_as_if_it_had_never_been() -> None:
    rows, rewards = np.array([0, 2]), np.array([1.0, 0.0])
    tally, other = Tally(3), Tally(3)
    for one in (tally, other):
        one.add(np.array([1, 2]), np.array([0.5, 0.5]))

    tally.add(rows, rewards)
    tally.remove(rows, rewards)

    assert np.array_equal(tally.counts, other.counts)
    assert np.allclose(tally.means, other.means)


def test_the_window_returns_the_rounds_before_the_change_of_any_arm() -> None:
    window = SharedWindow(2)
    rng, forgotten = np.random.default_rng(0), 0
    for number in range(800):
        steady, stepped = rng.random() < 0.5, rng.random() < (0.05 if number < 400 else 0.95)
        forgotten += len(window.add(np.array([0, 1]), np.array([steady, stepped], dtype=float)))

    assert forgotten + len(window) == 800
    assert forgotten == pytest.approx(400, abs=40)


def test_after_a_change_a_window_finds_the_new_number_of_plays_sooner() -> None:
    before, after = np.array([0.9] * 6 + [0.05] * 4), np.array([0.0] * 3 + [0.9] * 3 + [0.05] * 4)
    late = {}
    for name, window in (("S-TS", None), ("S-TS-ADWIN", SharedWindow(10))):
        rng = np.random.default_rng(0)
        bandit = MultiplePlayTS(10, scaling=KLScaling(0.8), rng=rng, window=window)
        play(bandit, before, 1500)
        late[name] = np.mean(play(bandit, after, 500, seed=1)[-200:])

    best = best_plays(after, 0.8)
    assert abs(late["S-TS-ADWIN"] - best) < 0.5
    assert abs(late["S-TS-ADWIN"] - best) <= abs(late["S-TS"] - best)
