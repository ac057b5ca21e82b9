"""Intervals hold the truth about as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from lab.estimators.coverage import LoggedEnvironment, check_coverage


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    found = check_coverage(logs=30, sizes=(400,))

    assert all(one.coverage >= 0.8 for one in found)


def test_errors_fall_as_rounds_come() -> None:
    few, many = (check_coverage(logs=8, sizes=(size,), interval="normal") for size in (200, 3_200))

    assert all(more.error < less.error for less, more in zip(few, many, strict=True))


def _numbers(environment: LoggedEnvironment, contexts: np.ndarray) -> np.ndarray:
    known = {row.tobytes(): number for number, row in enumerate(environment.contexts)}
    return np.array([known[row.tobytes()] for row in contexts])


def test_the_true_value_is_what_the_policy_earns() -> None:
    environment = LoggedEnvironment.make()
    rounds, policy = environment.log(20_000, seed=1)
    rewards = environment.probabilities[_numbers(environment, rounds.contexts)]
    earned = (policy.probabilities * rewards).sum(axis=1)

    assert earned.mean() == pytest.approx(environment.value, abs=0.01)
