"""Arms' own constants as a score has them: bounded, drawn, and listed."""

from __future__ import annotations

import numpy as np
import torch

from fastbandit.arms.own_lists import BANK
from fastbandit.reward.arm_constants import ArmConstants
from fastbandit.reward.own_constants import ConstantsPosterior, OwnConstants

ROWS = torch.arange(4)[None]


def posterior() -> ConstantsPosterior:
    """Return the posterior of three arms that were chosen, the second the best, and of one not."""
    counts, rewards = np.array([9.0, 9.0, 1.0, 0.0]), np.array([0.0, 18.0, 1.0, 0.0])
    none = np.zeros(0, np.int64)
    return ConstantsPosterior(ArmConstants(counts, rewards, np.zeros(4), none, 1.0, 1.0))


def own(*seeds: int, scale: float = 1.0, is_drawn: bool) -> OwnConstants:
    return OwnConstants(posterior(), np.array(seeds, np.uint64), scale, is_drawn)


def test_a_bound_is_the_mean_and_scale_deviations() -> None:
    parts = own(0, scale=2.0, is_drawn=False)(ROWS)

    means, deviations = np.array([0.0, 1.8, 0.5, 0.0]), np.array([0.1, 0.1, 0.5, 0.0]) ** 0.5
    np.testing.assert_allclose(parts[0], means + 2.0 * deviations, rtol=1e-6)


def test_a_draw_differs_from_seed_to_seed_and_repeats_after_the_bank() -> None:
    parts = own(3, 4, 3 + BANK, is_drawn=True)(ROWS)

    assert torch.equal(parts[0], parts[2])
    assert not torch.equal(parts[0], parts[1])
    assert (parts[:, 3] == 0).all()


def test_a_draw_of_no_scale_is_the_mean() -> None:
    parts = own(3, scale=0.0, is_drawn=True)(ROWS)

    np.testing.assert_allclose(parts[0], [0.0, 1.8, 0.5, 0.0], rtol=1e-6)


def test_the_best_arms_come_first_with_the_parts_that_they_have() -> None:
    drawn = own(5, 6, is_drawn=True)

    rows, parts = drawn.best()

    assert rows.shape == (2, 3)  # the arm that has no constant is not listed
    assert (parts.diff(dim=1) <= 0).all()
    assert torch.equal(drawn(rows), parts)


def test_renewing_a_row_changes_this_row_and_the_lists() -> None:
    renewed = posterior()
    before, rows = renewed.arrays[0].copy(), np.array([2])
    first = renewed.lists(1.0, False)[0][0, 0]
    renewed.constants.observe(np.repeat(rows, 8), np.full(8, 10.0), np.zeros(8))

    renewed.renew(rows)

    assert np.flatnonzero(renewed.arrays[0] != before).tolist() == [2]
    assert (first, renewed.lists(1.0, False)[0][0, 0]) == (1, 2)
