"""Scores of arms by their own weights."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.runtime.effects import BOUNDED, DRAWN, own_part, shared_part

SEEN = np.array([1.0, 2.0], np.float32)
PRIOR = np.array([3.0, 0.0], np.float32)
MEANS = np.array([[1.0, 1.0]], np.float32)
DEVIATIONS = np.array([[0.0, 2.0]], np.float32)


def part_of(row: int, kind: int, *, scale: float = 1.0, seed: int = 1) -> float:
    of_all = (SEEN, PRIOR, MEANS, DEVIATIONS)
    return float(own_part(*of_all, row, np.uint64(seed), kind, np.float32(scale)))


def test_what_arms_share_is_a_sum() -> None:
    assert shared_part(SEEN, np.array([1.0, 0.5], np.float32)) == 2.0


def test_a_bound_is_the_mean_and_a_width() -> None:
    assert part_of(0, BOUNDED) == pytest.approx(7.0)


def test_an_arm_that_came_later_has_the_prior() -> None:
    assert part_of(1, BOUNDED) == pytest.approx(3.0)


@pytest.mark.parametrize("kind", [DRAWN, BOUNDED])
def test_no_scale_leaves_the_mean(kind: int) -> None:
    assert part_of(0, kind, scale=0.0) == 3.0


def test_a_draw_is_that_of_its_seed() -> None:
    assert part_of(0, DRAWN) == part_of(0, DRAWN)
    assert part_of(0, DRAWN) != part_of(0, DRAWN, seed=2)
