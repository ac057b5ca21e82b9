"""Raw rewards become checked numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.errors import InputError, NotFiniteError, RewardError, SettingError, ShapeError
from fastbandit.features.rewards import (
    check_reward_kind,
    combined,
    read_outcomes,
    read_reward_kind,
    read_rewards,
    reweighted,
)


def test_lists_and_booleans_become_float32() -> None:
    rewards = read_rewards([True, False, 1], kind="binary", count=3)

    assert rewards.dtype == np.float32
    assert rewards.tolist() == [1.0, 0.0, 1.0]


def test_real_rewards_may_be_any_finite_number() -> None:
    assert read_rewards([-3.5, 1e6], kind="real", count=2).tolist() == [-3.5, 1e6]


def test_a_binary_reward_that_is_not_0_or_1_is_named_with_its_row() -> None:
    with pytest.raises(RewardError, match=r"got 0\.5 in row 2 \(1 such rows\).*reward='real'"):
        read_rewards([0, 1, 0.5], kind="binary", count=3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_a_reward_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(NotFiniteError, match="row 1"):
        read_rewards([0.0, bad], kind="real", count=2)


@pytest.mark.parametrize("raw", [[1.0], [1.0, 0.0, 1.0], [[1.0], [0.0]]])
def test_rewards_need_one_value_for_each_context(raw: list[object]) -> None:
    with pytest.raises(ShapeError, match=r"need shape \(2,\)"):
        read_rewards(raw, kind="real", count=2)


def test_text_is_no_reward() -> None:
    with pytest.raises(InputError, match="numbers"):
        read_rewards(["good", "bad"], kind="real", count=2)


def test_an_unknown_kind_of_rewards_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"'binary' or 'real': got 'count'"):
        check_reward_kind("count")


def test_weights_by_name_are_rewards_that_are_real() -> None:
    assert read_reward_kind({"quality": 1, "cost": -0.5}) == (
        "real",
        (("quality", 1.0), ("cost", -0.5)),
    )
    assert read_reward_kind("binary") == ("binary", ())


@pytest.mark.parametrize("bad", [{}, {"": 1.0}, {"cost": np.nan}, {"cost": "1"}, {"cost": True}])
def test_weights_need_names_and_finite_numbers(bad: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="Weights of outcomes need names and finite numbers"):
        read_reward_kind(bad)


def test_outcomes_are_combined_by_their_weights() -> None:
    outcomes = read_outcomes({"quality": [1.0, 0.5], "cost": [0.2, 0.4]}, count=2)

    found = combined(outcomes, (("quality", 2.0), ("cost", -1.0)), count=2)

    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([1.8, 0.6])


def test_an_outcome_that_is_missing_leaves_the_reward_unknown() -> None:
    outcomes = read_outcomes([{"quality": None, "cost": 0.1}, {"quality": 1, "cost": 0.2}], count=2)

    assert np.isnan(combined(outcomes, (("quality", 1.0),), count=2)).tolist() == [True, False]
    assert np.isnan(combined(outcomes, (("speed", 1.0),), count=2)).all()


def test_an_outcome_of_weight_0_is_not_needed() -> None:
    outcomes = read_outcomes({"quality": [np.nan], "cost": [0.5]}, count=1)

    assert combined(outcomes, (("quality", 0.0), ("cost", -2.0)), count=1).tolist() == [-1.0]


def test_outcomes_need_names_rows_and_finite_numbers() -> None:
    with pytest.raises(RewardError, match="need these by name: got list"):
        read_outcomes([1.0, 2.0], count=2)
    with pytest.raises(ShapeError, match="need 3 rows"):
        read_outcomes({"quality": [1.0, 2.0]}, count=3)
    with pytest.raises(RewardError, match="'quality' needs finite numbers"):
        read_outcomes({"quality": [1.0, np.inf]}, count=2)
    with pytest.raises(RewardError, match="'quality' needs finite numbers"):
        read_outcomes({"quality": ["good", "bad"]}, count=2)


def test_new_weights_stand_beside_those_that_are_not_named() -> None:
    before = (("quality", 1.0), ("cost", -0.5))

    assert reweighted(before, {"cost": -1, "speed": 2}) == (
        ("quality", 1.0),
        ("cost", -1.0),
        ("speed", 2.0),
    )
    with pytest.raises(SettingError, match="Only a reward that is a combination"):
        reweighted((), {"cost": -1})
