"""How something grows: slopes of logarithms with their intervals, and tables of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.experiments.comparison import Estimate, Result, policy_sort_key, t_quantile
from lab.experiments.report_tables import NONE, Table, plus_minus


def slope_of(sizes: Sequence[float], values: Sequence[float]) -> Estimate | None:
    """Return the slope of log(values) over log(sizes), with half of its 95 % interval.

    By least squares: the interval tells how far the points are from a line, and is None for two
    of them. One size has no slope.
    """
    if len(sizes) < 2:
        return None
    x, y = np.log(sizes), np.log(values)
    slope, start = np.polyfit(x, y, 1)
    freedom = len(x) - 2
    if freedom == 0:
        return Estimate(float(slope), None)
    misses = np.square(y - start - slope * x).sum() / freedom
    error = float(np.sqrt(misses / np.square(x - x.mean()).sum()))
    return Estimate(float(slope), t_quantile(freedom + 1) * error)


def slope_numbers(name: str, found: Estimate | None) -> dict[str, float | None]:
    """Return a slope as a result file has it."""
    half = None if found is None else found.half
    return {name: None if found is None else found.mean, f"{name}_half": half}


def growth_table(
    results: Sequence[Result],
    *,
    over: str,
    of: str,
    letter: str,
    form: Callable[[Any], str],
    until: int | None = None,
) -> Table:
    """Return a table of what each policy takes by size, and the slope.

    `over` names the sizes of a result, `of` what is shown of them. `until` adds the slope up to a
    size, where something is capped beyond it.
    """
    sizes = sorted({size for result in results for size in result[over]})
    rows = []
    for result in sorted(results, key=lambda one: policy_sort_key(one["policy"])):
        at = dict(zip(result[over], result[of], strict=True))
        cells = [form(at[size]) if size in at else NONE for size in sizes]
        limits = (None,) if until is None else (until, None)
        cells += [plus_minus(_slope_to(limit, at), ".2f") for limit in limits]
        rows.append((result["policy"], *cells))
    named = () if until is None else (f"slope to {until:,}",)
    headings = ("policy", *(f"{letter} = {size:,}" for size in sizes), *named, "slope")
    return Table(headings, tuple(rows))


def _slope_to(limit: int | None, at: dict[int, float]) -> Estimate | None:
    known = {size: value for size, value in at.items() if limit is None or size <= limit}
    return slope_of(list(known), list(known.values()))


def format_bytes(count: float) -> str:
    """Return a size as text, with three digits and the unit that suits it."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
