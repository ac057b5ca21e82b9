"""`python -m lab experiment scaling`: how the time of a decision grows with the number of arms."""

from __future__ import annotations

import json
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
from fastbandit.progress import progress_bar
from fastbandit.types import Audit, Inputs
from lab.experiments import datasets
from lab.experiments.comparison import Result
from lab.experiments.environment import as_raw
from lab.experiments.policies import NEURAL
from lab.experiments.recipe import recipe_for
from lab.experiments.report_tables import scaling_table
from lab.experiments.results import Key, write_result
from lab.experiments.runtime import Plan, agents_for, batch_size_of, listed
from lab.experiments.sizes import sizes_of
from lab.experiments.timing import (
    ROUNDS,
    UPDATES,
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
_AUDITED = 50
_PAIRS_IN_BATCH = 10_000_000  # of a context and an arm, for Exhaust: seconds, not minutes
_PAIRS_AUDITED = 10_000_000
_FEWEST, _REPETITIONS = 3, 50


@dataclass(frozen=True)
class Spot:
    """A policy that has learned, over a catalogue of one size, and what it is asked."""

    policy: str
    arms: int
    agent: Bandit
    contexts: Inputs
    batch_size: int

    @property
    def name(self) -> str:
        return f"{self.policy}, {self.arms:,} arms"

    def audit(self) -> Audit:
        """Compare some choices with the exhaustive ones; fewer where there are many arms."""
        count = max(1, min(_AUDITED, _PAIRS_AUDITED // self.arms))
        return self.agent.audit(as_raw(self.contexts.take(slice(count))))


def measure_scaling(
    sizes: Sequence[int], plan: Plan, *, tick: Tick = lambda name: None
) -> dict[str, dict[str, Any]]:
    """Return seconds per selection and q of each policy at each number of arms, and the slope.

    All policies are made first, then timed in alternation.
    """
    spots = list(_spots_of(sorted(sizes), plan, tick=tick))
    taken = time_alternately(
        {spot.name: batch_of(spot.agent, spot.contexts, spot.batch_size) for spot in spots},
        least=_FEWEST,
        most=_REPETITIONS,
        seconds=plan.seconds,
        clock=clock_on(plan.device),
        tick=tick,
    )
    found = {}
    for policy in plan.policies:
        mine = [spot for spot in spots if spot.policy == policy]
        seconds = [median(taken[spot.name]) / spot.batch_size for spot in mine]
        audits = [_audited(spot, tick) for spot in mine]
        found[policy] = {
            "arms": [spot.arms for spot in mine],
            "seconds": seconds,
            "slope": slope_of([spot.arms for spot in mine], seconds),
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
    size = plan.batch_size or batch_size_of(policy, plan.device)
    if NEURAL[policy][1] == "exhaustive":
        size = min(size, max(1, _PAIRS_IN_BATCH // arms))
    return size


def _audited(spot: Spot, tick: Tick) -> Audit:
    report = spot.audit()
    tick(spot.name)
    return report


def slope_of(arms: Sequence[int], seconds: Sequence[float]) -> float | None:
    """Return the slope of log(seconds) over log(arms) by least squares; None for one size."""
    if len(arms) < 2:
        return None
    return float(np.polyfit(np.log(arms), np.log(seconds), 1)[0])


# -- the command


@click.command("scaling")
@click.option(
    "--arms",
    default="1000,10000,100000,1000000",
    show_default=True,
    help="Numbers of arms, comma-separated.",
)
@click.option(
    "--policies",
    default="GANBandit TS,Exhaust TS",
    show_default=True,
    help="Neural policies, comma-separated.",
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def scaling_command(
    arms: str,
    policies: str,
    preset: str,
    device: str,
    batch_size: int | None,
    seconds: float,
    out: Path,
    as_json: bool,
) -> None:
    """Time decisions among 1,000 to 1,000,000 arms of h2, all in one process and in alternation."""
    sizes = sizes_of(arms)
    plan = Plan(
        policies=listed("policy", policies, tuple(NEURAL)),
        preset=preset,
        device=device,
        seconds=seconds,
        batch_size=batch_size,
    )
    recipe_for(preset)
    make_folder(out)
    one_thread()
    warm_up(device)
    ended: list[str] = []
    with progress_bar("Scaling") as progress:

        def tick(name: str) -> None:
            ended.append(name)
            progress(len(ended), 3 * len(sizes) * len(plan.policies), name)

        found = measure_scaling(sizes, plan, tick=tick)
    results = [{"policy": policy, **numbers} for policy, numbers in found.items()]
    if as_json:
        click.echo(json.dumps(results, indent=1, allow_nan=False))
    else:
        click.echo(f"{scaling_table(results).to_markdown()}\n\nWritten: {out}")
    write_scaling(results, plan, out)


def write_scaling(results: Sequence[Result], plan: Plan, folder: Path) -> None:
    """Write what was found for each policy, over what an earlier run found."""
    rounds = UPDATES * ROUNDS
    for result in results:
        policy = result["policy"]
        key = Key(DATASET, {"dim": DIM}, policy, plan.preset, rounds, rounds, 0, plan.device)
        more = {**result, "machine": machine_of(plan.device)}
        write_result(key.path(folder), "scaling", key, more)
