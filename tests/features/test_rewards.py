"""Raw rewards become checked numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.errors import InputError, NotFiniteError, RewardError, SettingError, ShapeError
from fastbandit.features.rewards import check_reward_kind, read_rewards


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
