"""`kill -9` of the trainer with the leader lease: the other takes over, no number is used twice.

Visitors of a decider send rewards all the while, so that a version is due every few seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import click
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.progress import Progress, progress_bar, silent
from lab.faults.cluster_stage import STEP_SECONDS, Cluster, cluster_of
from lab.faults.consistency import history_faults, lineage_faults
from lab.faults.ending import end_with_report
from lab.faults.stage import Caller, Stage, wait_for

MOST_SECONDS = 30.0
_PATIENCE = 120.0
_TOGETHER = 5
_PAUSE_SECONDS = 0.1
_SETTINGS = {
    "reward.wait_seconds": 3_600.0,
    "learn.fresh": 100,
    "learn.growth": 0.0,
    "learn.keep": 1_000_000,  # the whole lineage is looked at
}


@dataclass(frozen=True)
class TrainerReport:
    """What two trainers did while the one that worked was killed so many times.

    Seconds are from a kill until the other one had the leader lease, and until it had published.
    `waited` counts the kills before which the other one said that it waits, `together` the
    moments at which both had the lease. `missing` are numbers that no version has.
    """

    times: int
    seed: int
    lease_seconds: list[float]
    publish_seconds: list[float]
    waited: int
    together: int
    versions: int
    missing: int
    learned: int
    faults: list[str]

    @property
    def slowest_seconds(self) -> float:
        """The longest time from a kill to a version of the other one."""
        return max(self.publish_seconds)

    @property
    def is_whole(self) -> bool:
        """Whether one worked at a time, and each version goes on from the one before."""
        is_alone = self.together == self.missing == 0 and self.waited == self.times
        return is_alone and not self.faults and self.versions > self.times

    @property
    def is_prompt(self) -> bool:
        """Whether the other one always took over in time."""
        return self.slowest_seconds <= MOST_SECONDS


def kill_trainers(
    times: int, *, seed: int = 0, arms: int = 1_000, progress: Progress = silent
) -> TrainerReport:
    """Kill the trainer that works so many times, and look how the other one goes on."""
    rng = np.random.default_rng(seed)
    environment = Synthetic("h2", 4, arms, seed=seed)
    with cluster_of(environment, _SETTINGS, deciders=1, trainers=2) as cluster:
        rounds = _Rounds(cluster, rng)
        with _visits(cluster.deciders[0]):
            for number in range(1, times + 1):
                rounds.kill_worker()
                progress(number, times, "kills")
        cluster.end()
        events, snapshots = cluster.events(), cluster.snapshots()
        numbers = {one.version for one in snapshots}
        return TrainerReport(
            times=times,
            seed=seed,
            lease_seconds=rounds.lease_seconds,
            publish_seconds=rounds.publish_seconds,
            waited=rounds.waited,
            together=rounds.together,
            versions=len(snapshots),
            missing=max(numbers) + 1 - len(numbers),
            learned=snapshots[-1].cut.interactions,
            faults=lineage_faults(snapshots, events) + history_faults(snapshots[-1], events),
        )


class _Rounds:
    """Kills the trainer that works, waits for the other one, and starts the first again."""

    def __init__(self, cluster: Cluster, rng: np.random.Generator) -> None:
        self._cluster, self._rng = cluster, rng
        self.lease_seconds: list[float] = []
        self.publish_seconds: list[float] = []
        self.waited = self.together = 0

    def kill_worker(self) -> None:
        """Kill at a random moment, half the times while it trains."""
        cluster = self._cluster
        worker, other = self._roles()
        before = self._holders(but=[])
        self._wait(worker)
        self.waited += cluster.is_waiting(other)
        cluster.kill(worker)
        began = time.monotonic()
        self._holders(but=before)
        self.lease_seconds.append(round(time.monotonic() - began, 2))
        cluster.wait_for_version(cluster.pointer()[0] + 1, seconds=_PATIENCE)
        self.publish_seconds.append(round(time.monotonic() - began, 2))
        cluster.start(worker)

    def _roles(self) -> list[Stage]:
        """Wait until one trainer works and the other waits; return them in this order."""
        first, second = self._cluster.trainers

        def roles() -> list[Stage]:
            for one, other in ((first, second), (second, first)):
                if self._cluster.is_working(one) and self._cluster.is_waiting(other):
                    return [one, other]
            return []

        return wait_for(roles, seconds=_PATIENCE, what="a trainer that works and one that waits")

    def _holders(self, *, but: list[int]) -> list[int]:
        """Wait until a session has the leader lease that did not have it before."""

        def found() -> list[int]:
            return self._cluster.holders(but=but)

        holders = wait_for(found, seconds=_PATIENCE, what="a leader lease", step=STEP_SECONDS)
        self.together += len(holders) > 1
        return holders

    def _wait(self, worker: Stage) -> None:
        time.sleep(self._rng.uniform(0.0, 2.0))
        if self._rng.random() < 0.5:
            until = time.monotonic() + MOST_SECONDS
            while worker.learner_state().get("state") != "training" and time.monotonic() < until:
                time.sleep(STEP_SECONDS)
            time.sleep(self._rng.uniform(0.0, 0.5))


@contextmanager
def _visits(stage: Stage) -> Iterator[None]:
    """Let a visitor ask a decider for decisions, and reward each."""
    is_over = threading.Event()
    visitor = threading.Thread(target=_visit, args=(stage, is_over))
    visitor.start()
    try:
        yield
    finally:
        is_over.set()
        visitor.join()


def _visit(stage: Stage, is_over: threading.Event) -> None:
    caller, visit = Caller(stage.port), 0
    while not is_over.wait(_PAUSE_SECONDS):
        contexts = stage.environment.contexts(visit, _TOGETHER).tolist()
        reply = caller.ask("/v1/select", {"contexts": contexts})
        if reply is not None and reply.status == 200:
            made = reply.content["decisions"]
            arms = np.array([one["arms"][0] for one in made])
            values = stage.environment.observed(visit, arms).tolist()
            rewards = [
                {"decision": one["decision"], "value": value}
                for one, value in zip(made, values, strict=True)
            ]
            caller.ask("/v1/reward", {"rewards": rewards})
        visit += _TOGETHER
    caller.close()


# -- the command


@click.command("trainers")
@click.option("--times", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--arms", type=click.IntRange(min=2), default=1_000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def trainers_command(times: int, seed: int, arms: int, as_json: bool) -> None:
    """Kill the trainer of a cluster that works; see that the other one takes over.

    Ends with 1 if that took over 30 seconds, or if versions do not go on from one another.
    """
    with progress_bar("Trainers") as progress:
        report = kill_trainers(times, seed=seed, arms=arms, progress=progress)
    notes = {**asdict(report), "slowest_seconds": report.slowest_seconds}
    end_with_report(
        report, notes, as_json=as_json, show=_show, is_met=report.is_whole and report.is_prompt
    )


def _show(report: TrainerReport) -> None:
    click.echo(
        f"{report.times:,} kills of the trainer that worked; the other one waited "
        f"{report.waited:,} times, and both worked {report.together:,} times"
    )
    click.echo(
        f"the other one had the leader lease within {max(report.lease_seconds):.1f} s, and "
        f"published within  {report.slowest_seconds:.1f} s"
    )
    versions = f"{report.versions:,} versions, {report.missing:,} missing"
    click.echo(f"{versions}; {report.learned:,} interactions learned")
    for fault in report.faults:
        click.echo(f"fault: {fault}")
