"""The corners of a box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit import Box
from fastbandit.errors import InputError, SettingError
from fastbandit.types import Inputs


@pytest.mark.parametrize(("low", "high"), [([], []), ([0], [1, 2]), ([1], [1]), ([0], [np.inf])])
def test_corners_that_span_no_box_are_refused(low: Any, high: Any) -> None:
    with pytest.raises(SettingError, match="each lower than its partner"):
        Box(low, high)


def test_values_inside_and_on_the_edge_pass() -> None:
    Box([0, -10], [1, 30]).check(Inputs(dense=np.array([[0, 30], [0.5, 2]], dtype=np.float32)))


def test_a_value_outside_is_named_with_its_row() -> None:
    values = Inputs(dense=np.array([[0, 30], [0.5, 31]], dtype=np.float32))

    with pytest.raises(InputError, match=r"got 31\.0 in row 1"):
        Box([0, -10], [1, 30]).check(values)
