"""Learning end to end: rewards that come late and out of order over HTTP, against a plain loop.

The service is asked by visitors of a synthetic environment, and its learner learns as rewards come.
Beside it a Bandit in this process, with the same settings, meets the same visitors under the
same seeds, and learns after as many rounds. What differs is the way of the rewards alone.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.errors import ServiceUnavailable
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.serving.decider import Decider
from lab.experiments.datasets.synthetic import SyntheticRounds
from lab.faults.ending import end_with_report
from lab.faults.stage import Caller, Running, Stage, running, set_stage, wait_for

BAR = 0.03
_TOGETHER = 10  # visitors who come at the same moment
_LEARNING_SECONDS = 600.0


@dataclass(frozen=True)
class Visits:
    """How many rounds there are, after how many rewards is learned, how late rewards can be."""

    rounds: int = 5_000
    fresh: int = 500
    latest: int = 100


@dataclass(frozen=True)
class SeedResult:
    """Expected rewards as shares of the best possible, with one seed; `versions` were made."""

    seed: int
    service: float
    in_process: float
    versions: int
    out_of_order: int

    @property
    def ratio(self) -> float:
        """The service's reward, where the loop's is 1."""
        return self.service / self.in_process


@dataclass(frozen=True)
class DelayedReport:
    """What a service earned that learned from late rewards, and what a plain loop earned."""

    arms: int
    visits: Visits
    results: tuple[SeedResult, ...]

    @property
    def ratio(self) -> float:
        """The service's reward over all seeds, where the loop's is 1."""
        service = sum(one.service for one in self.results)
        return service / sum(one.in_process for one in self.results)

    @property
    def is_close(self) -> bool:
        """Whether the service earned as much, but for a few percent."""
        return self.ratio >= 1 - BAR


def compare(
    environment: SyntheticRounds,
    home: Path,
    visits: Visits,
    *,
    seed: int,
    preset: str = "default",
    progress: Progress = silent,
) -> SeedResult:
    """Let a service and a plain loop meet the same visitors, and return what both earned."""
    settings = {
        "select.seed": seed,
        "reward.wait_seconds": 86_400.0,
        "learn.fresh": visits.fresh,
        "learn.growth": 0.0,
        "learn.seconds": 1e9,
        "learn.held_out": 0.0,
        "learn.delta_seconds": 0.0,  # the loop beside it learns at versions alone
    }
    own = {} if preset == "little" else {"select.preset": preset}
    stage = set_stage(home, environment, {**settings, **own})
    plain = _loop(stage, visits, progress=progress)
    with running(stage) as service:
        served = _Served(stage, service, visits, seed=seed, progress=progress)
        chosen = served.run()
    best = float(environment.ceiling(0, visits.rounds).mean())
    shares = [float(environment.expected(0, rows).mean()) / best for rows in (chosen, plain)]
    return SeedResult(seed, shares[0], shares[1], served.version, served.out_of_order)


def _loop(stage: Stage, visits: Visits, *, progress: Progress) -> Any:
    """Decide and learn without a service: give the rows chosen, one for each round."""
    from fastbandit.bandit import Bandit

    snapshot = stage.store.current()
    assert snapshot is not None
    bandit, decider, environment = (
        Bandit.load(snapshot.bandit),
        Decider(stage.config),
        stage.environment,
    )
    chosen: list[int] = []
    for first in range(0, visits.rounds, visits.fresh):
        count = min(visits.fresh, visits.rounds - first)
        contexts = environment.contexts(first, count)
        seeds = [decider.seed_of(_id(number)) for number in range(first, first + count)]
        decision = bandit.select(contexts, seeds=np.array(seeds, dtype=np.uint64))
        rows = decision.rows[:, 0]
        chosen += rows.tolist()
        if len(chosen) < visits.rounds:
            rewards = environment.observed(first, rows)
            bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
        progress(len(chosen), 2 * visits.rounds, "in this process")
    return np.array(chosen)


class _Served:
    """Visitors of a service: they come a few at a time, and report their rewards later."""

    def __init__(
        self, stage: Stage, service: Running, visits: Visits, *, seed: int, progress: Progress
    ) -> None:
        self._stage, self._service, self._visits = stage, service, visits
        self._progress = progress
        self._caller = Caller(stage.port, seconds=60.0)
        self._rng = np.random.default_rng(seed)
        self._due: list[tuple[int, int, float]] = []  # when, which round, how much
        self._last_reported = -1
        self._reported = self.version = self.out_of_order = 0

    def run(self) -> Any:
        """Return the rows chosen, one for each round."""
        rounds, chosen = self._visits.rounds, list[int]()
        while len(chosen) < rounds:
            chosen += self._visit(len(chosen), min(_TOGETHER, rounds - len(chosen)))
            if len(chosen) < rounds:
                self._report_rewards(now=len(chosen) - 1)
            self._progress(rounds + len(chosen), 2 * rounds, "over HTTP")
        self._caller.close()
        return np.array(chosen)

    def _visit(self, first: int, count: int) -> list[int]:
        """Ask for an arm for each visitor; their rewards come after a while."""
        environment = self._stage.environment
        contexts = environment.contexts(first, count).tolist()
        ids = [_id(number) for number in range(first, first + count)]
        answer = self._ask("/v1/select", {"contexts": contexts, "ids": ids})
        rows = [int(one["arms"][0]) for one in answer["decisions"]]
        wrong = {one["version"] for one in answer["decisions"]} - {self.version}
        if wrong:
            raise ServiceUnavailable(
                f"The visitors of this round need version {self.version}: got {wrong}. See "
                f"{self._stage.journal}."
            )
        for number, reward in enumerate(
            environment.observed(first, np.array(rows)).tolist(), first
        ):
            delay = int(self._rng.integers(self._visits.latest + 1))
            heappush(self._due, (number + delay, number, reward))
        return rows

    def _report_rewards(self, *, now: int) -> None:
        """Report the rewards that are due; wait for a version each time one is."""
        fresh = self._visits.fresh
        while self._due and self._due[0][0] <= now:
            room = fresh - self._reported % fresh
            due: list[dict[str, Any]] = []
            while self._due and self._due[0][0] <= now and len(due) < room:
                _, number, reward = heappop(self._due)
                due.append({"decision": _id(number), "value": reward})
                self.out_of_order += number < self._last_reported
                self._last_reported = number
            self._report(due)
            self._reported += len(due)
            if self._reported % fresh == 0:
                self.version += 1
                self._wait_for_version()

    def _report(self, rewards: list[dict[str, Any]]) -> None:
        answer = self._ask("/v1/reward", {"rewards": rewards})
        statuses = {one["status"] for one in answer["rewards"]}
        if statuses != {"counted"}:
            raise ServiceUnavailable(
                f"Rewards that come in time need to be counted: they were {sorted(statuses)}. See "
                f"{self._stage.journal}."
            )

    def _wait_for_version(self) -> None:
        def serves() -> bool:
            return bool(self._ask("/v1/status")["version"] == self.version)

        wait_for(serves, seconds=_LEARNING_SECONDS, what=f"version {self.version}")

    def _ask(self, path: str, request: Any = None) -> Any:
        reply = self._caller.ask(path, request)
        if reply is None or reply.status != 200:
            raise ServiceUnavailable(
                f"A visitor needs an answer of {path}: got {reply}. See {self._stage.journal}."
            )
        return reply.content


def _id(number: int) -> str:
    return f"visit-{number}"


def delayed_learning(
    *, arms: int = 10_000, seeds: int = 3, visits: Visits | None = None, progress: Progress = silent
) -> DelayedReport:
    """Compare a service with a plain loop on h2 with each of so many seeds."""
    visits, results = visits or Visits(), []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as home:
            environment = SyntheticRounds("h2", 4, arms, seed=seed)

            def shown(done: int, steps: int, doing: str, seed: int = seed) -> None:
                progress(seed * steps + done, seeds * steps, f"seed {seed}, {doing}")

            results.append(compare(environment, Path(home), visits, seed=seed, progress=shown))
    return DelayedReport(arms, visits, tuple(results))


# -- the command


@click.command("learning")
@click.option("--arms", type=click.IntRange(min=2), default=10_000, show_default=True)
@click.option("--rounds", type=click.IntRange(min=10), default=5_000, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def learning_command(arms: int, rounds: int, seeds: int, as_json: bool) -> None:
    """Let a service learn from late rewards over HTTP, and compare it with a plain loop.

    Ends with 1 if it earns over 3 % less.
    """
    visits = Visits(rounds=rounds, fresh=max(1, rounds // 10), latest=max(1, rounds // 50))
    with progress_bar("Learning") as progress:
        report = delayed_learning(arms=arms, seeds=seeds, visits=visits, progress=progress)
    notes = {**asdict(report), "ratio": report.ratio, "bar": 1 - BAR}
    end_with_report(report, notes, as_json=as_json, show=_show, is_met=report.is_close)


def _show(report: DelayedReport) -> None:
    visits = report.visits
    click.echo(
        f"{visits.rounds:,} rounds of h2 with {report.arms:,} arms; rewards up to "
        f"{visits.latest} rounds late; a version after each {visits.fresh} rewards"
    )
    for one in report.results:
        click.echo(
            f"seed {one.seed}: {one.service:.4f} of the best possible, {one.in_process:.4f} in one "
            f"process: {one.ratio:.4f}; {one.versions} versions, {one.out_of_order:,} out of order"
        )
    click.echo(f"all seeds: {report.ratio:.4f} (at least {1 - BAR:g} is asked for)")
