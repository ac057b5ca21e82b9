"""`python -m lab bench select`: one decision of a frozen bandit, as the number of arms grows."""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.cores import one_thread
from fastbandit.demo.page import import_matplotlib, make_folder, write_all
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.parts import DTYPES
from fastbandit.search.exhaustive import Exhaustive
from lab.benchmarks.figure import figure_of
from lab.benchmarks.peer_libraries import OURS, Decide, Sweep, forwards_of, sweeps_of
from lab.benchmarks.peers import Round, alternate, worded
from lab.benchmarks.reporting import (
    Tick,
    arms_option,
    json_of,
    output_options,
    over_sizes,
    print_rows,
    read_doc,
    seconds_option,
    setup_options,
)
from lab.benchmarks.setups import (
    Contest,
    Floats,
    Setup,
    contest_of,
    silently,
    yardstick_of,
)
from lab.experiments.figures import png_of, svg_of
from lab.experiments.sizes import sizes_of
from lab.experiments.timing import machine_of
from lab.planning.timing import build_seconds, decide_for

AUDITED = 100
_CONTEXTS = 10_000
_SWEPT = 16  # contexts of the sweeps over all arms
_MOST_SWEPT = 1_000_000  # arms; beyond, a sweep says nothing new
ROUND_SECONDS = 0.05
"""Seconds of one round of the alternation."""
_CALLS = 1_000
_STEPS = 6  # ticks for each number of arms
HEADINGS = (
    "arms",
    "p50 µs",
    "p99 µs",
    "NumPy ÷ ours",
    "folded ÷ ours",
    "scan ÷ ours",
    "q",
    "scored",
    "look-ups",
    "bytes an arm",
    "build s",
    "load s",
    "blocks",
)


@dataclass(frozen=True)
class Row:
    """One decision among so many arms; None where something was not measured.

    `exhaustive_ratio` is the median time of one pass of all arms through the reward network
    in NumPy, as the network is written, by `p50_us`; `folded_ratio` that of a sweep with what
    does not depend on the arm worked out before (and not counted); `scan_ratio` that of our own
    compiled scan of all arms, the same decision by the exhaustive search.
    """

    arms: int
    dim: int
    hidden: int
    exploration: str
    p50_us: float
    p99_us: float
    exhaustive_ratio: float | None
    folded_ratio: float | None
    scan_ratio: float | None
    quality: float
    evaluations: float
    lookups: float
    bytes_per_arm: float
    build_s: float
    load_s: float
    allocations: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.arms:,}",
            worded(self.p50_us),
            worded(self.p99_us),
            worded(self.exhaustive_ratio),
            worded(self.folded_ratio),
            worded(self.scan_ratio),
            f"{self.quality:.4f}",
            f"{self.evaluations:.0f}",
            f"{self.lookups:.1f}",
            f"{self.bytes_per_arm:.0f}",
            worded(self.build_s),
            worded(self.load_s),
            f"{self.allocations:.1f}",
        )


def measure_select(
    setup: Setup, *, seconds: float, audited: int = AUDITED, tick: Tick = silently
) -> Row:
    """Train, freeze, time and audit a bandit over so many arms."""
    contest = contest_of(setup, contexts=_CONTEXTS, tick=tick)
    tick("building partitions")
    build_s = build_seconds(contest.policy.arms.all().points[0].numpy())
    frozen = contest.frozen()
    tick("timing")
    taken = times_of(frozen, sweeps_for(contest), contest.contexts, seconds=seconds)
    p50, p99 = np.percentile(taken[OURS], [50, 99])
    ratios = {name: float(np.median(taken[name]) / p50) for name in taken}
    load_s = load_seconds(frozen)
    tick("auditing")
    ruler = yardstick_of(contest, audited)
    found = frozen.select(ruler.contexts, seeds=ruler.seeds)
    return Row(
        arms=setup.arms,
        dim=setup.dim,
        hidden=contest.hidden,
        exploration=setup.exploration,
        p50_us=1e6 * float(p50),
        p99_us=1e6 * float(p99),
        exhaustive_ratio=ratios.get("network"),
        folded_ratio=ratios.get("folded"),
        scan_ratio=ratios.get("scan"),
        quality=ruler.quality(contest.earnest(ruler, found.rows[:, 0])),
        evaluations=float(found.evaluations.mean()),
        lookups=float(found.lookups.mean()),
        bytes_per_arm=frozen.bytes_per_arm,
        build_s=build_s,
        load_s=load_s,
        allocations=allocations_of(frozen, contest.contexts),
    )


# -- parts of a row


def times_of(
    frozen: FrozenBandit, sweeps: Mapping[str, Decide], contexts: Floats, *, seconds: float
) -> dict[str, list[float]]:
    """Time decisions in alternation with sweeps over all arms: seconds of each, by name.

    Ours decides many times in a round, as a server does that has its arms in the cache.
    """

    def ours(number: int) -> int:
        return frozen.select_one(contexts[number % len(contexts)], seed=number).row

    rounds = {OURS: round_of(ours), **{name: round_of(sweep) for name, sweep in sweeps.items()}}
    for number in range(_CALLS):
        ours(number)
    taken, _ = alternate(rounds, seconds=seconds, round_seconds=ROUND_SECONDS)
    return taken


def round_of(decide: Callable[[int], object]) -> Round:
    """Let a task go on from round to round; it is called with how often it ran before."""
    numbers = count()

    def again(_: int) -> int:
        decide(next(numbers))
        return 0

    def run_round(seconds: float) -> list[float] | str:
        return decide_for(again, seconds, first=0)

    return run_round


def sweeps_for(contest: Contest) -> dict[str, Decide]:
    """Make the tasks of scoring all arms for one request: in NumPy, and compiled.

    There are none for upper confidence, whose bound is no plain network, and for over a
    million arms.
    """
    if contest.setup.arms > _MOST_SWEPT or contest.setup.exploration == "ucb":
        return {}
    contexts = contest.contexts[:_SWEPT]
    vectors, sweeps = sweeps_of(contest.bandit, contexts)
    arms, forwards = forwards_of(contest.bandit, contexts)
    scan = contest.frozen(Exhaustive())
    return {
        "scan": lambda number: scan.select_one(contexts[number % _SWEPT], seed=number).row,
        "network": lambda number: forwards[number % _SWEPT].best(arms),
        "folded": lambda number: best_of(sweeps[number % _SWEPT], vectors),
    }


def best_of(sweep: Sweep, vectors: Floats) -> int:
    """Find the best of all arms by one sweep of NumPy."""
    hidden = vectors @ sweep.first.T + sweep.bias
    hidden = np.maximum(hidden, sweep.leak * hidden)
    return int((hidden @ sweep.last + vectors @ sweep.wide).argmax())


def load_seconds(frozen: FrozenBandit) -> float:
    """Save a frozen bandit, and time how long loading it takes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "frozen"
        frozen.save(folder)
        started = time.perf_counter()
        FrozenBandit.load(folder)
        return time.perf_counter() - started


def allocations_of(frozen: FrozenBandit, contexts: Floats) -> float:
    """Count the blocks of memory for a decision: Python objects in the answer, compiled arrays."""
    compiled = import_module("numba.core.runtime.nrt")
    answers: list[Any] = [None] * _CALLS
    compiled._nrt.memsys_enable_stats()
    gc.collect()
    arrays, blocks = compiled.rtsys.get_allocation_stats().alloc, sys.getallocatedblocks()
    for number in range(_CALLS):
        answers[number] = frozen.select_one(contexts[number % len(contexts)], seed=number)
    blocks = sys.getallocatedblocks() - blocks
    arrays = compiled.rtsys.get_allocation_stats().alloc - arrays
    compiled._nrt.memsys_disable_stats()
    return float((blocks + arrays) / _CALLS)


# -- the command


@click.command("select")
@arms_option("10000,100000,1000000")
@setup_options
@click.option(
    "--dtype",
    type=click.Choice(DTYPES),
    default="float32",
    show_default=True,
    help="How the arms' coordinates are stored.",
)
@seconds_option(5.0, "Time ours and the sweep for so long each, at each number of arms.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the rows and a figure of them."
)
@output_options
def select_command(
    arms: str,
    dim: int,
    hidden: int | None,
    exploration: str,
    dtype: str,
    seconds: float,
    out: Path | None,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Time one decision of a frozen bandit among many arms, on one thread, and audit it.

    In alternation with sweeps over all arms, in NumPy and compiled, up to a million of them. Before
    that a bandit learns from 5,000 rounds of h3.
    """
    sizes = sizes_of(arms)
    if out is not None:
        import_matplotlib()
        make_folder(out)
    if doc is not None:
        read_doc(doc)
    one_thread()

    def measure(size: int, tick: Tick) -> Row:
        setup = Setup(size, dim, hidden, exploration, dtype=dtype)
        return measure_select(setup, seconds=seconds, tick=tick)

    rows = over_sizes("Select", sizes, measure, steps=_STEPS)
    if out is not None:
        write_select(rows, out)
    print_rows("select", HEADINGS, rows, note=note_on(rows), doc=doc, as_json=as_json)


def note_on(rows: Sequence[Row]) -> str:
    """Say what was timed, and on which machine."""
    first = rows[0]
    return (
        f"One decision, {first.exploration}, {first.dim} features, {first.hidden} hidden units, "
        f"{machine_of('cpu')}"
    )


def write_select(rows: Sequence[Row], folder: Path) -> None:
    """Write the rows and a figure of them, over those of an earlier run."""
    figure = figure_of(rows)
    write_all(
        {
            folder / "select.json": json_of(rows).encode(),
            folder / "select.svg": svg_of(figure).encode(),
            folder / "select.png": png_of(figure),
        }
    )
