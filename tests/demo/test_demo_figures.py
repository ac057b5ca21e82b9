"""Curves: each is named at its end, and no label touches another."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fastbandit.demo.figures import Line, draw_curves, png_of, spread, svg_of


def line(policy: str, height: float = 1.0) -> Line:
    x = np.array([0.0, 10.0, 20.0])
    return Line(policy, x, height * x, f"{policy} ends")


def test_a_curve_is_named_at_its_end_with_or_without_a_style() -> None:
    svg = svg_of(draw_curves([line("Random"), line("Newcomer", 2.0)], ylabel="Reward"))

    assert "Random ends" in svg
    assert "Newcomer ends" in svg


def test_a_figure_is_the_same_file_again() -> None:
    first, again = (draw_curves([line("Random")], ylabel="Reward") for _ in range(2))

    assert svg_of(first) == svg_of(again)
    assert png_of(first) == png_of(again)


@given(some.lists(some.floats(0, 1), min_size=1, max_size=25))
def test_labels_never_touch_and_keep_their_order(heights: list[float]) -> None:
    falling = sorted(heights, reverse=True)

    moved = spread(falling, gap=0.058)

    assert all(one - two >= 0.058 - 1e-9 for one, two in pairwise(moved))
    assert max(moved) <= 1.0 + 1e-9
    if len(heights) <= 17:
        assert min(moved) >= -1e-9


def test_labels_that_are_far_apart_stay_where_they_are() -> None:
    assert spread([0.9, 0.5, 0.1], gap=0.1) == pytest.approx([0.9, 0.5, 0.1])
