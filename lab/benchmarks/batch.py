"""`python -m lab bench batch`: decisions a second, frozen and in torch, on one core and on all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click

from fastbandit.cores import cores, one_thread
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.types import Inputs
from lab.benchmarks.peers import worded
from lab.benchmarks.reporting import (
    Tick,
    arms_option,
    output_options,
    over_sizes,
    print_rows,
    read_doc,
    seconds_option,
    setup_options,
)
from lab.benchmarks.setups import Contest, Seeds, Setup, contest_of, searching, silently
from lab.experiments.sizes import sizes_of
from lab.experiments.timing import Task, machine_of, time_alternately

SMALL, LARGE = 100, 10_000
"""Contexts in a batch: for ratios, and for rates."""
_FEWEST = 3
_STEPS = 4
HEADINGS = (
    "arms",
    "frozen, 1 core, /s",
    "frozen, all cores, /s",
    "torch, /s",
    "exhaustive torch, /s",
    "exhaustive ÷ torch",
    "exhaustive ÷ frozen",
)


@dataclass(frozen=True)
class Row:
    """Decisions a second among so many arms, and what an exhaustive one takes by ours.

    Rates of the frozen bandit are those of large batches; ratios compare batches of 100 on
    one core.
    """

    arms: int
    dim: int
    hidden: int
    exploration: str
    cores: int
    frozen_per_s: float
    frozen_all_cores_per_s: float
    torch_per_s: float
    exhaustive_per_s: float
    exhaustive_over_torch: float
    exhaustive_over_frozen: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.arms:,}",
            f"{self.frozen_per_s:,.0f}",
            f"{self.frozen_all_cores_per_s:,.0f}",
            f"{self.torch_per_s:,.0f}",
            f"{self.exhaustive_per_s:,.0f}",
            worded(self.exhaustive_over_torch),
            worded(self.exhaustive_over_frozen),
        )


def measure_batch(setup: Setup, *, seconds: float, tick: Tick = silently) -> Row:
    """Train and freeze a bandit, and time its batches in alternation with those of torch."""
    contest = contest_of(setup, contexts=LARGE, tick=tick)
    tasks = tasks_of(contest, contest.frozen())
    for task in tasks.values():
        task(0)
    tick("timing")
    taken = time_alternately(
        tasks, least=_FEWEST, most=10**6, seconds=seconds, clock=time.perf_counter
    )
    took = {name: median(repeats) for name, repeats in taken.items()}
    return Row(
        arms=setup.arms,
        dim=setup.dim,
        hidden=contest.hidden,
        exploration=setup.exploration,
        cores=cores(),
        frozen_per_s=LARGE / took["one core"],
        frozen_all_cores_per_s=LARGE / took["all cores"],
        torch_per_s=SMALL / took["torch"],
        exhaustive_per_s=SMALL / took["exhaustive"],
        exhaustive_over_torch=took["exhaustive"] / took["torch"],
        exhaustive_over_frozen=took["exhaustive"] / took["small"],
    )


def tasks_of(contest: Contest, frozen: FrozenBandit) -> dict[str, Task]:
    """Make the tasks: a small batch of each kind, and large ones of the frozen bandit."""
    small, large = contest.inputs(SMALL), contest.inputs(LARGE)
    return {
        "small": selecting(frozen, *small, threads=1),
        "torch": searching(contest.policy, *small),
        "exhaustive": searching(contest.exhaustive, *small),
        "one core": selecting(frozen, *large, threads=1),
        "all cores": selecting(frozen, *large, threads=None),
    }


def selecting(frozen: FrozenBandit, inputs: Inputs, seeds: Seeds, *, threads: int | None) -> Task:
    """Make the task of deciding for a batch by a frozen bandit."""
    return lambda number: frozen.select(inputs.dense, seeds=seeds, threads=threads)


# -- the command


@click.command("batch")
@arms_option("10000,100000")
@setup_options
@seconds_option(3.0, "Time each kind of batch for so long, at each number of arms.")
@output_options
def batch_command(
    arms: str,
    dim: int,
    hidden: int | None,
    exploration: str,
    seconds: float,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Time batches: of a frozen bandit on one core and on all, and of torch on one.

    Torch decides for 100 contexts at a time, by the generator and exhaustively.
    """
    sizes = sizes_of(arms)
    if doc is not None:
        read_doc(doc)
    one_thread()

    def measure(size: int, tick: Tick) -> Row:
        return measure_batch(Setup(size, dim, hidden, exploration), seconds=seconds, tick=tick)

    rows = over_sizes("Batch", sizes, measure, steps=_STEPS)
    print_rows("batch", HEADINGS, rows, note=note_on(rows), doc=doc, as_json=as_json)


def note_on(rows: Sequence[Row]) -> str:
    """Say what was timed, and on which machine."""
    first = rows[0]
    return (
        f"Batches, {first.exploration}, {first.dim} features, {first.hidden} hidden units, "
        f"{machine_of('cpu')} ({first.cores} for all cores)"
    )
