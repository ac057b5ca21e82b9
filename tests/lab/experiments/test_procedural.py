"""A catalogue worked out from rows: its best arm is known, its size costs no memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fastbandit.errors import InputError, SettingError
from lab.experiments import procedural
from lab.experiments.datasets import load
from lab.experiments.procedural import Procedural


def every_mean(environment: Procedural, rounds: int) -> np.ndarray:
    rows = np.tile(np.arange(environment.size), (rounds, 1))
    return environment.means(environment.contexts(0, rounds), rows)


@pytest.mark.parametrize("block", [1, 2**20])
@pytest.mark.parametrize(
    ("arms", "dim"), [(1, 1), (7, 1), (64, 3), (100, 3), (97, 2), (250, 4), (65, 3), (2, 5)]
)
def test_the_known_best_arm_is_the_best_of_all(
    arms: int, dim: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procedural, "_BLOCK", block)
    environment = Procedural(arms, dim, seed=3)
    every = every_mean(environment, 20)

    assert np.allclose(environment.ceiling(0, 20), every.max(axis=1))
    assert np.allclose(environment.expected(0, environment.best(0, 20)), every.max(axis=1))
    assert every.sum(axis=0)[environment.best_arm(20)] == pytest.approx(every.sum(axis=0).max())


def test_later_rounds_have_their_own_best_arms() -> None:
    environment = Procedural(100, 3)

    assert np.array_equal(environment.best(5, 10), environment.best(0, 15)[5:])
    assert len(set(environment.best(0, 15).tolist())) > 5


def test_all_arms_are_different_points_of_the_cube() -> None:
    environment = Procedural(300, 3)

    assert environment.arms.shape == (300, 3)
    assert environment.arms.dtype == np.float32
    assert len(np.unique(environment.arms, axis=0)) == 300
    assert np.abs(environment.arms).max() <= 1.0


def test_blocks_and_single_rows_are_parts_of_the_whole() -> None:
    environment = Procedural(300, 3)

    assert np.array_equal(environment.block(17, 40), environment.arms[17:57])
    assert np.array_equal(
        environment.vectors([[5, 299], [0, 1]]), environment.arms[[[5, 299], [0, 1]]]
    )


def test_neighbouring_rows_are_no_neighbours_in_space() -> None:
    environment = Procedural(100**2, 2)

    steps = np.abs(np.diff(environment.block(0, 100)[:, 1]))

    assert steps.mean() > 0.4


def test_the_reward_has_several_peaks_along_an_axis() -> None:
    environment = Procedural(1_000, 1)
    order = np.argsort(environment.arms[:, 0])
    means = every_mean(environment, 1)[0, order]

    peaks = (means[1:-1] > means[:-2]) & (means[1:-1] > means[2:])

    assert peaks.sum() >= 2


def test_contexts_are_the_same_for_any_batches() -> None:
    environment = Procedural(100, 3)

    parts = [environment.contexts(first, 5) for first in range(0, 20, 5)]

    assert np.array_equal(np.concatenate(parts), environment.contexts(0, 20))


def test_noise_depends_on_the_round_alone() -> None:
    environment, rows = Procedural(100, 3, noise=0.5), np.arange(20)

    noise = environment.observed(0, rows) - environment.expected(0, rows)
    later = environment.observed(5, rows[:15]) - environment.expected(5, rows[:15])

    assert np.allclose(noise[5:], later)
    assert 0.2 < noise.std() < 0.8


def test_a_hundred_million_arms_answer_in_little_memory() -> None:
    tracemalloc.start()
    environment = Procedural(10**8, 4)
    best, ceiling = environment.best(0, 100), environment.ceiling(0, 100)
    earned = environment.expected(0, best)
    spent = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert environment.levels == 100
    assert np.allclose(earned, ceiling)
    assert np.all(environment.expected(0, np.full(100, environment.best_arm(100))) <= ceiling)
    assert spent < 8e6


def test_more_arms_than_may_be_held_are_not_made() -> None:
    environment = Procedural(10**8, 4)

    with pytest.raises(SettingError, match=r"At most 20,000,000 arms .* got 100,000,000"):
        _ = environment.arms


@pytest.mark.parametrize("row", [-1, 10])
def test_a_row_without_an_arm_is_refused(row: int) -> None:
    with pytest.raises(InputError, match=f"from 0 to 9: got {row}"):
        Procedural(10, 2).expected(0, [row])


@pytest.mark.parametrize(
    ("arms", "dim", "noise"),
    [(0, 2, 1.0), (10**8 + 1, 4, 1.0), (5, 0, 1.0), (10**8, 1, 1.0), (5, 2, -1.0)],
)
def test_settings_out_of_range_are_refused(arms: int, dim: int, noise: float) -> None:
    with pytest.raises(SettingError):
        Procedural(arms, dim, noise=noise)


def test_the_dataset_takes_its_size_as_options() -> None:
    environment = load("procedural", arms=1_234, dim=3, noise=0.0, seed=2)

    assert (environment.size, environment.rounds, environment.seed) == (1_234, None, 2)
