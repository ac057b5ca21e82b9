"""Continua: functions on a box whose maximum is known."""

from __future__ import annotations

from math import sin
from typing import Any

import numpy as np
import pytest

from fastbandit import Box
from fastbandit.errors import InputError, SettingError, ShapeError
from lab.experiments.continuum import FUNCTIONS, Continuum
from lab.experiments.datasets import load

every = pytest.mark.parametrize("function", FUNCTIONS)

DIMS = {"sines": 1, "branin": 2, "hartmann6": 6}


def points_of(environment: Continuum, numbers: np.random.Generator, count: int) -> Any:
    low, high = np.asarray(environment.arms.low), np.asarray(environment.arms.high)
    return low + (high - low) * numbers.random((count, len(low)))


def test_sines_have_the_values_worked_out_by_hand() -> None:
    environment = Continuum("sines")

    assert environment.expected(0, [[0.0], [0.3]]) == pytest.approx(
        [0.5, 0.5 * (sin(3.9) * sin(8.1) + 1)]
    )


@pytest.mark.parametrize("summit", [(np.pi, 2.275), (-np.pi, 12.275), (3 * np.pi, 2.475)])
def test_branin_has_three_summits_worth_one(summit: tuple[float, float]) -> None:
    assert Continuum("branin").expected(0, [summit])[0] == pytest.approx(1.0)


def test_branin_is_worth_nothing_in_its_worst_corner() -> None:
    assert Continuum("branin").expected(0, [[-5.0, 0.0]])[0] == pytest.approx(0.0, abs=1e-12)


def test_hartmann_has_its_known_value_at_its_known_summit() -> None:
    summit = [[0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]]

    assert 3.32237 * Continuum("hartmann6").expected(0, summit)[0] == pytest.approx(3.32237, 1e-5)


@every
def test_no_point_is_worth_more_than_the_ceiling(
    function: str, numbers: np.random.Generator
) -> None:
    environment = Continuum(function)
    summit = environment.best_arm(100)
    spread = points_of(environment, numbers, 5_000)
    near = np.clip(
        summit + 0.001 * numbers.normal(size=spread.shape),
        environment.arms.low,
        environment.arms.high,
    )

    rewards = environment.expected(0, np.concatenate([spread, near]))

    assert rewards.min() >= 0.0
    assert rewards.max() <= environment.ceiling(0, 1)[0] + 1e-12
    assert environment.expected(0, summit[None])[0] == environment.ceiling(7, 3)[2]


@every
def test_every_name_is_a_dataset_without_files(function: str) -> None:
    environment = load(function, seed=3, noise=0.5)

    assert isinstance(environment, Continuum)
    assert (environment.name, environment.seed, environment.noise) == (function, 3, 0.5)


@every
def test_a_continuum_is_a_box_without_a_number_of_arms(function: str) -> None:
    environment = Continuum(function)

    assert isinstance(environment.arms, Box)
    assert environment.arms.dim == len(environment.best_arm(1)) == DIMS[function]
    assert environment.size is None
    assert environment.rounds is None
    assert (
        environment.context.read(environment.contexts(5, 4), what="contexts").dense.tolist()
        == [[1.0]] * 4
    )


def test_noise_depends_on_the_seed_and_the_round_alone(numbers: np.random.Generator) -> None:
    environment = Continuum("branin", noise=0.3)
    here, there = points_of(environment, numbers, 20), points_of(environment, numbers, 20)

    noise = environment.observed(0, here) - environment.expected(0, here)
    later = environment.observed(5, there[:15]) - environment.expected(5, there[:15])
    other = Continuum("branin", noise=0.3, seed=1).observed(0, here) - environment.expected(0, here)

    assert np.allclose(noise[5:], later)
    assert not np.allclose(noise, other)


def test_noise_has_the_standard_deviation_asked_for() -> None:
    environment = Continuum("sines", noise=0.5)
    points = np.zeros((4_000, 1))

    noise = environment.observed(0, points) - 0.5

    assert abs(noise.mean()) < 0.03
    assert noise.std() == pytest.approx(0.5, rel=0.05)


def test_points_rounded_to_float32_are_still_in_the_box() -> None:
    environment = Continuum("branin")
    corner = np.asarray(environment.arms.high, dtype=np.float32)

    assert np.isfinite(environment.expected(0, corner[None] + np.float32(1e-6)))


def test_a_point_outside_the_box_has_no_reward() -> None:
    with pytest.raises(InputError, match=r"between \[0.0\] and \[1.0\]: got \[1.2\]"):
        Continuum("sines").expected(0, [[0.5], [1.2]])


def test_a_point_that_is_no_number_has_no_reward() -> None:
    with pytest.raises(InputError):
        Continuum("sines").expected(0, [[np.nan]])


def test_points_of_another_shape_have_no_reward() -> None:
    with pytest.raises(ShapeError, match=r"\(n, 2\): got \(3,\)"):
        Continuum("branin").expected(0, [0.0, 1.0, 2.0])


def test_an_unknown_function_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match="sines, branin, hartmann6: got 'rosenbrock'"):
        Continuum("rosenbrock")


def test_noise_below_zero_is_refused() -> None:
    with pytest.raises(SettingError, match="at least 0: got -1"):
        Continuum(noise=-1.0)
