"""What is folded into weights before arms are scored."""

from __future__ import annotations

import numpy as np

from fastbandit.runtime.fold import clip, draw_masks, embed

SIZES = np.array([3], np.int64)
DROPOUT = np.array([[0.0, 2.0, 0.01, 0.99]], np.float32)


def test_a_context_is_embedded_by_a_matrix_and_a_constant() -> None:
    embedded = np.empty(1, np.float32)

    embed(np.array([[1, 2, 3]], np.float32), np.array([4, 5], np.float32), embedded)

    assert embedded.tolist() == [17.0]


def test_columns_are_clipped_and_the_infinite_left() -> None:
    bounds, clipped = np.array([[0, 0], [1, 1]], np.float32), np.empty(2, np.float32)

    assert clip(bounds, np.array([2, -3], np.float32), clipped)
    assert clipped.tolist() == [1.0, 0.0]
    assert not clip(bounds, np.array([np.inf, 0.5], np.float32), clipped)
    assert clipped[0] == np.inf


def test_masks_of_no_scale_leave_inputs_alone() -> None:
    masks = np.empty(3, np.float32)

    draw_masks(np.uint64(1), DROPOUT, SIZES, np.float32(0.0), masks)

    assert masks.tolist() == [1.0, 1.0, 1.0]


def test_masks_are_those_of_their_seed() -> None:
    one, two, other = (np.empty(3, np.float32) for _ in range(3))

    draw_masks(np.uint64(1), DROPOUT, SIZES, np.float32(1.0), one)
    draw_masks(np.uint64(1), DROPOUT, SIZES, np.float32(1.0), two)
    draw_masks(np.uint64(2), DROPOUT, SIZES, np.float32(1.0), other)

    assert one.tolist() == two.tolist()
    assert one.tolist() != other.tolist()
    assert ((one >= 0) & (one <= 2)).all()
