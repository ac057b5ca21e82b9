"""`python -m lab bench explain`: how long an explanation takes, and whether its parts sum up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.cores import one_thread
from lab.benchmarks.reporting import output_options, print_rows, read_doc
from lab.experiments.timing import machine_of

SIZES = (20, 50)
"""Features of a context and an arm together; the arm has eight of them."""
MOST_MS, MOST_GAP = 1.0, 1e-6
HEADINGS = ("what", "features", "arms", "CPU ms, median", "95 %", "sum less score", "bars")
_ARM, _WARM = 8, 20


@dataclass(frozen=True)
class Row:
    """Explanations of one kind: thread CPU time, and the most that a sum differs from its score."""

    what: str
    features: int
    arms: int
    median_ms: float
    p95_ms: float
    gap: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        times = (f"{self.median_ms:.2f}", f"{self.p95_ms:.2f}", f"{self.gap:.1e}")
        bars = f"{MOST_MS:g} ms, {MOST_GAP:g}"
        return (self.what, f"{self.features}", f"{self.arms:,}", *times, bars)


def measure(features: int, *, arms: int, calls: int, rounds: int = 1_000) -> list[Row]:
    """Explain decisions of a bandit that has learned, in the library and frozen, in alternation."""
    rng = np.random.default_rng(features)
    bandit = Bandit(arms=rng.normal(size=(arms, _ARM)), context=features - _ARM, progress=False)
    contexts = rng.normal(size=(rounds, features - _ARM)).astype(np.float32)
    chosen, rewards = rng.integers(0, arms, rounds), rng.integers(0, 2, rounds)
    bandit.update(contexts=contexts, arms=chosen, rewards=rewards)
    both: list[tuple[str, Any]] = [("library", bandit), ("frozen", bandit.freeze())]
    taken: dict[str, list[float]] = {what: [] for what, _ in both}
    gaps = dict.fromkeys(taken, 0.0)
    for number in range(_WARM + calls):
        context, arm, seed = contexts[number % rounds], int(rng.integers(arms)), number
        for what, one in both:
            started = time.thread_time()
            found = one.explain(context, arm, seed=seed)
            took = time.thread_time() - started
            gap = abs(sum(found.contributions.values()) - found.score)
            gaps[what] = max(gaps[what], gap)
            if number >= _WARM:
                taken[what].append(1e3 * took)
    return [
        Row(what, features, arms, float(np.median(times)), float(np.quantile(times, 0.95)), gap)
        for (what, times), gap in zip(taken.items(), gaps.values(), strict=True)
    ]


@click.command("explain")
@click.option("--arms", default=2_000, show_default=True, type=click.IntRange(2), help="Arms.")
@click.option(
    "--calls", default=500, show_default=True, type=click.IntRange(1), help="Explanations of each."
)
@output_options
def explain_command(arms: int, calls: int, doc: Path | None, as_json: bool) -> None:
    """Time explanations of decisions by the CPU of their thread, and add their parts up.

    At most 1 ms at 20 features, and parts that sum to the score within 1e-6, are wanted.
    """
    if doc is not None:
        read_doc(doc)
    one_thread()
    rows = [row for size in SIZES for row in measure(size, arms=arms, calls=calls)]
    note = f"Explanations of decisions, {machine_of('cpu')}"
    print_rows("explain", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
