"""Kills and outages all over a cluster under load: what was acknowledged is in the log, once.

Visitors ask through the client, which knows all deciders, and remember every answer. Meanwhile
deciders and trainers are killed, and PostgreSQL crashes, stops or hangs; one decider at least is
always left, and one that was killed may start again before PostgreSQL does. At the end all are up
again, everything that was spooled is delivered, and each answer is looked for in the log.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import click
import numpy as np
from msgspec import structs

from fastbandit.client import SPOOLED, Client, Retries
from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceError, SpoolError
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.events import DecisionMade, Event, RewardCame
from lab.faults.cluster_stage import Cluster, cluster_of, hanging, stop_database
from lab.faults.consistency import (
    Rewards,
    history_faults,
    lineage_faults,
    lost_decisions,
    lost_rewards,
)
from lab.faults.ending import end_with_report
from lab.faults.stage import Stage, wait_for

DEADLINE_SECONDS = 30.0
_SHOTS = {
    "decider": 0.35,
    "database: crash": 0.1,
    "database: immediate": 0.1,
    "database: fast": 0.1,
    "database: hangs": 0.1,
    "database and decider": 0.15,
    "trainer": 0.1,
}
_MOMENT_SECONDS = (0.5, 3.0)
_AWAY_SECONDS = (0.5, 6.0)
_PAUSE_SECONDS = 0.02
_DRAIN_SECONDS = 300.0
_SETTINGS: dict[str, Any] = {
    "reward.wait_seconds": 86_400.0,  # no reward is late, however long the database was unavailable
    "learn.fresh": 200,
    "learn.seconds": 30.0,
    "learn.keep": 1_000_000,  # the whole lineage is looked at
}


@dataclass(frozen=True)
class ClusterReport:
    """What was found after kills and outages under load.

    A decision is lost where the log does not hold it, or not as it was answered; a reward
    where it was taken and the log did not count it. `doubled` counts what the log holds more
    than once. `spooled` rewards were held by the client for a while, `degraded` decisions by a
    decider. `faults` says where what was learned is not what the log holds.
    """

    minutes: float
    seed: int
    deciders: int
    shots: dict[str, int]
    decisions: int
    degraded: int
    failed_selects: int
    slowest_select_seconds: float
    rewards: int
    spooled: int
    lost_decisions: int
    lost_rewards: int
    doubled: int
    versions: int
    learned: int
    faults: list[str]

    @property
    def is_whole(self) -> bool:
        """Whether nothing failed, was lost or doubled, and learning went on."""
        lost = self.lost_decisions + self.lost_rewards + self.doubled
        return self.failed_selects == lost == 0 and not self.faults and self.versions > 1


def disturb_cluster(
    minutes: float,
    *,
    seed: int = 0,
    arms: int = 1_000,
    visitors: int = 4,
    progress: Progress = silent,
) -> ClusterReport:
    """Disturb a cluster of three deciders and two trainers for so long; look for what was lost."""
    environment = Synthetic("h2", 4, arms, seed=seed)
    with cluster_of(environment, _SETTINGS, deciders=3, trainers=2) as cluster:
        shots = _Shots(cluster, np.random.default_rng(seed))
        with visited(cluster, visitors) as crowd:
            began = time.monotonic()
            while (passed := time.monotonic() - began) < 60 * minutes:
                progress(int(passed), round(60 * minutes), "seconds")
                shots.fire()
            cluster.wait_for_version(cluster.pointer()[0] + 1, seconds=_DRAIN_SECONDS)
        cluster.wait_for_spools(seconds=_DRAIN_SECONDS)
        for visitor in crowd:
            visitor.deliver()
        cluster.end()
        return _judged(cluster, crowd, shots, minutes=minutes, seed=seed)


# -- who asks


class Visitor(threading.Thread):
    """Asks for decisions through the client and rewards them; remembers the answers."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        super().__init__(name=f"visitor {number}", daemon=True)
        self.number, self.is_leaving = number, threading.Event()
        self._environment = cluster.environment
        self._rng = np.random.default_rng([cluster.environment.seed, number])
        first = number % len(cluster.urls)
        urls = cluster.urls[first:] + cluster.urls[:first]
        self._client = Client(urls, deadline_seconds=DEADLINE_SECONDS, retries=Retries(tries=100))
        self._rewards = Client(urls, spool=cluster.home / f"rewards-{number}.db")
        self.asked: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.owed: dict[str, float] = {}  # a reward of each that the client took
        self.rewards: Rewards = Counter()
        self.failures: list[str] = []
        self.slowest = 0.0

    def run(self) -> None:
        visit = 0
        while not self.is_leaving.is_set():
            self._visit(f"v{self.number}-{visit}", self.number * 10_000_000 + visit)
            visit += 1
            time.sleep(self._rng.exponential(_PAUSE_SECONDS))

    def _visit(self, id: str, round_number: int) -> None:
        context = self._environment.contexts(round_number, 1)[0].tolist()
        began = time.monotonic()
        try:
            selected = self._client.select(context, id=id)
        except ServiceError as error:
            self.failures.append(f"select of {id}: {error}")
            return
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.asked[id], self.answers[id] = {"context": context}, structs.asdict(selected)
        if self._rng.random() < 0.9:
            value = float(self._environment.observed(round_number, np.array(selected.arms))[0])
            self._reward(id, value)
            if self._rng.random() < 0.02:
                self._reward(id, value)

    def _reward(self, id: str, value: float) -> None:
        try:
            status = self._rewards.reward(id, value)
        except (ServiceError, SpoolError) as error:
            self.failures.append(f"reward of {id}: {error}")
            return
        self.owed[id] = value
        self.rewards[id, value, status] += 1

    def deliver(self) -> None:
        """Let the client send the rewards that it spooled."""

        def is_done() -> bool:
            return self._rewards.flush(DEADLINE_SECONDS).left == 0

        wait_for(is_done, seconds=_DRAIN_SECONDS, what="rewards that are delivered", step=0.5)
        self._client.close()
        self._rewards.close()


@contextmanager
def visited(cluster: Cluster, count: int) -> Iterator[list[Visitor]]:
    """Let visitors come; at the end they have left."""
    crowd = [Visitor(cluster, number) for number in range(count)]
    for visitor in crowd:
        visitor.start()
    try:
        yield crowd
    finally:
        for visitor in crowd:
            visitor.is_leaving.set()
    for visitor in crowd:  # after an error nobody waits for answers
        visitor.join()


# -- who disturbs


@dataclass
class _Shots:
    """Kills and outages at random moments; after each, all are up again."""

    cluster: Cluster
    rng: np.random.Generator
    fired: Counter[str] = field(default_factory=Counter)

    def fire(self) -> None:
        """Wait for a random moment, disturb, and see that every decider answers after it."""
        time.sleep(self.rng.uniform(*_MOMENT_SECONDS))
        shot = str(self.rng.choice(list(_SHOTS), p=list(_SHOTS.values())))
        self.fired[shot] += 1
        target, _, how = shot.partition(": ")
        if target == "decider":
            self._kill(self.cluster.deciders)
        elif target == "trainer":
            self._kill(self.cluster.trainers)
        elif how == "hangs":
            with hanging(self.cluster.database):
                self._wait()
        else:
            self._stop(how or "crash", with_decider=target.endswith("decider"))
        self.cluster.wait_for_deciders()

    def _kill(self, stages: Sequence[Stage]) -> None:
        stage = self._one_of(stages)
        self.cluster.kill(stage)
        self.cluster.start(stage)

    def _stop(self, how: str, *, with_decider: bool) -> None:
        """Let the database be unavailable; a decider may be killed with what it spooled.

        Half the times that decider starts, and answers, before the database is back.
        """
        stop_database(self.cluster.database, how)
        self._wait()
        killed = self._one_of(self.cluster.deciders) if with_decider else None
        is_sooner = bool(self.rng.integers(2))
        if killed is not None:
            self.cluster.kill(killed)
            self._wait()
            if is_sooner:
                self.cluster.start(killed).first_answer()
        self.cluster.database.start()
        if killed is not None and not is_sooner:
            self.cluster.start(killed)

    def _wait(self) -> None:
        time.sleep(self.rng.uniform(*_AWAY_SECONDS))

    def _one_of(self, stages: Sequence[Stage]) -> Stage:
        return stages[int(self.rng.integers(len(stages)))]


# -- what was lost


def _judged(
    cluster: Cluster, crowd: list[Visitor], shots: _Shots, *, minutes: float, seed: int
) -> ClusterReport:
    events, snapshots = cluster.events(), cluster.snapshots()
    rewards: Rewards = sum((visitor.rewards for visitor in crowd), Counter())
    owed = {id: value for visitor in crowd for id, value in visitor.owed.items()}
    failures = [failure for visitor in crowd for failure in visitor.failures]
    return ClusterReport(
        minutes=minutes,
        seed=seed,
        deciders=len(cluster.deciders),
        shots=dict(sorted(shots.fired.items())),
        decisions=sum(len(visitor.answers) for visitor in crowd),
        degraded=sum(it["degraded"] for visitor in crowd for it in visitor.answers.values()),
        failed_selects=sum(failure.startswith("select") for failure in failures),
        slowest_select_seconds=round(max(visitor.slowest for visitor in crowd), 3),
        rewards=rewards.total(),
        spooled=sum(count for (_, _, status), count in rewards.items() if status == SPOOLED),
        lost_decisions=sum(lost_decisions(it.asked, it.answers, events) for it in crowd),
        lost_rewards=unpaid_rewards(rewards, owed, events),
        doubled=doubled(events),
        versions=len(snapshots),
        learned=snapshots[-1].cut.interactions,
        faults=failures[:3]
        + lineage_faults(snapshots, events)
        + history_faults(snapshots[-1], events),
    )


def unpaid_rewards(rewards: Rewards, owed: dict[str, float], events: Sequence[Event]) -> int:
    """Count the rewards that are not as acknowledged, and those taken but not counted."""
    acknowledged: Rewards = Counter(
        {it: count for it, count in rewards.items() if it[2] != SPOOLED}
    )
    counted = {
        (it.decision, it.value)
        for it in events
        if isinstance(it, RewardCame) and it.status == "counted"
    }
    return lost_rewards(acknowledged, events) + sum(it not in counted for it in owed.items())


def doubled(events: Sequence[Event]) -> int:
    """Count the decisions, and the rewards that count, that a log holds once too often."""
    ids = Counter(it.id for it in events if isinstance(it, DecisionMade))
    counted = Counter(
        (it.decision, it.arm, it.part)
        for it in events
        if isinstance(it, RewardCame) and it.status == "counted"
    )
    return ids.total() - len(ids) + counted.total() - len(counted)


# -- the command


@click.command("cluster")
@click.option("--minutes", type=click.FloatRange(min=0.1), default=30.0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--arms", type=click.IntRange(min=2), default=1_000, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cluster_command(minutes: float, seed: int, arms: int, as_json: bool) -> None:
    """Kill deciders, trainers and PostgreSQL of a cluster under load; look for what was lost.

    Ends with 1 if a select failed, or anything was lost or doubled.
    """
    with progress_bar("Cluster") as progress:
        report = disturb_cluster(minutes, seed=seed, arms=arms, progress=progress)
    end_with_report(report, asdict(report), as_json=as_json, show=_show, is_met=report.is_whole)


def _show(report: ClusterReport) -> None:
    shots = ", ".join(f"{count:,} × {name}" for name, count in report.shots.items())
    click.echo(f"{report.minutes:g} minutes with {report.deciders} deciders: {shots}")
    click.echo(
        f"{report.decisions:,} decisions ({report.degraded:,} degraded), {report.failed_selects:,} "
        f"failed, the slowest after {report.slowest_select_seconds:.1f} s"
    )
    click.echo(
        f"{report.rewards:,} rewards ({report.spooled:,} spooled); lost: {report.lost_decisions:,} "
        f"decisions, {report.lost_rewards:,} rewards; {report.doubled:,} doubled"
    )
    click.echo(f"{report.versions:,} versions, {report.learned:,} interactions learned")
    for fault in report.faults:
        click.echo(f"fault: {fault}")
