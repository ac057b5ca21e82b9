"""`kill -9` of the processes of a service under load: what was acknowledged is there, once.

Visitors ask with ids of their own, ask again whatever breaks, and remember every answer. At
the end each answer is looked for in the log, and what was learned is compared with the log.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from fastbandit.progress import Progress, progress_bar, silent
from lab.faults.consistency import (
    Rewards,
    history_faults,
    lineage_faults,
    lost_decisions,
    lost_rewards,
)
from lab.faults.ending import end_with_report
from lab.faults.stage import Caller, Running, Stage, set_stage, wait_for
from lab.faults.visitor import PAUSE_SECONDS, Visitor

MOST_RESTART_SECONDS = 2.0
LEAST_A_MINUTE = 1.0
_TARGETS = {"service": 0.4, "learner": 0.4, "both": 0.2}
_OF_WORKERS = {"worker": 0.35, "writer": 0.35, "learner": 0.15, "both": 0.1, "service": 0.05}
"""How often each is killed, alone and with several workers, where both are a worker and writer."""
_MODULES = {
    "worker": "fastbandit.serving.worker",
    "writer": "fastbandit.serving.log_writer_process",
}
_MOMENT_SECONDS = (0.3, 3.0)
_MOMENT_OF_WORKERS = (0.1, 1.5)
_WAITED_FOR = 0.1  # share of the kills of workers and writers after which all is waited for
_ORPHAN_SECONDS = 5.0
_PATIENCE_SECONDS = 180.0
_LEARNS_EVERY = 20  # after so many rounds, nothing is killed until a version was made
_SETTINGS: dict[str, Any] = {
    "reward.wait_seconds": 3.0,
    "learn.fresh": 100,
    "learn.seconds": 5.0,
    "learn.keep": 1_000_000,  # the whole lineage is looked at
}


@dataclass(frozen=True)
class KillReport:
    """What was found after kills under load.

    `slowest_recovery_seconds` is how long it took until a worker or writer was replaced.
    `other_answers` counts retries that were not answered as the first time, `odd_answers`
    those with a status that no kill explains, `orphans` learners that outlived their service,
    and `faults` says where what was learned is not what the log holds.
    """

    rounds: int
    seed: int
    kills: dict[str, int]
    restarts: int
    slowest_restart_seconds: float
    decisions: int
    rewards: int
    broken: int
    asked_again: int
    lost_decisions: int
    lost_rewards: int
    other_answers: int
    odd_answers: int
    orphans: int
    versions: int
    learned: int
    faults: list[str]
    workers: int = 1
    minutes: float = 0.0
    slowest_recovery_seconds: float = 0.0

    @property
    def versions_per_minute(self) -> float:
        """The versions that were learned in a minute."""
        return (self.versions - 1) / self.minutes if self.minutes else 0.0

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost or learned twice, and learning went on."""
        lost = self.lost_decisions + self.lost_rewards + self.other_answers + self.odd_answers
        return lost == self.orphans == 0 and not self.faults and self.versions > 1

    @property
    def is_prompt(self) -> bool:
        """Whether each restart answered in time, and versions were made all the while."""
        is_learning = self.versions_per_minute >= LEAST_A_MINUTE
        return is_learning and self.slowest_restart_seconds <= MOST_RESTART_SECONDS


def kill_rounds(
    rounds: int,
    *,
    seed: int = 0,
    arms: int = 1_000,
    visitors: int = 4,
    workers: int = 1,
    progress: Progress = silent,
) -> KillReport:
    """Kill processes of a service so many times under load, and look for what was lost."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as home:
        settings = {**_SETTINGS, "server.workers": workers}
        stage = set_stage(Path(home), Synthetic("h2", 4, arms, seed=seed), settings)
        crowd = [Visitor(stage, number) for number in range(visitors)]
        shots = _Shots(stage, rng, workers)
        try:
            shots.restart()
            for visitor in crowd:
                visitor.start()
            shots.warm_up()
            for number in range(1, rounds + 1):
                shots.fire()
                if number % _LEARNS_EVERY == 0 or number == rounds:
                    shots.let_learn()
                progress(number, rounds, "kills")
            for visitor in crowd:
                visitor.leave()
            shots.stop()
        finally:
            for visitor in crowd:
                visitor.is_leaving.set()
            shots.end()
        return _judged(stage, crowd, shots, rounds=rounds, seed=seed)


# -- who kills


@dataclass
class _Shots:
    """Kills at random moments, and starts again."""

    stage: Stage
    rng: np.random.Generator
    workers: int = 1
    recoveries: list[float] = field(default_factory=list)
    minutes: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    restarts: list[float] = field(default_factory=list)
    orphans: int = 0
    _services: list[Running] = field(default_factory=list)

    @property
    def service(self) -> Running:
        """The service that was started last."""
        return self._services[-1]

    def restart(self) -> None:
        """Start the service, and wait for its first answer."""
        self._services.append(self.stage.start())
        self.restarts.append(self.service.first_answer())

    def fire(self) -> None:
        """Wait for a random moment, kill, and see that a service answers after it."""
        targets = _TARGETS if self.workers == 1 else _OF_WORKERS
        target = str(self.rng.choice(list(targets), p=list(targets.values())))
        self._wait(target)
        if self.workers > 1 and target in ("worker", "writer", "both"):
            self._fire_within(["worker", "writer"] if target == "both" else [target])
            return
        learner = self.service.learner
        if learner is None and target != "service":
            target = "service"
        self.kills[target] += 1
        if target != "service" and learner is not None:
            _kill(learner)
        if target != "learner":
            self.service.kill()
            self.restart()
            self._look_for_orphans()

    def _fire_within(self, roles: list[str]) -> None:
        """Kill one process of each role; a few times, wait until it is replaced."""
        hit = {role: self.service.children(_MODULES[role]) for role in roles}
        for role, found in hit.items():
            if found:
                self.kills[role] += 1
                _kill(int(self.rng.choice(found)))
        if self.rng.random() < _WAITED_FOR or not self.recoveries:
            self.recoveries.append(self._recovery())

    def _recovery(self) -> float:
        """Wait until all workers run, and the log is written to; return for how long."""
        began, caller = time.monotonic(), Caller(self.stage.port)

        def is_whole() -> bool:
            said = caller.ask("/ready")
            caller.close()  # the next may be another worker's
            found = [] if said is None else said.content.get("reasons", [])
            is_ready = said is not None and said.status == 200
            return is_ready and not any(one["name"] == "workers" for one in found)

        time.sleep(PAUSE_SECONDS)
        wait_for(is_whole, seconds=60.0, what="all workers", step=PAUSE_SECONDS)
        return time.monotonic() - began

    def stop(self) -> None:
        """End the service as a signal does."""
        self.minutes = (time.monotonic() - self._services[0].began) / 60
        self.service.stop()

    def _wait(self, target: str) -> None:
        """Wait for a while, and half the times that a learner is meant, until it trains."""
        moment = _MOMENT_SECONDS if self.workers == 1 else _MOMENT_OF_WORKERS
        time.sleep(self.rng.uniform(*moment))
        if target == "learner" and self.rng.random() < 0.5:
            until = time.monotonic() + _MOMENT_SECONDS[1]
            while time.monotonic() < until and not self._is_training():
                time.sleep(PAUSE_SECONDS)
            time.sleep(self.rng.uniform(0.0, 0.5))

    def _is_training(self) -> bool:
        return bool(self.stage.learner_state().get("state") == "training")

    def _look_for_orphans(self) -> None:
        """Count learners whose service was killed a while ago, and end them."""
        now = time.monotonic()
        for service in self._services[:-1]:
            if now - service.ended > _ORPHAN_SECONDS and service.has_left_over():
                self.orphans += 1
                service.end()

    def warm_up(self) -> None:
        """Wait until a version that has learned decides: then all that decides is compiled."""
        caller = Caller(self.stage.port)

        def has_learned() -> bool:
            status = caller.ask("/v1/status")
            return status is not None and status.content["version"] > 0

        wait_for(has_learned, seconds=300.0, what="a version that has learned", step=0.1)
        caller.close()

    def let_learn(self) -> None:
        """Leave service and learner alone until they have a version more."""
        before = self.stage.store.next_version()

        def has_learned() -> bool:
            current = self.stage.store.current()
            return current is not None and current.version >= before

        try:
            wait_for(has_learned, seconds=_PATIENCE_SECONDS, what="a version after the last kill")
        except ServiceUnavailable as error:
            state = self.stage.learner_state()
            raise ServiceUnavailable(
                f"{error} The learner says: {state}. {self.service.last_output()}"
            ) from error

    def end(self) -> None:
        """End whatever still runs."""
        for service in self._services:
            service.end()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


# -- what was lost


def _judged(
    stage: Stage, crowd: list[Visitor], shots: _Shots, *, rounds: int, seed: int
) -> KillReport:
    stage.check_log()
    events, snapshots = stage.events(), stage.store.list()
    rewards: Rewards = sum((visitor.rewards for visitor in crowd), Counter())
    return KillReport(
        rounds=rounds,
        seed=seed,
        kills=dict(sorted(shots.kills.items())),
        restarts=len(shots.restarts),
        slowest_restart_seconds=round(max(shots.restarts), 3),
        decisions=sum(len(visitor.answers) for visitor in crowd),
        rewards=rewards.total(),
        broken=sum(visitor.broken for visitor in crowd),
        asked_again=sum(visitor.asked_again for visitor in crowd),
        lost_decisions=sum(lost_decisions(it.asked, it.answers, events) for it in crowd),
        lost_rewards=lost_rewards(rewards, events),
        other_answers=sum(visitor.other_answers for visitor in crowd),
        odd_answers=sum(len(visitor.odd) for visitor in crowd),
        orphans=shots.orphans,
        versions=len(snapshots),
        learned=snapshots[-1].cut.interactions,
        faults=[odd for visitor in crowd for odd in visitor.odd][:3]
        + lineage_faults(snapshots, events)
        + history_faults(snapshots[-1], events),
        workers=shots.workers,
        minutes=round(shots.minutes, 2),
        slowest_recovery_seconds=round(max(shots.recoveries, default=0.0), 3),
    )


# -- the command


@click.command("kills")
@click.option("--rounds", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--arms", type=click.IntRange(min=2), default=1_000, show_default=True)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def kills_command(rounds: int, seed: int, arms: int, workers: int, as_json: bool) -> None:
    """Kill processes of a service at random moments under load; look for what was lost.

    Ends with 1 if anything was lost or learned twice, a restart took more than 2 seconds, or there
    was less than a version a minute.
    """
    with progress_bar("Kills") as progress:
        report = kill_rounds(rounds, seed=seed, arms=arms, workers=workers, progress=progress)
    end_with_report(
        report,
        {**asdict(report), "versions_per_minute": round(report.versions_per_minute, 2)},
        as_json=as_json,
        show=_show,
        is_met=report.is_whole and report.is_prompt,
    )


def _show(report: KillReport) -> None:
    hits = ", ".join(f"{count:,} of the {name}" for name, count in report.kills.items())
    click.echo(f"{report.rounds:,} rounds of kill -9: {hits}")
    click.echo(
        f"{report.decisions:,} acknowledged decisions, {report.lost_decisions:,} lost; "
        f"{report.rewards:,} acknowledged rewards, {report.lost_rewards:,} lost"
    )
    click.echo(f"{report.asked_again:,} asked again, {report.other_answers:,} answered differently")
    click.echo(f"{report.odd_answers:,} odd answers, {report.orphans:,} orphaned learners")
    click.echo(
        f"{report.versions:,} versions in {report.minutes:.1f} minutes, "
        f"{report.learned:,} interactions learned"
    )
    click.echo(
        f"slowest restart: {report.slowest_restart_seconds:.2f} s; of a worker or writer: "
        f"{report.slowest_recovery_seconds:.2f} s"
    )
    for fault in report.faults:
        click.echo(f"fault: {fault}")
