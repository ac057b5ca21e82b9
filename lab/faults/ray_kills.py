"""`kill -9` of workers and of whole nodes of a Ray cluster while it does its jobs.

Each job is done once without kills. Then it is done again and again, and at random moments a
worker dies, or a node with all that runs on it, in whose place another comes. What came of the
job must be the same to the last bit, and of what it writes only whole files may be seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from fastbandit.cluster.engine import Engine, engine_for
from fastbandit.cores import one_thread
from fastbandit.progress import Progress, progress_bar, silent
from lab.faults.ending import end_with_report
from lab.faults.ray_jobs import NAMES, Job, Sizes, jobs_in, parts_in
from lab.faults.ray_nodes import RayNodes, ray_nodes

_NODES = 2
_STEP_SECONDS = 0.02
_MOST_A_RUN = 2  # a job whose workers die more often is given up, by design
_NODE_SHARE = 0.5


@dataclass
class Shots:
    """Kills of workers and of nodes that did something, and the runs that they fell into."""

    workers: int = 0
    nodes: int = 0
    runs: int = 0

    @property
    def count(self) -> int:
        """All kills."""
        return self.workers + self.nodes


@dataclass(frozen=True)
class RayReport:
    """What became of jobs whose workers were killed.

    So many `kills` were to hit. `failed` says how jobs ended that did not end well, `other` names
    those that gave another result. `seen` counts the parts that could be seen after kills,
    `partial` those not whole.
    """

    kills: int
    seed: int
    nodes: int
    shots: dict[str, Shots]
    plain_seconds: dict[str, float]
    slowest_seconds: dict[str, float]
    failed: list[str]
    other: list[str]
    seen: int
    partial: int

    @property
    def hits(self) -> int:
        """The kills that hit a job: all that were asked for, or a few more."""
        return sum(one.count for one in self.shots.values())

    @property
    def is_whole(self) -> bool:
        """Whether all jobs were hit, and ended as without kills."""
        is_hit = all(one.count for one in self.shots.values())
        return is_hit and not self.failed and not self.other and self.partial == 0


@dataclass
class _Looks:
    """Looks at the files that a job writes: each part is as in the run without kills, or not."""

    out: Path | None
    wanted: dict[str, bytes] = field(default_factory=dict)
    seen: int = 0
    partial: int = 0

    def look(self) -> None:
        """Compare what can be seen now."""
        found = parts_in(self.out) if self.out is not None else {}
        self.seen += len(found)
        self.partial += sum(self.wanted.get(name) != part for name, part in found.items())


def kill_ray(
    kills: int,
    *,
    names: Sequence[str] = NAMES,
    seed: int = 0,
    sizes: Sizes | None = None,
    progress: Progress = silent,
) -> RayReport:
    """Do jobs until each was hit by its share of so many kills, and say what came of them."""
    one_thread()
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder, ray_nodes(_NODES) as nodes:
        jobs = [job for job in jobs_in(Path(folder), sizes or Sizes()) if job.name in names]
        with engine_for("ray", workers=_NODES, address=nodes.address) as engine:
            trials = [_Trial(job, nodes, engine, rng) for job in jobs]
            for number, trial in enumerate(trials):
                share = -(-kills // len(trials))
                trial.run(
                    share,
                    lambda done, start=number * share: progress(start + done, kills, "kills"),
                )
    return RayReport(
        kills=kills,
        seed=seed,
        nodes=_NODES,
        shots={one.job.name: one.shots for one in trials},
        plain_seconds={one.job.name: round(one.seconds, 2) for one in trials},
        slowest_seconds={one.job.name: round(one.slowest, 2) for one in trials},
        failed=[text for one in trials for text in one.failed],
        other=[one.job.name for one in trials for _ in range(one.other)],
        seen=sum(one.looks.seen for one in trials),
        partial=sum(one.looks.partial for one in trials),
    )


class _Trial:
    """One job, done without kills, then with them."""

    def __init__(self, job: Job, nodes: RayNodes, engine: Engine, rng: np.random.Generator) -> None:
        self.job, self._nodes, self._engine, self._rng = job, nodes, engine, rng
        self.shots, self.looks = Shots(), _Looks(job.out)
        self.failed: list[str] = []
        self.other, self.seconds, self.slowest = 0, 0.0, 0.0

    def run(self, kills: int, progress: Any) -> None:
        """Do the job until so many kills hit it, or it ends badly."""
        self.job.run(self._engine)  # so that the next, which is timed, compiles nothing
        began = time.monotonic()
        wanted = self.job.run(self._engine)
        self.seconds = time.monotonic() - began
        if self.job.out is not None:
            self.looks.wanted = parts_in(self.job.out)
        while self.shots.count < kills and not self.failed:
            self._run_once(wanted)
            progress(min(self.shots.count, kills))

    def _run_once(self, wanted: str) -> None:
        """Do the job in a thread, and shoot from this one: Ray adds nodes in the main thread."""
        is_over = threading.Event()
        working = threading.Thread(target=self._work, args=(wanted, is_over))
        began = time.monotonic()
        working.start()
        self._shoot(is_over)
        working.join()
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.shots.runs += 1

    def _work(self, wanted: str, is_over: threading.Event) -> None:
        try:
            self.other += self.job.run(self._engine) != wanted
        except Exception as error:  # whatever it says: the job should have ended well
            text = " ".join(str(error).split())
            self.failed.append(f"{self.job.name}: {type(error).__name__}: {text[:300]}")
        finally:
            is_over.set()

    def _shoot(self, is_over: threading.Event) -> None:
        """Kill once or twice at random moments of a run."""
        for _ in range(int(self._rng.integers(1, _MOST_A_RUN + 1))):
            if is_over.wait(self._rng.uniform(0.0, self.seconds)):
                return
            if self._rng.random() < _NODE_SHARE:
                self._shoot_node()
            else:
                self._shoot_worker(is_over)
            self.looks.look()

    def _shoot_node(self) -> None:
        self.shots.nodes += self._nodes.kill_node(self._rng.random())
        self._nodes.add_node()

    def _shoot_worker(self, is_over: threading.Event) -> None:
        """Kill a worker as soon as one does something."""
        choice = self._rng.random()
        while not is_over.is_set():
            if self._nodes.kill_worker(choice):
                self.shots.workers += 1
                return
            time.sleep(_STEP_SECONDS)


# -- the command


@click.command("ray")
@click.option("--kills", type=click.IntRange(min=1), default=24, show_default=True)
@click.option(
    "--job",
    "names",
    multiple=True,
    type=click.Choice(NAMES),
    default=NAMES,
    help="Only this; may be given more than once.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--size",
    type=click.FloatRange(min=0.001),
    default=1.0,
    show_default=True,
    help="How large jobs are, in parts of the usual size.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ray_command(kills: int, names: tuple[str, ...], seed: int, size: float, as_json: bool) -> None:
    """Kill workers and nodes of a Ray cluster that joins, trains, indexes and scores.

    The cluster has two nodes on this machine. Ends with 1 if a job did not end by itself with
    the result that it has without kills, or if a part of a file could be seen.
    """
    with progress_bar("Ray") as progress:
        report = kill_ray(
            kills, names=names, seed=seed, sizes=Sizes().scaled(size), progress=progress
        )
    notes = {**asdict(report), "hits": report.hits}
    end_with_report(report, notes, as_json=as_json, show=_show, is_met=report.is_whole)


def _show(report: RayReport) -> None:
    click.echo(f"{report.hits:,} kills on {report.nodes} nodes")
    for name, one in report.shots.items():
        click.echo(
            f"{name}: {one.workers} workers and {one.nodes} nodes killed in {one.runs} runs; "
            f"{report.plain_seconds[name]:.1f} s without, {report.slowest_seconds[name]:.1f} s "
            f"at most with kills"
        )
    click.echo(f"{report.seen:,} parts seen after kills, {report.partial:,} of them partial")
    for fault in report.failed:
        click.echo(f"failed: {fault}")
    for name in report.other:
        click.echo(f"another result: {name}")
