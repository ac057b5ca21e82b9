"""`python -m lab bench index`: our partitions and hops against the inverted lists of faiss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fastbandit.arms.partitions import GROUPS, Partitions, measured_size, nearest_partitions, padded
from fastbandit.cores import one_thread
from fastbandit.packages import needed
from fastbandit.runtime.freezing import catalogue_of
from fastbandit.score import Candidates
from fastbandit.search.arm_generator import generator_inputs
from fastbandit.search.generator import FittedGenerator, GeneratorSearch
from fastbandit.search.gradient_ascent import best_points, climb
from fastbandit.search.ranking import SearchRun, Tally
from lab.benchmarks.peers import alternate, worded
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
from lab.benchmarks.select import ROUND_SECONDS, round_of
from lab.benchmarks.setups import (
    Contest,
    Floats,
    Setup,
    Yardstick,
    contest_of,
    silently,
    yardstick_of,
)
from lab.experiments.sizes import sizes_of
from lab.experiments.timing import Task, machine_of

PROBES = 16
_AUDITED, _POINTS = 200, 2_000
_STEPS = 6
HEADINGS = (
    "arms",
    "look-up",
    "hops × beam",
    "q",
    "scored",
    "look-up µs",
    "hops µs",
    "both µs",
)


@dataclass(frozen=True)
class Way:
    """A way to real arms: `neighbours` of each point by faiss; our partitions where it is 0."""

    neighbours: int
    hops: int
    beam: int

    @property
    def name(self) -> str:
        return f"faiss IVF, {self.neighbours}" if self.neighbours else "partitions"

    def search(self, usual: GeneratorSearch) -> GeneratorSearch:
        """Return the usual search, landing and hopping this way."""
        return replace(usual, neighbours=self.neighbours, hops=self.hops, beam=self.beam)


@dataclass(frozen=True)
class Row:
    """The quality of one way to real arms, and the time of its look-ups and of its hops."""

    arms: int
    lookup: str
    hops: int
    beam: int
    quality: float
    evaluations: float
    lookup_us: float
    hops_us: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.arms:,}",
            self.lookup,
            f"{self.hops} × {self.beam}" if self.hops else "none",
            f"{self.quality:.4f}",
            f"{self.evaluations:.0f}",
            worded(self.lookup_us),
            worded(self.hops_us) if self.hops else "–",
            worded(self.lookup_us + self.hops_us),
        )


def ways_of(usual: GeneratorSearch) -> list[Way]:
    """Return the usual way with and without its hops, and those by faiss with few hops."""
    ours = [Way(0, usual.hops, usual.beam), Way(0, 0, 1)]
    return ours + [Way(count, *walk) for count in (16, 32) for walk in ((0, 1), (1, 2))]


def measure_index(setup: Setup, *, seconds: float, tick: Tick = silently) -> list[Row]:
    """Train a bandit, and let it come from the same points to arms in several ways."""
    contest = contest_of(setup, contexts=_POINTS, tick=tick)
    usual = usual_of(contest)
    ways = ways_of(usual)
    tick("auditing")
    index = index_of(contest.policy.arms.all().points[0])
    ruler = yardstick_of(contest, _AUDITED)
    found = [audit_of(contest, way, index, ruler) for way in ways]
    tick("timing look-ups")
    lookups = time_lookups(contest, ways, index, seconds=seconds)
    tick("timing hops")
    hops = time_hops(contest, ways, seconds=seconds)
    return [
        Row(setup.arms, way.name, way.hops, way.beam, *audit, lookups[way.neighbours], hops[way])
        for way, audit in zip(ways, found, strict=True)
    ]


def audit_of(contest: Contest, way: Way, index: Any, ruler: Yardstick) -> tuple[float, float]:
    """Return q and the mean evaluations of a way, in torch."""
    policy, search = contest.policy, way.search(usual_of(contest))
    inputs, seeds = contest.inputs(len(ruler.seeds))
    with torch.no_grad():
        if way.neighbours:
            scores, evaluations = land_by(index, contest, search, len(seeds))
        else:
            fitted = replace(fitted_of(contest), declared=search)
            choice = replace(policy, search=fitted).select(inputs, seeds=seeds)
            scores, evaluations = choice.scores, choice.evaluations
        found = policy.model.in_rewards(scores[:, 0]).numpy()
    return ruler.quality(found), float(evaluations.float().mean())


def land_by(
    index: Any, contest: Contest, search: GeneratorSearch, count: int
) -> tuple[Tensor, Tensor]:
    """Go from the usual points to the nearest arms by faiss, and hop: scores, evaluations."""
    arms = catalogue_of(contest.policy)
    inputs, seeds = contest.inputs(count)
    run = SearchRun(contest.policy.score(inputs, seeds=seeds), arms)
    points = points_of(contest, search, count, run.tally)
    _, found = index.search(points.reshape(-1, points.shape[2]), search.neighbours)
    rows = torch.from_numpy(found).reshape(count, -1)
    ranked = run.rank(Candidates(rows, arms.at(rows)))
    choice = run.choice(run.hop(ranked, hops=search.hops, beam=search.beam))
    return choice.scores, choice.evaluations


def usual_of(contest: Contest) -> GeneratorSearch:
    """Return the search of the bandit as it was declared."""
    return fitted_of(contest).declared


def fitted_of(contest: Contest) -> FittedGenerator:
    """Return the search of the bandit with its generator."""
    search = contest.policy.search
    assert isinstance(search, FittedGenerator)
    return search


# -- time


def time_lookups(
    contest: Contest, ways: Sequence[Way], index: Any, *, seconds: float
) -> dict[int, float]:
    """Time the look-ups of one decision's points: µs by the neighbours of a way."""
    usual = usual_of(contest)
    count = len(contest.contexts)
    points = points_of(contest, usual, count, Tally(count))
    lookup = catalogue_of(contest.policy).lookup
    assert lookup is not None
    tasks: dict[str, Task] = {"0": _partitions_task(lookup.partitions, points, usual.partitions)}
    for neighbours in {way.neighbours for way in ways} - {0}:
        tasks[str(neighbours)] = _faiss_task(index, points, neighbours)
    return {int(name): us for name, us in medians_of(tasks, seconds=seconds).items()}


def _partitions_task(partitions: Partitions, points: Floats, wanted: int) -> Task:
    """Find the nearest partitions of a decision's points, as compiled code does."""
    filled = padded(points.reshape(-1, points.shape[2])).reshape(*points.shape[:2], -1)
    near = np.empty(min(wanted, partitions.count), np.int32)
    groups = np.empty(GROUPS, np.int32)
    numbers = np.empty(measured_size(partitions.centres, len(near), GROUPS), np.float32)

    def task(number: int) -> None:
        for point in filled[number % len(filled)]:
            nearest_partitions(point, partitions.centres, partitions.groups, near, groups, numbers)

    return task


def _faiss_task(index: Any, points: Floats, neighbours: int) -> Task:
    return lambda number: index.search(points[number % len(points)], neighbours)


def points_of(contest: Contest, search: GeneratorSearch, count: int, tally: Tally) -> Floats:
    """Return the points that are looked up for some contexts: (contexts, look-ups, D)."""
    inputs, seeds = contest.inputs(count)
    arms = contest.policy.arms
    with torch.no_grad():
        score = contest.policy.score(inputs, seeds=seeds)
        points = fitted_of(contest).generator(generator_inputs(score, arms, tally), arms)
        points = best_points(score, points, search.lookups, tally)
        points = climb(score, points, arms, tally, steps=search.steps, step_size=search.step_size)
    return np.ascontiguousarray(points.numpy())


def time_hops(contest: Contest, ways: Sequence[Way], *, seconds: float) -> dict[Way, float]:
    """Time what hops add to a decision of the frozen bandit: µs."""
    usual = usual_of(contest)
    walks = {(way.hops, way.beam) for way in ways} | {(0, 1)}
    tasks = {
        f"{hops} {beam}": _choosing(contest, Way(0, hops, beam).search(usual))
        for hops, beam in sorted(walks)
    }
    took = medians_of(tasks, seconds=seconds)
    return {way: max(0.0, took[f"{way.hops} {way.beam}"] - took["0 1"]) for way in ways}


def _choosing(contest: Contest, search: GeneratorSearch) -> Task:
    frozen = contest.frozen(replace(fitted_of(contest), declared=search))
    contexts = contest.contexts
    return lambda number: frozen.select_one(contexts[number % len(contexts)], seed=number)


def medians_of(tasks: dict[str, Task], *, seconds: float) -> dict[str, float]:
    """Time tasks of some microseconds in short rounds, once warm: the median of each in µs."""
    for task in tasks.values():
        task(0)
    rounds = {name: round_of(task) for name, task in tasks.items()}
    taken, _ = alternate(rounds, seconds=seconds, round_seconds=ROUND_SECONDS)
    return {name: 1e6 * median(seconds) for name, seconds in taken.items()}


# -- faiss


def index_of(vectors: Float[Tensor, "N D"]) -> Any:
    """Build inverted lists: 2 √N of them, of which 16 are looked into."""
    faiss = needed("faiss", what="The comparison with faiss", extra="peers")
    points = np.ascontiguousarray(vectors.numpy())
    count, dim = points.shape
    lists = min(count, int(2 * math.sqrt(count)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim), dim, lists)
    index.cp.niter, index.cp.seed, index.cp.max_points_per_centroid = 8, 1234, 64
    index.cp.min_points_per_centroid = 1
    index.train(points)
    index.add(points)
    index.nprobe = min(lists, PROBES)
    return index


# -- the command


@click.command("index")
@arms_option("10000,100000,1000000")
@setup_options
@seconds_option(1.0, "Time each look-up and each walk for so long, at each number of arms.")
@output_options
def index_command(
    arms: str,
    dim: int,
    hidden: int | None,
    exploration: str,
    seconds: float,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Compare our partitions and hops with inverted lists of faiss, from the same points.

    The look-ups of one decision are called from Python in both ways; hops are what they add
    to a decision of the frozen bandit.
    """
    sizes = sizes_of(arms)
    if doc is not None:
        read_doc(doc)
    one_thread()

    def measure(size: int, tick: Tick) -> list[Row]:
        return measure_index(Setup(size, dim, hidden, exploration), seconds=seconds, tick=tick)

    rows = [row for part in over_sizes("Index", sizes, measure, steps=_STEPS) for row in part]
    note = f"From 2 points to an arm, {exploration}, {dim} features, {machine_of('cpu')}"
    print_rows("index", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
