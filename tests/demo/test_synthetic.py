"""Synthetic environments: known functions, the same for every policy."""

from __future__ import annotations

from math import cos, sqrt

import numpy as np
import pytest

from fastbandit.demo import synthetic
from fastbandit.demo.synthetic import FUNCTIONS, Synthetic
from fastbandit.errors import InputError, SettingError


def environment(
    function: str = "h1", *, dim: int = 3, noise: float = 1.0, seed: int = 0
) -> Synthetic:
    return Synthetic(function, dim, 50, noise=noise, seed=seed)


def along_an_axis(function: str) -> float:
    """Give the reward of the context (1, 0, 0) with an arm whose first coordinate is u."""
    env = environment(function)
    return float(env.means([[1.0, 0.0, 0.0]], [0])[0])


U = float(environment().arms[0, 0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("h1", cos(1.0) * U + 0.25 * U),
        ("h1b", U * cos(U) + 0.25 * U),
        ("h2", 10 * U * U),
        ("h3", cos(3 * U)),
    ],
)
def test_functions_have_the_values_worked_out_by_hand(function: str, expected: float) -> None:
    assert along_an_axis(function) == pytest.approx(expected)


def test_the_two_readings_of_h1_differ_where_the_context_has_two_coordinates() -> None:
    x = [1 / sqrt(2), 1 / sqrt(2), 0.0]
    a, b, _ = (float(value) for value in environment().arms[0])
    u = (a + b) / sqrt(2)

    assert environment("h1").means([x], [0])[0] == pytest.approx((cos(x[0]) + 0.25) * u)
    assert environment("h1b").means([x], [0])[0] == pytest.approx((cos(u) + 0.25) * u)


def test_arms_and_contexts_are_unit_vectors_of_float32() -> None:
    env = environment(dim=5)

    for vectors in (env.arms, env.contexts(0, 20)):
        assert vectors.dtype == np.float32
        assert vectors.shape[1] == 5
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_contexts_are_spread_over_the_whole_sphere() -> None:
    contexts = environment(dim=3).contexts(0, 4_000).astype(np.float64)

    assert np.abs(contexts.mean(axis=0)).max() < 0.04
    assert np.allclose(contexts.T @ contexts / 4_000, np.eye(3) / 3, atol=0.03)


@pytest.mark.parametrize("size", [1, 7, 30])
def test_contexts_are_the_same_for_any_batches(size: int) -> None:
    env = environment()

    parts = [env.contexts(first, min(size, 30 - first)) for first in range(0, 30, size)]

    assert np.array_equal(np.concatenate(parts), env.contexts(0, 30))


def test_noise_depends_on_the_round_alone() -> None:
    env = environment()
    contexts = env.contexts(0, 20)
    rows = np.arange(20)

    noise = env.observed(0, rows) - env.means(contexts, rows)
    later = env.observed(5, rows[:15]) - env.means(contexts[5:], rows[:15])

    assert np.allclose(noise[5:], later)
    assert len(set(noise.round(6))) == 20


def test_noise_has_the_standard_deviation_of_its_setting() -> None:
    env = environment(noise=0.5)
    contexts = env.contexts(0, 4_000)
    rows = np.zeros(4_000, dtype=np.int64)

    noise = env.observed(0, rows) - env.means(contexts, rows)

    assert abs(noise.mean()) < 0.03
    assert noise.std() == pytest.approx(0.5, rel=0.05)


def test_several_arms_of_a_context_have_several_rewards() -> None:
    env = environment(noise=0.0)
    contexts, rows = env.contexts(0, 4), np.arange(12).reshape(4, 3)

    rewards = env.observed(0, rows)

    assert rewards.shape == (4, 3)
    assert np.allclose(rewards[:, 1], env.means(contexts, rows[:, 1]))


@pytest.mark.parametrize("block", [1, 64, 2**20])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_best_arms_agree_with_brute_force(
    function: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "_BLOCK", block)
    env = environment(function)
    contexts = env.contexts(0, 6)
    every = env.means(contexts, np.tile(np.arange(50), (6, 1)))

    rows, means = env.best(contexts)

    assert np.array_equal(rows, every.argmax(axis=1))
    assert np.allclose(means, every.max(axis=1))


def test_environments_of_different_seeds_differ() -> None:
    one, two = environment(seed=1), environment(seed=2)

    assert not np.allclose(one.arms, two.arms)
    assert not np.allclose(one.contexts(0, 5), two.contexts(0, 5))


def test_arms_and_contexts_are_not_the_same_numbers() -> None:
    env = environment()

    assert np.abs(env.arms[:20] - env.contexts(0, 20)).max(axis=1).min() > 1e-3


def test_an_unknown_function_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match="h1, h1b, h2, h3: got 'h4'"):
        Synthetic("h4")


@pytest.mark.parametrize(("dim", "arms", "noise"), [(0, 5, 1.0), (3, 0, 1.0), (3, 5, -1.0)])
def test_settings_out_of_range_are_rejected(dim: int, arms: int, noise: float) -> None:
    with pytest.raises(SettingError):
        Synthetic(dim=dim, arms=arms, noise=noise)


@pytest.mark.parametrize("row", [-1, 50])
def test_a_row_without_an_arm_has_no_reward(row: int) -> None:
    env = environment()

    with pytest.raises(InputError, match=f"from 0 to 49: got {row}"):
        env.means(env.contexts(0, 1), [row])
