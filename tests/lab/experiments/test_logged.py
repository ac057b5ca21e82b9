"""Logs are checked, and a simulator fitted to one finds what is in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fastbandit.errors import InputError, NotFiniteError, ShapeError
from fastbandit.features.kinds import Dense, Sparse
from fastbandit.types import Inputs
from lab.experiments.logged import LoggedData, fit_simulator

TRUTH = np.array([[0.8, 0.2, 0.5], [0.1, 0.7, 0.5]])
"""What three arms are worth to two kinds of users."""


def log_of(truth: np.ndarray, *, rounds: int = 3_000, reward: str = "binary") -> LoggedData:
    numbers = np.random.default_rng(1)
    kind = numbers.integers(len(truth), size=rounds)
    chosen = numbers.integers(truth.shape[1], size=rounds)
    means = truth[kind, chosen]
    if reward == "binary":
        rewards = (numbers.random(rounds) < means).astype(float)
    else:
        rewards = means + 0.3 * numbers.standard_normal(rounds)
    return LoggedData(
        name="little",
        context=Dense(len(truth)),
        contexts=Inputs(dense=np.eye(len(truth), dtype=np.float32)[kind]),
        size=truth.shape[1],
        chosen=chosen,
        rewards=rewards,
        reward=reward,  # type: ignore[arg-type]
        seed=4,
    )


@pytest.mark.parametrize("arms", [None, np.eye(3, dtype=np.float32)])
@pytest.mark.parametrize("reward", ["binary", "real"])
def test_a_simulator_finds_what_each_arm_is_worth_to_each_context(reward: str, arms: Any) -> None:
    log = replace(log_of(TRUTH, reward=reward), arms=arms)

    environment = fit_simulator(log)

    kinds = environment.instances.dense.argmax(axis=1)  # type: ignore[union-attr]
    assert environment.expected_rewards.shape == (2, 3)
    assert np.abs(environment.expected_rewards - TRUTH[kinds]).max() < 0.1


def test_features_predict_an_arm_that_was_never_taken() -> None:
    truth = np.array([[0.9, 0.9, 0.9, 0.1], [0.1, 0.1, 0.1, 0.9]])
    log = log_of(truth)
    rows = log.chosen != 2
    features = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], dtype=np.float32)
    log = replace(
        log,
        contexts=log.contexts.take(rows),
        chosen=log.chosen[rows],
        rewards=log.rewards[rows],
        arms=features,
    )

    environment = fit_simulator(log)

    kinds = environment.instances.dense.argmax(axis=1)  # type: ignore[union-attr]
    assert np.abs(environment.expected_rewards[:, 2] - truth[kinds, 2]).max() < 0.2


def test_the_rounds_of_a_simulator_are_those_of_the_log() -> None:
    log = log_of(TRUTH, rounds=300)

    environment = fit_simulator(log)

    seen = environment.contexts(0, environment.rounds)
    assert environment.rounds == 300
    assert np.array_equal(seen.sum(axis=0), log.contexts.dense.sum(axis=0))  # type: ignore[union-attr]
    assert environment.seed == 4


def test_a_simulator_is_the_same_for_every_seed() -> None:
    log = log_of(TRUTH, rounds=300)

    one, two = (fit_simulator(replace(log, seed=seed)) for seed in (0, 1))

    assert np.array_equal(one.expected_rewards, two.expected_rewards)
    assert not np.array_equal(one.contexts(0, 50), two.contexts(0, 50))


def test_a_simulator_says_that_it_is_one_and_how_good() -> None:
    notes = " | ".join(fit_simulator(log_of(TRUTH), strengths=(1.0, 50.0)).notes)

    assert "simulator fitted to the log: rewards are the model's, not observed" in notes
    assert "better than the constant (+" in notes
    assert "penalty 1, picked among 1, 50" in notes


def test_a_simulator_of_real_rewards_has_the_noise_of_its_log() -> None:
    environment = fit_simulator(log_of(TRUTH, reward="real"), strengths=(1.0,))

    rows = np.zeros(environment.rounds, dtype=np.int64)
    errors = environment.observed(0, rows) - environment.expected(0, rows)
    assert environment.noise == pytest.approx(0.3, rel=0.05)
    assert errors.std() == pytest.approx(0.3, rel=0.05)
    assert (
        f"the log's own noise about the model: deviation {environment.noise:.4g}"
        in environment.notes[-1]
    )


def test_a_simulator_of_binary_rewards_needs_no_other_noise() -> None:
    environment = fit_simulator(log_of(TRUTH, rounds=100), strengths=(1.0,))

    assert environment.noise == 0.0
    assert "noise" not in " ".join(environment.notes)


def test_a_log_without_a_signal_gives_a_flat_simulator_that_says_so() -> None:
    environment = fit_simulator(log_of(np.full((2, 3), 0.3), rounds=400))

    assert np.ptp(environment.expected_rewards) < 0.1
    assert "NO BETTER than the constant" in " ".join(environment.notes)


def test_rewards_of_one_kind_only_are_fitted_too() -> None:
    log = replace(log_of(TRUTH, rounds=50), rewards=np.zeros(50))

    assert fit_simulator(log, folds=2).expected_rewards.max() < 0.1


def test_progress_goes_from_the_first_strength_to_the_end() -> None:
    reported: list[tuple[int, int]] = []

    fit_simulator(
        log_of(TRUTH, rounds=50),
        strengths=(1.0, 10.0),
        progress=lambda done, steps, doing: reported.append((done, steps)),
    )

    assert reported == [(0, 2), (1, 2), (2, 2)]


def test_sparse_contexts_have_no_simulator() -> None:
    from scipy.sparse import csr_matrix

    log = log_of(TRUTH, rounds=10)
    sparse = Inputs(sparse=csr_matrix(log.contexts.dense))

    with pytest.raises(InputError, match="rows of numbers: got Sparse"):
        fit_simulator(replace(log, contexts=sparse, context=Sparse(2)))


def test_more_rewards_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.experiments.logged._MOST_PAIRS", 5)

    with pytest.raises(InputError, match=r"at most 5 pairs .* got 2 distinct contexts and 3 arms"):
        fit_simulator(log_of(TRUTH, rounds=10))


def test_a_log_needs_all_parts_of_each_round() -> None:
    with pytest.raises(ShapeError, match="'rewards': 9"):
        replace(log_of(TRUTH, rounds=10), rewards=np.zeros(9))


def test_a_log_needs_the_features_of_all_arms() -> None:
    with pytest.raises(ShapeError, match="each of its 3 arms: got 2"):
        replace(log_of(TRUTH, rounds=10), arms=np.zeros((2, 2)))


def test_an_arm_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="from 0 to 1: got 2"):
        replace(log_of(TRUTH, rounds=20), size=2)


@pytest.mark.parametrize("propensity", [0.0, 1.5, np.nan])
def test_a_propensity_is_a_probability_above_zero(propensity: float) -> None:
    with pytest.raises(InputError, match=f"got {propensity} in row 0"):
        replace(log_of(TRUTH, rounds=10), propensities=np.full(10, propensity))


def test_a_reward_that_is_not_known_is_refused() -> None:
    with pytest.raises(NotFiniteError, match="got nan in row 0"):
        replace(log_of(TRUTH, rounds=10), rewards=np.full(10, np.nan))
