"""LinearTS on a grid of points of a box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit import Box
from fastbandit.errors import (
    SettingError,
)
from lab.baselines import GridLinearTS

pytest.importorskip("sklearn")

LINE = Box((0.0,), (1.0,))


def ones(count: int) -> np.ndarray[Any, Any]:
    return np.ones((count, 1))


def test_a_linear_bandit_on_a_grid_can_only_prefer_a_corner() -> None:
    bandit = GridLinearTS(box=LINE, points=101)
    points = np.linspace(0, 1, 101)[:, None]
    bandit.update(contexts=ones(101), arms=points, rewards=1 - np.abs(points[:, 0] - 0.6))

    assert bandit.select(ones(1), explore=False).arms[0, 0] in (0.0, 1.0)


def test_a_reward_between_two_points_of_the_grid_is_learned_as_the_nearest_one() -> None:
    one, two = (GridLinearTS(box=LINE, points=11) for _ in range(2))
    one.update(contexts=ones(2), arms=[[0.31], [0.97]], rewards=[1.0, 0.0])
    two.update(contexts=ones(2), arms=[[0.3], [1.0]], rewards=[1.0, 0.0])

    assert np.array_equal(one.select(ones(5)).arms, two.select(ones(5)).arms)


@pytest.mark.parametrize("points", [1, 2.5])
def test_a_grid_needs_at_least_two_points(points: Any) -> None:
    with pytest.raises(SettingError, match="at least 2 points"):
        GridLinearTS(box=LINE, points=points)
