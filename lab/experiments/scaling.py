"""`python -m lab experiment scaling`: how time and memory grow with the arms, or the rounds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.cores import one_thread
from fastbandit.demo.page import make_folder
from fastbandit.progress import Progress, progress_bar
from fastbandit.types import Audit, Inputs
from lab.benchmarks.reporting import check_marks, fill_marks
from lab.experiments import datasets
from lab.experiments.comparison import Result
from lab.experiments.environment import as_raw
from lab.experiments.held_memory import held_bytes
from lab.experiments.policies import NEURAL
from lab.experiments.recipe import recipe_for
from lab.experiments.report_tables import scaling_table
from lab.experiments.results import Key, write_result
from lab.experiments.run import Agent
from lab.experiments.runtime import Plan, agents_for, batch_size_of, listed
from lab.experiments.scaling_rounds import POLICIES as OF_ROUNDS
from lab.experiments.scaling_rounds import measure_rounds, rounds_text
from lab.experiments.sizes import sizes_of
from lab.experiments.slopes import format_bytes, growth_table, slope_numbers, slope_of
from lab.experiments.timing import (
    ROUNDS,
    UPDATES,
    Task,
    Tick,
    TrainingBatch,
    batch_of,
    clock_on,
    fitting_size,
    learning,
    machine_of,
    requests_after,
    time_alternately,
    training_batches_for,
    warm_up,
)

DATASET, DIM = "h2", 4
INDEXED = ("QGLOC", "GLOC-TS")
"""Linear policies that find arms by an index, and can be timed beside the neural ones."""
_DEFAULT = "GANBandit TS,Exhaust TS"
_AUDITED = 50
_PAIRS_IN_BATCH = 10_000_000  # of a context and an arm, for Exhaust: seconds, not minutes
_PAIRS_AUDITED = 10_000_000
_FEWEST, _REPETITIONS = 3, 50


@dataclass(frozen=True)
class Spot:
    """A policy that has learned, over a catalogue of one size, and what it is asked."""

    policy: str
    arms: int
    agent: Agent
    contexts: Inputs
    batch_size: int

    @property
    def name(self) -> str:
        return f"{self.policy}, {self.arms:,} arms"

    @property
    def task(self) -> Task:
        """The task of deciding for a batch."""
        if isinstance(self.agent, Bandit):
            return batch_of(self.agent, self.contexts, self.batch_size)
        raw = as_raw(self.contexts.take(slice(self.batch_size)))
        return lambda number: self.agent.select(raw)

    def audit(self) -> Audit | None:
        """Compare some choices with the exhaustive ones; fewer where there are many arms."""
        if not isinstance(self.agent, Bandit):
            return None
        count = max(1, min(_AUDITED, _PAIRS_AUDITED // self.arms))
        return self.agent.audit(as_raw(self.contexts.take(slice(count))))


def measure_scaling(
    sizes: Sequence[int], plan: Plan, *, tick: Tick = lambda name: None
) -> dict[str, dict[str, Any]]:
    """Return seconds per selection, bytes and q of each policy at each number of arms, and slopes.

    All policies are made first, then timed in alternation.
    """
    spots = list(_spots_of(sorted(sizes), plan, tick=tick))
    taken = time_alternately(
        {spot.name: spot.task for spot in spots},
        least=_FEWEST,
        most=_REPETITIONS,
        seconds=plan.seconds,
        clock=clock_on(plan.device),
        tick=tick,
    )
    found = {}
    for policy in plan.policies:
        mine = [spot for spot in spots if spot.policy == policy]
        arms = [spot.arms for spot in mine]
        seconds = [median(taken[spot.name]) / spot.batch_size for spot in mine]
        held = [held_bytes(spot.agent) for spot in mine]
        audits = [audit for spot in mine if (audit := _audited(spot, tick))]
        found[policy] = {
            "arms": arms,
            "seconds": seconds,
            **slope_numbers("slope", slope_of(arms, seconds)),
            "bytes": held,
            **slope_numbers("memory_slope", slope_of(arms, held)),
            "quality": [audit.quality for audit in audits],
            "evaluations": [audit.evaluations for audit in audits],
            "lookups": [audit.lookups for audit in audits],
            "audited": [audit.contexts for audit in audits],
            "batch_size": [spot.batch_size for spot in mine],
            "repetitions": [len(taken[spot.name]) for spot in mine],
        }
    return found


def _spots_of(sizes: Sequence[int], plan: Plan, *, tick: Tick) -> Iterator[Spot]:
    """Make and train all policies.

    The arms of a small catalogue are the first of a larger one, so that all can learn the
    same: rounds that were played among the fewest arms. They learn all of them at once, for
    each update indexes the catalogue anew.
    """
    batch: TrainingBatch | None = None
    for size in sizes:
        environment = datasets.load(DATASET, arms=size, dim=DIM)
        agents = agents_for(environment, plan)
        batch = batch or joined(training_batches_for(environment, next(iter(agents.values()))))
        for policy, agent in agents.items():
            learning(agent, [batch])(0)
            usual = _batch_size(policy, size, plan)
            contexts = requests_after(environment, max(usual, _AUDITED))
            fitting = usual
            if isinstance(agent, Bandit):
                fitting = fitting_size(agent, contexts, size=usual)
            yield (spot := Spot(policy, size, agent, contexts, fitting))
            tick(spot.name)


def joined(batches: Sequence[TrainingBatch]) -> TrainingBatch:
    """Make one batch of several."""
    return TrainingBatch(
        np.concatenate([batch.contexts for batch in batches]),
        [arm for batch in batches for arm in batch.arms],
        np.concatenate([batch.rewards for batch in batches]),
    )


def _batch_size(policy: str, arms: int, plan: Plan) -> int:
    device = plan.device if policy in NEURAL else "cpu"
    size = plan.batch_size or batch_size_of(policy, device)
    if policy in NEURAL and NEURAL[policy][1] == "exhaustive":
        size = min(size, max(1, _PAIRS_IN_BATCH // arms))
    return size


def _audited(spot: Spot, tick: Tick) -> Audit | None:
    report = spot.audit()
    tick(spot.name)
    return report


def arms_text(results: Sequence[Result]) -> str:
    """Format what was found: time and q, then memory."""
    memory = growth_table(results, over="arms", of="bytes", letter="N", form=format_bytes)
    return (
        f"A decision, in batches:\n\n{scaling_table(results).to_markdown()}\n\n"
        f"Memory held:\n\n{memory.to_markdown()}"
    )


# -- the command


@click.command("scaling")
@click.option(
    "--arms",
    default="1000,10000,100000,1000000",
    show_default=True,
    help="Numbers of arms, comma-separated.",
)
@click.option(
    "--rounds",
    help="Numbers of rounds, comma-separated: time policies of a continuum as these grow instead.",
)
@click.option(
    "--policies",
    help=f"Comma-separated: neural ones, QGLOC, GLOC-TS; over rounds GP-UCB, GP-TS, HOO.  "
    f"[default: {_DEFAULT}; over rounds all three]",
)
@click.option("--preset", default="default", show_default=True, help="Name or file of settings.")
@click.option("--device", default="cpu", show_default=True, help="Where policies are timed.")
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    help="Requests at once; Exhaust takes fewer of many arms.  [default: 100; on a GPU 65536]",
)
@click.option(
    "--seconds",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0.0),
    help="Repeat no measurement after so long, once it was made 3 times.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results/scaling"),
    show_default=True,
    help="Results; earlier ones are written over.",
)
@click.option(
    "--doc",
    type=click.Path(path_type=Path),
    help="Also put the tables between the marks of this page.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def scaling_command(
    arms: str,
    rounds: str | None,
    policies: str | None,
    preset: str,
    device: str,
    batch_size: int | None,
    seconds: float,
    out: Path,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Time decisions among 1,000 to 1,000,000 arms of h2, all in one process and in alternation.

    With --rounds, those of Gaussian processes and HOO after so many rounds of a continuum.
    Memory is what a policy holds between decisions.
    """
    name = "arms" if rounds is None else "rounds"
    marks = (f"<!-- experiment scaling {name} -->", f"<!-- end of experiment scaling {name} -->")
    check_marks(doc, marks=marks)
    circumstances = _circumstances()
    if rounds is not None:
        results = _over_rounds(sizes_of(rounds, option="--rounds"), policies, seconds=seconds)
        text = rounds_text(results)
    else:
        plan = Plan(
            policies=listed("policy", policies or _DEFAULT, (*NEURAL, *INDEXED)),
            preset=preset,
            device=device,
            seconds=seconds,
            batch_size=batch_size,
        )
        results = _over_arms(sizes_of(arms), plan, out=out)
        text = arms_text(results)
    text += f"\n\nMedians on {machine_of(device)}; {circumstances}."
    if doc is not None:
        fill_marks(doc, text, marks=marks, command="experiment scaling")
    if as_json:
        click.echo(json.dumps(results, indent=1, allow_nan=False))
    else:
        click.echo(text)


def _circumstances() -> str:
    """Say what else the machine does, which makes times longer and noisier, and NumPy's threads."""
    load, threads = os.getloadavg()[0], os.environ.get("OMP_NUM_THREADS", "not set")
    return (
        f"load average of the machine before {load:.1f} on {os.cpu_count()} cores; "
        f"OMP_NUM_THREADS {threads}"
    )


def _over_arms(sizes: Sequence[int], plan: Plan, *, out: Path) -> list[Result]:
    recipe_for(plan.preset)
    make_folder(out)
    one_thread()
    warm_up(plan.device)
    with progress_bar("Scaling") as progress:
        tick = _counted(progress, 3 * len(sizes) * len(plan.policies))
        found = measure_scaling(sizes, plan, tick=tick)
    results = [{"policy": policy, **numbers} for policy, numbers in found.items()]
    write_scaling(results, plan, out)
    return results


def _over_rounds(rounds: Sequence[int], policies: str | None, *, seconds: float) -> list[Result]:
    named = listed("policy", policies or ",".join(OF_ROUNDS), OF_ROUNDS)
    one_thread()
    with progress_bar("Scaling") as progress:
        tick = _counted(progress, 2 * len(rounds) * len(named))
        return measure_rounds(rounds, named, seconds=seconds, tick=tick)


def _counted(progress: Progress, steps: int) -> Tick:
    ended: list[str] = []

    def tick(name: str) -> None:
        ended.append(name)
        progress(len(ended), steps, name)

    return tick


def write_scaling(results: Sequence[Result], plan: Plan, folder: Path) -> None:
    """Write what was found for each policy, over what an earlier run found."""
    rounds = UPDATES * ROUNDS
    for result in results:
        policy = result["policy"]
        key = Key(DATASET, {"dim": DIM}, policy, plan.preset, rounds, rounds, 0, plan.device)
        more = {**result, "machine": machine_of(plan.device)}
        write_result(key.path(folder), "scaling", key, more)
