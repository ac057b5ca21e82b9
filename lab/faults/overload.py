"""Five times as many requests as a service can answer: it answers about as many as ever.

The others are refused at once and may retry, rewards are taken meanwhile, and memory stays as it
is. Peak and overload are measured in alternation, so that both meet the same moments of this
machine: first on cores that the load shares with the service, where what it takes to send five
times as much is the service's loss, then with a core for the load alone.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec
import numpy as np

from fastbandit.progress import Progress, progress_bar, silent
from lab.faults.ending import end_with_report
from lab.faults.load import Answers, Load, load_from_process
from lab.faults.meanwhile import meanwhile
from lab.faults.pinning import cores_apart, on_cores
from lab.faults.stage import Caller, Running, Stage, running
from lab.faults.throughput import TRAINED, trained_stage

FACTOR = 5.0
GOODPUT, REFUSED_MS, GROWTH_BYTES = 0.85, 100.0, 128 * 2**20
_MANY = 32  # contexts in a request
_DIM = 8
_APART = {False: "all cores for all", True: "a core for the load alone"}
_REWARD_SECONDS = 0.05


@dataclass(frozen=True)
class Pressed:
    """Requests of so many contexts at the peak, and under overload: medians of the rounds.

    Rates are of contexts answered with 200. `asked` is the rate of requests that was due,
    `sent` the one that was reached: the rest found all connections waiting for an answer. The load
    is `apart` where it has a core that the service does not use.
    """

    apart: bool
    contexts: int
    peak: float
    goodput: float
    asked: float
    sent: float
    refused: float
    p99_ms: float
    refused_p99_ms: float
    failed: int
    blunt: int

    @property
    def share(self) -> float:
        """The share of the peak that is still answered."""
        return self.goodput / self.peak if self.peak else 0.0


@dataclass(frozen=True)
class OverloadReport:
    """What a service does under too much load.

    `rewards` counts the answers to rewards sent meanwhile, by status. `visitor_refused_p99_ms` is
    of selects that one visitor sent meanwhile over a connection of its own, from a process that had
    nothing else to do: the times of the load are those of a process that is busy, too. Memory is in
    bytes: before, and the most that was seen.
    """

    arms: int
    pressed: tuple[Pressed, ...]
    rewards: dict[str, int]
    visitor_refused_p99_ms: float
    rss_before: int
    rss_most: int

    @property
    def is_bearable(self) -> bool:
        """Whether all bars are met."""
        return all(
            one.share >= GOODPUT
            and one.refused_p99_ms <= REFUSED_MS
            and one.failed == one.blunt == 0
            for one in self.pressed
        ) and (self.takes_rewards and self.rss_most - self.rss_before <= GROWTH_BYTES)

    @property
    def takes_rewards(self) -> bool:
        """Whether each reward that was sent was taken."""
        return set(self.rewards) == {"200"}


@dataclass
class _Watched:
    """What is seen beside the load."""

    rewards: Counter[str] = field(default_factory=Counter)
    refused_ms: list[float] = field(default_factory=list)
    rss_most: int = 0


def overload(
    arms: int,
    *,
    seconds: float = 5.0,
    rounds: int = 3,
    connections: int = 512,
    settings: Mapping[str, Any] = TRAINED,
    progress: Progress = silent,
) -> OverloadReport:
    """Press a service of so many arms, with requests of one context and of many."""
    watched, pressed, before = _Watched(), list[Pressed](), 0
    ways = [False] + [True] * (cores_apart() is not None)
    with tempfile.TemporaryDirectory() as home:
        stage = trained_stage(Path(home), arms, settings)
        load = Load(stage.port, seconds, features=_DIM)
        for apart in ways:
            with _running(stage, apart=apart) as service:
                load_from_process(msgspec.structs.replace(load, seconds=1.0))  # all is warm then
                before = before or service.memory()["rss"]
                for contexts in (1, _MANY):
                    plan, found = msgspec.structs.replace(load, contexts=contexts), []
                    for number in range(rounds):
                        found.append(_press(plan, service, watched, connections=connections))
                        done = len(pressed) * rounds + number + 1
                        progress(done, 2 * len(ways) * rounds, "overload")
                    pressed.append(_together(contexts, found, apart=apart))
    refused = float(np.percentile(watched.refused_ms, 99)) if watched.refused_ms else 0.0
    rewards, most = dict(watched.rewards), watched.rss_most
    return OverloadReport(arms, tuple(pressed), rewards, refused, before, most)


@contextmanager
def _running(stage: Stage, *, apart: bool) -> Iterator[Running]:
    """Run a service; what else is started meanwhile gets a core of its own, if it is `apart`."""
    own, others = (cores_apart() if apart else None) or (None, None)
    with on_cores(own), running(stage, "--no-learner") as service, on_cores(others):
        yield service


def _press(
    plan: Load, service: Running, watched: _Watched, *, connections: int
) -> tuple[Answers, Answers]:
    """Measure the peak, then send five times as many."""
    at_peak = 64 if plan.contexts == 1 else 16
    peak = load_from_process(msgspec.structs.replace(plan, connections=at_peak))
    rate = max(1.0, FACTOR * peak.good_per_second)
    with _watching(service, watched):
        over = msgspec.structs.replace(plan, connections=connections, rate=rate)
        return peak, load_from_process(over)


def _together(contexts: int, found: list[tuple[Answers, Answers]], *, apart: bool) -> Pressed:
    """Put the rounds into one row; the share is that of the median round."""
    ordered = sorted(found, key=lambda one: one[1].good_per_second / one[0].good_per_second)
    peak, over = ordered[(len(ordered) - 1) // 2]
    overs = [one for _, one in found]
    return Pressed(
        apart=apart,
        contexts=contexts,
        peak=contexts * peak.good_per_second,
        goodput=contexts * over.good_per_second,
        asked=FACTOR * peak.good_per_second,
        sent=over.sent_per_second,
        refused=over.statuses.get("503", 0) / over.seconds,
        p99_ms=median(one.p99_ms for one in overs),
        refused_p99_ms=median(one.refused_p99_ms for one in overs),
        failed=sum(_failed(one) for phases in found for one in phases),
        blunt=sum(one.blunt for one in overs),
    )


def _failed(answers: Answers) -> int:
    """Count what was neither answered nor refused."""
    known = answers.statuses.get("200", 0) + answers.statuses.get("503", 0)
    return sum(answers.statuses.values()) - known + answers.broken


# -- beside the load


def _watching(service: Running, watched: _Watched) -> AbstractContextManager[None]:
    """Send a select and a reward now and then, and look at the memory of the service."""

    def watch(caller: Caller) -> None:
        watched.rss_most = max(watched.rss_most, service.memory()["rss"])
        began = time.perf_counter()
        selected = caller.ask("/v1/select", {"context": [0.0] * _DIM})
        if selected is not None and selected.status == 503:
            watched.refused_ms.append(1e3 * (time.perf_counter() - began))
        number = sum(watched.rewards.values())
        reward = {"decision": "training-0", "value": 1.0, "part": str(number)}
        reply = caller.ask("/v1/reward", {"rewards": [reward]})
        watched.rewards["none" if reply is None else str(reply.status)] += 1

    return meanwhile(service.stage.port, watch, pause=_REWARD_SECONDS, seconds=30.0)


# -- the command


@click.command("overload")
@click.option("--arms", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="How long each load takes; there are 24, 12 on one core.",
)
@click.option("--connections", type=click.IntRange(min=1), default=512, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def overload_command(arms: int, seconds: float, connections: int, as_json: bool) -> None:
    """Send five times the requests that a service can answer, and see what it still does.

    Ends with 1 if it answers under 85 % of its peak, refuses slowly or without Retry-After,
    misses a reward, or takes much more memory.
    """
    with progress_bar("Overload") as progress:
        report = overload(arms, seconds=seconds, connections=connections, progress=progress)
    shares = [round(one.share, 3) for one in report.pressed]
    end_with_report(
        report,
        {**asdict(report), "shares": shares},
        as_json=as_json,
        show=_show,
        is_met=report.is_bearable,
    )


def _show(report: OverloadReport) -> None:
    click.echo(f"{report.arms:,} arms, log durable, load from beside it")
    for one in report.pressed:
        click.echo(
            f"{one.contexts} contexts each, {_APART[one.apart]}: {one.goodput:,.0f} answered a "
            f"second of {one.peak:,.0f} at the peak ({one.share:.0%}), p99 {one.p99_ms:.0f} ms"
        )
        click.echo(
            f"  {one.asked:,.0f} requests a second due, {one.sent:,.0f} sent; {one.refused:,.0f} "
            f"refused, p99 {one.refused_p99_ms:.0f} ms; {one.blunt} without Retry-After, "
            f"{one.failed} failed"
        )
    rewards = ", ".join(f"{status}: {count}" for status, count in sorted(report.rewards.items()))
    click.echo(f"rewards meanwhile, by status: {rewards or 'none'}")
    click.echo(f"one visitor beside the load: refused, p99 {report.visitor_refused_p99_ms:.0f} ms")
    before, most = report.rss_before / 2**20, report.rss_most / 2**20
    click.echo(f"memory: {before:.0f} MiB before, at most {most:.0f} MiB")
