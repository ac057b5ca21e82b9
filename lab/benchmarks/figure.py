"""The time of one decision over the number of arms, both logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from lab.experiments.figures import Line, draw_scaling


class Timed(Protocol):
    """A row of `bench select`."""

    @property
    def arms(self) -> int: ...

    @property
    def p50_us(self) -> float: ...

    @property
    def p99_us(self) -> float: ...

    @property
    def exhaustive_ratio(self) -> float | None: ...


def figure_of(rows: Sequence[Timed]) -> Any:
    """Draw ours, half of all decisions and all but one in a hundred, and the NumPy sweep."""
    swept = [row for row in rows if row.exhaustive_ratio is not None]
    lines = [
        _line("GANBandit TS", rows, [row.p50_us for row in rows], "frozen, p50"),
        _line("GANBandit UCB", rows, [row.p99_us for row in rows], "frozen, p99"),
    ]
    if swept:
        times = [row.p50_us * (row.exhaustive_ratio or 0.0) for row in swept]
        lines.append(_line("Exhaust TS", swept, times, "NumPy, all arms"))
    return draw_scaling(lines, ylabel="One decision")


def _line(style: str, rows: Sequence[Timed], microseconds: Sequence[float], label: str) -> Line:
    arms = np.array([row.arms for row in rows], dtype=np.float64)
    return Line(style, arms, 1e-6 * np.array(microseconds), label)
