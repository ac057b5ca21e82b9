"""Arrays that nobody can write to."""

from __future__ import annotations

import numpy as np
import pytest

from fastbandit.arms.arrays import read_only


def test_a_read_only_array_is_contiguous_and_cannot_be_written() -> None:
    frozen = read_only(np.arange(6).reshape(2, 3).T)

    assert frozen.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        frozen[0, 0] = 1


def test_the_array_itself_can_still_be_written() -> None:
    array = np.arange(3)
    frozen = read_only(array)

    array[0] = 7

    assert frozen[0] == 7
