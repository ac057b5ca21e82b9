"""`python -m lab bench gpu`: large batches on a GPU, by the generator and exhaustively."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
import torch

from fastbandit.audit import audit
from fastbandit.cores import one_thread
from fastbandit.errors import SettingError
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
from lab.benchmarks.setups import Setup, contest_of, searching, silently
from lab.experiments.sizes import sizes_of
from lab.experiments.timing import clock_on, machine_of, time_alternately

BATCH = 100_000
_PAIRS = 2 * 10**9  # of a context and an arm in an exhaustive batch: a second, not minutes
_AUDITED = 200
_CONTEXTS = 10_000
_FEWEST, _MOST = 3, 50
_STEPS = 5
HEADINGS = ("arms", "s per selection", "exhaustive, s", "exhaustive ÷ ours", "q")


@dataclass(frozen=True)
class Row:
    """Seconds for one selection in a batch among so many arms."""

    arms: int
    dim: int
    hidden: int
    exploration: str
    device: str
    batch: int
    exhaustive_batch: int
    seconds: float
    exhaustive_seconds: float
    exhaustive_ratio: float
    quality: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.arms:,}",
            f"{self.seconds:.2e}",
            f"{self.exhaustive_seconds:.2e}",
            worded(self.exhaustive_ratio),
            f"{self.quality:.4f}",
        )


def measure_gpu(setup: Setup, *, batch: int, seconds: float, tick: Tick = silently) -> Row:
    """Train a bandit on the device, and time its batches in alternation with exhaustive ones."""
    contest = contest_of(setup, contexts=_CONTEXTS, tick=tick)
    fewer = max(1, min(batch, _PAIRS // setup.arms))
    tasks = {
        "ours": searching(contest.policy, *contest.inputs(batch)),
        "exhaustive": searching(contest.exhaustive, *contest.inputs(fewer)),
    }
    tick("timing")
    for task in tasks.values():
        task(0)
    clock = clock_on(setup.device)
    taken = time_alternately(tasks, least=_FEWEST, most=_MOST, seconds=seconds, clock=clock)
    ours, exhaustive = median(taken["ours"]) / batch, median(taken["exhaustive"]) / fewer
    tick("auditing")
    inputs, seeds = contest.inputs(_AUDITED)
    return Row(
        arms=setup.arms,
        dim=setup.dim,
        hidden=contest.hidden,
        exploration=setup.exploration,
        device=setup.device,
        batch=batch,
        exhaustive_batch=fewer,
        seconds=ours,
        exhaustive_seconds=exhaustive,
        exhaustive_ratio=exhaustive / ours,
        quality=audit(contest.policy, inputs, seeds=seeds).quality,
    )


# -- the command


@click.command("gpu")
@arms_option("10000,100000,1000000")
@setup_options
@click.option(
    "--batch", default=BATCH, show_default=True, type=click.IntRange(1), help="Contexts at once."
)
@seconds_option(5.0, "Time each search for so long, at each number of arms.")
@output_options
def gpu_command(
    arms: str,
    dim: int,
    hidden: int | None,
    exploration: str,
    batch: int,
    seconds: float,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Time large batches on a GPU: the policy's own search and the exhaustive one, in alternation.

    The exhaustive search takes fewer contexts at once where arms are many.
    """
    sizes = sizes_of(arms)
    check_gpu()
    if doc is not None:
        read_doc(doc)
    one_thread()

    def measure(size: int, tick: Tick) -> Row:
        setup = Setup(size, dim, hidden, exploration, device="cuda")
        return measure_gpu(setup, batch=batch, seconds=seconds, tick=tick)

    rows = over_sizes("GPU", sizes, measure, steps=_STEPS)
    print_rows("gpu", HEADINGS, rows, note=note_on(rows), doc=doc, as_json=as_json)


def check_gpu() -> None:
    """Make sure that torch sees a GPU."""
    if not torch.cuda.is_available():
        raise SettingError(
            "`python -m lab bench gpu` needs a GPU that torch can use: it sees none. Run it on a "
            "machine with one and a build of torch for CUDA, or run `python -m lab bench batch`."
        )


def note_on(rows: Sequence[Row]) -> str:
    """Say what was timed, and on which device."""
    first = rows[0]
    return (
        f"Batches of {first.batch:,}, {first.exploration}, {first.dim} features, {first.hidden} "
        f"hidden units, {machine_of(first.device)}"
    )
