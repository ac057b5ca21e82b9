"""The largest requests that a service permits, one after the other: others hardly notice.

Each kind is sent over one connection as fast as answers come, beside ordinary selects that come on
a schedule. Those are timed with it and without it in alternation, so that both meet the same
moments of this machine.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec
import numpy as np

from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.serving.schemas import MOST_CONTEXTS, MOST_OFFERED, MOST_REWARDS
from fastbandit.settings.limits import LimitsConfig
from lab.faults.ending import end_with_report
from lab.faults.load import Answers, Load, load_from_process
from lab.faults.meanwhile import meanwhile
from lab.faults.stage import Caller, Running, running
from lab.faults.throughput import TRAINED, trained_stage

SLOWER, GROWTH_BYTES = 3.0, 100 * 2**20
_DIM = 8


@dataclass(frozen=True)
class Beside:
    """Ordinary selects beside one kind of large requests: medians of the rounds, in milliseconds.

    `answers` counts the answers to the large ones, by status.
    """

    name: str
    bytes: int
    answers: dict[str, int]
    steady_p99_ms: float
    p99_ms: float
    failed: int
    grown_bytes: int

    @property
    def slower(self) -> float:
        """How many times as long others take."""
        return self.p99_ms / self.steady_p99_ms if self.steady_p99_ms else 0.0


@dataclass(frozen=True)
class WorstReport:
    """What others notice of the largest requests."""

    arms: int
    rate: float
    kinds: tuple[Beside, ...]

    @property
    def is_bearable(self) -> bool:
        """Whether all bars are met."""
        return all(
            one.slower <= SLOWER
            and one.grown_bytes <= GROWTH_BYTES
            and one.failed == 0
            and set(one.answers) == {"200"}
            for one in self.kinds
        )


@dataclass
class _Watched:
    """What came of the large requests."""

    answers: Counter[str] = field(default_factory=Counter)
    rss_most: int = 0


def worst_request(
    arms: int,
    *,
    seconds: float = 4.0,
    rounds: int = 3,
    rate: float = 500.0,
    settings: Mapping[str, Any] = TRAINED,
    progress: Progress = silent,
) -> WorstReport:
    """Send each kind of the largest requests to a service of so many arms."""
    found = []
    with tempfile.TemporaryDirectory() as home:
        stage = trained_stage(Path(home), arms, settings)
        with running(stage, "--no-learner") as service:
            load = Load(stage.port, seconds, connections=32, rate=rate, features=_DIM)
            load_from_process(msgspec.structs.replace(load, seconds=1.0))  # all is warm then
            kinds = [*largest(arms, stage.config.limits)]
            for number, (name, path, content) in enumerate(kinds):
                found.append(_beside(service, load, name, (path, content), rounds=rounds))
                progress(number + 1, len(kinds), name)
    return WorstReport(arms, rate, tuple(found))


def largest(arms: int, limits: LimitsConfig) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return a name, a path and a body for each kind: as large as the limits permit."""
    rng = np.random.default_rng(0)
    most = min(limits.contexts, MOST_CONTEXTS)
    contexts = rng.normal(size=(most, _DIM)).round(4).tolist()
    few = min(arms, limits.eligible // most)
    many = min(arms, limits.eligible, limits.body_bytes // (len(str(arms)) + 2))
    offered = [{"id": n} for n in range(10 * MOST_OFFERED // most)]
    select, listed = "/v1/select", list(range(many))
    yield "a long list", select, {"context": contexts[0], "eligible": listed}
    yield "lists × contexts", select, {"contexts": contexts, "eligible": listed[:few]}
    yield "arms × contexts", select, {"contexts": contexts, "arms": offered}
    k = limits.interactions // most
    yield "contexts × k", select, {"contexts": contexts, "k": k}
    yield "propensities", select, {"contexts": contexts, "propensity": True}
    count = min(limits.rewards, MOST_REWARDS)
    rewards = [{"decision": f"nobody-{n}", "value": 1.0} for n in range(count)]
    yield "rewards", "/v1/reward", {"rewards": rewards}


def _beside(
    service: Running, load: Load, name: str, large: tuple[str, Any], *, rounds: int
) -> Beside:
    """Time ordinary selects without and with large requests."""
    watched, before = _Watched(), service.memory()["rss"]
    steady, beside = list[Answers](), list[Answers]()
    for _ in range(rounds):
        steady.append(load_from_process(load))
        with _sending(service, large, watched):
            beside.append(load_from_process(load))
    return Beside(
        name,
        len(msgspec.json.encode(large[1])),
        dict(watched.answers),
        median(one.p99_ms for one in steady),
        median(one.p99_ms for one in beside),
        sum(sum(one.statuses.values()) - one.statuses.get("200", 0) for one in beside),
        watched.rss_most - before,
    )


def _sending(
    service: Running, large: tuple[str, Any], watched: _Watched
) -> AbstractContextManager[None]:
    """Send large requests, one after the other."""

    def send(caller: Caller) -> None:
        reply = caller.ask(*large)
        watched.answers["none" if reply is None else str(reply.status)] += 1
        watched.rss_most = max(watched.rss_most, service.memory()["rss"])

    return meanwhile(service.stage.port, send)


# -- the command


@click.command("worst-request")
@click.option("--arms", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=4.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--rate", type=click.FloatRange(min=1.0), default=500.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def worst_request_command(
    arms: int, seconds: float, rounds: int, rate: float, as_json: bool
) -> None:
    """Send the largest requests that are permitted, and time ordinary ones beside them.

    Ends with 1 if the others' p99 is over 3 times as long, or memory grows by over 100 MiB.
    """
    with progress_bar("Worst requests") as progress:
        report = worst_request(arms, seconds=seconds, rounds=rounds, rate=rate, progress=progress)
    slower = {one.name: round(one.slower, 2) for one in report.kinds}
    end_with_report(
        report,
        {**asdict(report), "slower": slower},
        as_json=as_json,
        show=_show,
        is_met=report.is_bearable,
    )


def _show(report: WorstReport) -> None:
    click.echo(f"{report.arms:,} arms, {report.rate:,.0f} ordinary selects a second")
    for one in report.kinds:
        answers = ", ".join(f"{count} × {status}" for status, count in one.answers.items())
        click.echo(
            f"{one.name} ({one.bytes / 2**10:,.0f} KiB): {answers}; others' p99 "
            f"{one.p99_ms:.1f} ms of {one.steady_p99_ms:.1f} ms = {one.slower:.2f}, "
            f"{one.failed} failed; {one.grown_bytes / 2**20:+.0f} MiB"
        )
