"""Lists of the best arms by their own constants."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fastbandit.arms.own_lists import BANK, LISTED, own_lists, renewed_lists

MEANS = np.array([0.0, 1.0, -2.0, 3.0], np.float32)


def test_the_best_arm_comes_first_and_an_arm_without_a_constant_never() -> None:
    rows, parts = own_lists(MEANS, np.zeros(4, np.float32), scale=1.0, is_drawn=True, stamp=1)

    assert rows.tolist() == [[3, 1, 2]]
    assert parts.tolist() == [[3.0, 1.0, -2.0]]


def test_constants_that_are_drawn_have_a_list_for_each_draw_of_the_bank() -> None:
    rows, _ = own_lists(MEANS, np.ones(4, np.float32), scale=1.0, is_drawn=True, stamp=1)

    assert rows.shape == (BANK, 4)
    assert len({tuple(row) for row in rows.tolist()}) > 1


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    arms=st.integers(1, 900),
    share=st.floats(0.0, 1.0),
    changed=st.integers(0, 200),
    scale=st.sampled_from([0.0, 1.0]),
    is_drawn=st.booleans(),
)
def test_renewed_lists_are_those_made_anew_down_to_the_old_end(
    seed: int, arms: int, share: float, changed: int, scale: float, is_drawn: bool
) -> None:
    rng = np.random.default_rng(seed)
    is_touched = rng.random(arms) < share
    means = np.where(is_touched, rng.normal(size=arms).round(1), 0.0).astype(np.float32)
    widths = np.where(is_touched, rng.random(arms), 0.0).astype(np.float32)
    before = own_lists(means, widths, scale=scale, is_drawn=is_drawn, stamp=5)
    rows = np.unique(rng.integers(arms, size=changed))
    means[rows] = rng.normal(size=len(rows)).round(1)
    widths[rows] = rng.random(len(rows))

    got = renewed_lists(before, means, widths, rows, scale=scale, is_drawn=is_drawn, stamp=5)

    wanted = own_lists(means, widths, scale=scale, is_drawn=is_drawn, stamp=5)
    ends = np.full(len(before[0]), -np.inf)
    if before[0].shape[1] == LISTED:
        ends = before[1][:, -1].astype(np.float64)
    assert got[0].shape == wanted[0].shape
    is_above = wanted[1] > ends[:, None]
    np.testing.assert_array_equal(got[0][is_above], wanted[0][is_above])
    np.testing.assert_array_equal(got[1][is_above], wanted[1][is_above])
    np.testing.assert_array_equal(np.diff(got[1][np.isfinite(got[1]).all(1)], axis=1) <= 0, True)
