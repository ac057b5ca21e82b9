"""What agents earned in the synthetic shop, and the bars for a bandit with default settings."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from lab.experiments.comparison import Estimate, estimate, verdict_of
from lab.experiments.shop_data import Floats
from lab.printing import print_lines

EARLY = 3_000
RIVALS = ("popularity", "greedy popularity")
BARS = (
    (f"cold: sum of the first {EARLY:,}", "cold", "early", 1.0),
    ("cold: last fifth", "cold", "last", 1.3),
    ("warm: first tenth", "warm", "first", 1.2),
)
"""Each with the start, the part of the requests, and how many times the better popularity."""


@dataclass(frozen=True)
class Row:
    """Mean click rates of an agent: expected ones, so that only choices differ."""

    seed: int
    start: str
    agent: str
    first: float
    early: float
    last: float
    whole: float
    passed: int | None
    """From which request on the sum stays above that of both popularities; None: never."""


def rows_of(earned: dict[str, Floats], *, seed: int, start: str) -> list[Row]:
    """Return what each agent earned: in the first tenth, up to `EARLY`, in the last fifth, all."""
    best = np.maximum(
        earned["popularity"].cumsum(), earned["greedy popularity"].cumsum()
    )  # the better of the two, request by request
    rows = []
    for name, clicks in earned.items():
        count = len(clicks)
        below = np.flatnonzero(clicks.cumsum() <= best)
        after = int(below[-1]) + 1 if len(below) else 0
        row = Row(
            seed=seed,
            start=start,
            agent=name,
            first=float(clicks[: count // 10].mean()),
            early=float(clicks[:EARLY].mean()),
            last=float(clicks[-(count // 5) :].mean()),
            whole=float(clicks.mean()),
            passed=after if after < count else None,
        )
        rows.append(row)
    return rows


def print_rows(rows: list[Row], note: str) -> None:
    """Print the means over seeds."""
    lines = []
    for start, agent in dict.fromkeys((row.start, row.agent) for row in rows):
        some = [row for row in rows if (row.start, row.agent) == (start, agent)]
        parts = [[getattr(r, k) for r in some] for k in ("first", "early", "last", "whole")]
        passed = [row.passed for row in some]
        worded = ", ".join("never" if one is None else f"{one:,}" for one in passed)
        lines.append((start, agent, *(f"{np.mean(part):.2%}" for part in parts), worded))
    head = ("start", "agent", "first tenth", f"first {EARLY:,}", "last fifth", "all", "ahead from")
    print_lines(note, head, lines)


@dataclass(frozen=True)
class Bar:
    """How many times the better popularity the bandit earned: by seed, and the geometric mean.

    The interval is of 95 %, over seeds (Student's t, of logarithms): None for one seed.
    """

    name: str
    needed: float
    seeds: list[int]
    ratios: list[float]
    mean: float
    low: float | None
    high: float | None
    verdict: str
    """met or missed, where the interval says so, else undecided."""


def bars_of(rows: list[Row]) -> list[Bar]:
    """Return the bars, each by pairs of the same users and clicks."""
    starts = {row.start for row in rows}
    return [
        _bar(name, needed, [row for row in rows if row.start == start], part)
        for name, start, part, needed in BARS
        if start in starts
    ]


def _bar(name: str, needed: float, rows: list[Row], part: str) -> Bar:
    found = {(row.seed, row.agent): float(getattr(row, part)) for row in rows}
    seeds = sorted({seed for seed, _ in found})
    ratios = [
        found[seed, "fastbandit"] / max(found[seed, rival] for rival in RIVALS) for seed in seeds
    ]
    logs = estimate([log(ratio) for ratio in ratios])
    mean, half = logs.mean, logs.half
    low, high = (None, None) if half is None else (exp(mean - half), exp(mean + half))
    verdict = verdict_of(Estimate(mean - log(needed), half))
    return Bar(name, needed, seeds, ratios, exp(mean), low, high, verdict)


def print_bars(bars: list[Bar]) -> None:
    """Print how many times the better popularity was earned, and on how many seeds enough."""
    lines = []
    for bar in bars:
        enough = sum(ratio >= bar.needed for ratio in bar.ratios)
        between = "–" if bar.low is None else f"{bar.low:.2f} to {bar.high:.2f}"
        seeds = f"{enough} of {len(bar.ratios)}"
        parts = (f"{bar.mean:.2f}", between, f"{min(bar.ratios):.2f}", seeds, bar.verdict)
        lines.append((bar.name, f"{bar.needed:g}", *parts))
    head = ("times the better popularity", "bar", "mean", "95 %", "least", "seeds", "verdict")
    print_lines("Bars", head, lines)
