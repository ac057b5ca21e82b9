"""A continuous region, declared by its corners: every point of a box is an arm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fastbandit.declaration import part, setting
from fastbandit.errors import InputError, SettingError
from fastbandit.types import Inputs


@part("arms", name="box", dropped={"encode": None, "device": "cpu"})
class Box:
    """All vectors between two corners; `cover` is how finely an exhaustive search looks."""

    low: Sequence[float] = setting(default=(), formerly="lowest")
    high: Sequence[float] = setting(default=(), formerly="highest")
    cover: int = 10_000

    def __post_init__(self) -> None:
        try:
            low, high = (tuple(map(float, corner)) for corner in (self.low, self.high))
        except (TypeError, ValueError):
            low, high = (), ()
        both = zip(low, high, strict=False)
        is_sound = all(math.isfinite(a) and math.isfinite(b) and a < b for a, b in both)
        if not low or len(low) != len(high) or not is_sound:
            raise SettingError(
                f"A box needs as many finite low as high values, each lower than its partner: got "
                f"{self.low} and {self.high}. Write Box([0, 0], [1, 2])."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def dim(self) -> int:
        return len(self.low)

    def check(self, inputs: Inputs) -> None:
        """Raise where values lie outside the box (by more than rounding)."""
        assert inputs.dense is not None
        low, high = np.asarray(self.low), np.asarray(self.high)
        slack = 1e-5 * (high - low)
        outside = (inputs.dense < low - slack) | (inputs.dense > high + slack)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise InputError(
                f"The arms need values between {self.low} and {self.high}: got "
                f"{inputs.dense[row, column]} in row {row}. Enlarge the box, or drop those rows."
            )
