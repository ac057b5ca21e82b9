"""A catalogue worked out from rows: its best arm is known, its size costs no memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fastbandit.errors import InputError, SettingError
from lab.experiments import procedural
from lab.experiments.datasets import load
from lab.experiments.procedural import Procedural


def every_mean(world: Procedural, rounds: int) -> np.ndarray:
    rows = np.tile(np.arange(world.size), (rounds, 1))
    return world.means(world.contexts(0, rounds), rows)


@pytest.mark.parametrize("block", [1, 2**20])
@pytest.mark.parametrize(
    ("arms", "dim"), [(1, 1), (7, 1), (64, 3), (100, 3), (97, 2), (250, 4), (65, 3), (2, 5)]
)
def test_the_known_best_arm_is_the_best_of_all(
    arms: int, dim: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procedural, "_BLOCK", block)
    world = Procedural(arms, dim, seed=3)
    every = every_mean(world, 20)

    assert np.allclose(world.ceiling(0, 20), every.max(axis=1))
    assert np.allclose(world.expected(0, world.best(0, 20)), every.max(axis=1))
    assert every.sum(axis=0)[world.best_arm(20)] == pytest.approx(every.sum(axis=0).max())


def test_later_rounds_have_their_own_best_arms() -> None:
    world = Procedural(100, 3)

    assert np.array_equal(world.best(5, 10), world.best(0, 15)[5:])
    assert len(set(world.best(0, 15).tolist())) > 5


def test_all_arms_are_different_points_of_the_cube() -> None:
    world = Procedural(300, 3)

    assert world.arms.shape == (300, 3)
    assert world.arms.dtype == np.float32
    assert len(np.unique(world.arms, axis=0)) == 300
    assert np.abs(world.arms).max() <= 1.0


def test_blocks_and_single_rows_are_parts_of_the_whole() -> None:
    world = Procedural(300, 3)

    assert np.array_equal(world.block(17, 40), world.arms[17:57])
    assert np.array_equal(world.vectors([[5, 299], [0, 1]]), world.arms[[[5, 299], [0, 1]]])


def test_neighbouring_rows_are_no_neighbours_in_space() -> None:
    world = Procedural(100**2, 2)

    steps = np.abs(np.diff(world.block(0, 100)[:, 1]))

    assert steps.mean() > 0.4


def test_the_reward_has_several_peaks_along_an_axis() -> None:
    world = Procedural(1_000, 1)
    order = np.argsort(world.arms[:, 0])
    means = every_mean(world, 1)[0, order]

    peaks = (means[1:-1] > means[:-2]) & (means[1:-1] > means[2:])

    assert peaks.sum() >= 2


def test_contexts_are_the_same_for_any_batches() -> None:
    world = Procedural(100, 3)

    parts = [world.contexts(first, 5) for first in range(0, 20, 5)]

    assert np.array_equal(np.concatenate(parts), world.contexts(0, 20))


def test_noise_depends_on_the_round_alone() -> None:
    world, rows = Procedural(100, 3, noise=0.5), np.arange(20)

    noise = world.observed(0, rows) - world.expected(0, rows)
    later = world.observed(5, rows[:15]) - world.expected(5, rows[:15])

    assert np.allclose(noise[5:], later)
    assert 0.2 < noise.std() < 0.8


def test_a_hundred_million_arms_answer_in_little_memory() -> None:
    tracemalloc.start()
    world = Procedural(10**8, 4)
    best, ceiling = world.best(0, 100), world.ceiling(0, 100)
    earned = world.expected(0, best)
    spent = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert world.levels == 100
    assert np.allclose(earned, ceiling)
    assert np.all(world.expected(0, np.full(100, world.best_arm(100))) <= ceiling)
    assert spent < 8e6


def test_more_arms_than_may_be_held_are_not_made() -> None:
    world = Procedural(10**8, 4)

    with pytest.raises(SettingError, match=r"At most 20,000,000 arms .* got 100,000,000"):
        _ = world.arms


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
    world = load("procedural", arms=1_234, dim=3, noise=0.0, seed=2)

    assert (world.size, world.rounds, world.seed) == (1_234, None, 2)
