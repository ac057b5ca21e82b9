"""Environments whose rewards drift: at a known pace, with a known best reward in each round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.errors import SettingError
from lab.experiments import datasets
from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.experiments.drift import KINDS, Drift


def environment(kind: str, *, dim: int = 4, period: int = 10) -> SyntheticRounds:
    return SyntheticRounds("h1", dim, 60, noise=0.0, seed=3, drift=Drift(kind, period, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [2, 3, 4])
def test_rotated_contexts_keep_their_length(kind: str, dim: int) -> None:
    contexts = environment(kind, dim=dim).contexts(0, 40)

    rotated = Drift(kind, 10)(contexts, 0)

    assert np.allclose(np.linalg.norm(rotated, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_is_rotated_alike_in_any_batch(kind: str) -> None:
    contexts = environment(kind).contexts(0, 25)
    drift = Drift(kind, 10)

    parts = [drift(contexts[i : i + 7], i) for i in range(0, 25, 7)]

    assert np.allclose(np.concatenate(parts), drift(contexts, 0))


def test_a_switch_changes_rewards_after_a_period_and_not_before() -> None:
    still, moved = SyntheticRounds("h1", 4, 60, noise=0.0, seed=3), environment("switch")
    rows = np.zeros(20, dtype=np.int64)

    same = np.isclose(still.expected(0, rows), moved.expected(0, rows))

    assert same[:10].all()
    assert not same[10:].any()


def test_a_full_turn_comes_back_to_where_it_began() -> None:
    contexts = environment("turn").contexts(0, 1)
    drift = Drift("turn", 10)

    assert np.allclose(drift(contexts, 0), drift(contexts, 10))
    assert np.allclose(drift(contexts, 5), -contexts, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_reward_of_a_round_is_that_of_its_best_arm(kind: str) -> None:
    env = environment(kind)
    each = np.stack([env.expected(5, np.full(20, row)) for row in range(env.size)])

    assert np.allclose(env.ceiling(5, 20), each.max(axis=0))


def test_the_best_arm_in_hindsight_earns_most_in_an_environment_that_drifts() -> None:
    env = environment("switch")
    totals = [env.expected(0, np.full(30, row)).sum() for row in range(env.size)]

    assert env.best_arm(30) == int(np.argmax(totals))


def test_a_drifting_dataset_goes_by_name() -> None:
    env = datasets.load("h2", arms=50, drift="turn", period=500)

    assert isinstance(env, SyntheticRounds)
    assert env.drift == Drift("turn", 500)


@pytest.mark.parametrize("option", [{"drift": "swich"}, {"drift": "turn", "period": 0}])
def test_a_drift_that_cannot_be_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"Did you mean 'switch'|at least 1 round: got 0"):
        datasets.load("h2", arms=50, **option)
