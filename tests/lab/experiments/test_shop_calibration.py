"""What a taste counts in the synthetic shop follows from a figure of a real one."""

from __future__ import annotations

import numpy as np
import pytest

from lab.experiments.shop_calibration import (
    GUESSED,
    LIFT,
    SEEDS,
    calibrated_taste,
    department_rows,
    lift,
)
from lab.experiments.shop_data import TASTE, make_shop, make_users


def test_a_department_tells_more_where_tastes_count_more() -> None:
    few = {"items": 500, "users": 300}

    assert lift(TASTE, 100, **few) > lift(GUESSED, 100, **few)


def test_users_without_a_department_have_the_most_popular_item() -> None:
    shop, users = make_shop(60, seed=1), make_users(50, seed=1)
    popular = np.random.default_rng(0).random(60)

    rows = department_rows(shop, users, popular)

    departments = shop.table.columns["department"]
    for row, favourite in zip(rows, users.table.columns["favourite"], strict=True):
        if favourite in departments:
            assert departments[row] == favourite
        else:
            assert row == popular.argmax()


@pytest.mark.slow
def test_the_taste_in_use_is_the_one_that_agrees_with_the_real_shop() -> None:
    assert abs(calibrated_taste() - TASTE) < 0.1
    assert abs(float(np.mean([lift(TASTE, seed) for seed in SEEDS])) - LIFT) < 0.02
