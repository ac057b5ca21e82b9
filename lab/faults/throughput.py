"""How many decisions a second a service makes and remembers, and what HTTP around it costs.

Loads are sent in alternation to the service, its log durable, and to a bare handler behind the same
server, so that both meet the same moments of this machine.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, Event, Outcome, RewardCame
from fastbandit.storage.sqlite_log import SqliteLog
from lab.faults.ending import end_with_report
from lab.faults.load import Answers, Load, load_from_process
from lab.faults.stage import HOST, Caller, Stage, free_port, running, set_stage, wait_for

PER_SECOND, P99_MS, ADDED_US = 5_000.0, 15.0, 100.0
_CONNECTIONS = (8, 16, 32)
_RATE = 5_000.0
_DIM = 8
TRAINED: Mapping[str, Any] = {"select.preset": "default"}
"""Settings with which a service learns as it does in earnest."""


@dataclass(frozen=True)
class Measured:
    """Loads of one kind: the median of their rounds, and the bare handler's under the same."""

    name: str
    per_second: float
    p50_ms: float
    p99_ms: float
    bare_per_second: float
    bare_p99_ms: float
    failed: int

    @property
    def ratio(self) -> float:
        """The share of the bare handler's answers that the service gives."""
        return self.per_second / self.bare_per_second if self.bare_per_second else 0.0


@dataclass(frozen=True)
class ThroughputReport:
    """What a service with so many arms reaches; `added_us` is what its route adds to a choice."""

    arms: int
    seconds: float
    loads: tuple[Measured, ...]
    choose_us: float
    added_us: float

    @property
    def best(self) -> Measured:
        """The load with the most answers among those that are quick enough, else among all."""
        quick = [one for one in self.loads if one.p99_ms <= P99_MS]
        return max(quick or self.loads, key=lambda one: one.per_second)

    @property
    def is_enough(self) -> bool:
        """Whether all bars are met."""
        best, failed = self.best, sum(one.failed for one in self.loads)
        is_quick = best.per_second >= PER_SECOND and best.p99_ms <= P99_MS
        return is_quick and self.added_us <= ADDED_US and failed == 0


def throughput(
    arms: int,
    *,
    seconds: float = 10.0,
    rounds: int = 3,
    settings: Mapping[str, Any] = TRAINED,
    progress: Progress = silent,
) -> ThroughputReport:
    """Measure a service of so many arms; all loads of one kind take `seconds`."""
    with tempfile.TemporaryDirectory() as home:
        stage = trained_stage(Path(home), arms, settings)
        choose_us, added_us = added_time(stage)
        with running(stage, "--no-learner") as service, _bare_handler(stage) as bare:
            ports = (service.stage.port, bare)
            plans = [(f"{n} connections", Load(0, 0, connections=n)) for n in _CONNECTIONS]
            plans.append((f"{_RATE:,.0f} a second", Load(0, 0, connections=64, rate=_RATE)))
            loads = []
            for number, (name, plan) in enumerate(plans):
                plan = msgspec.structs.replace(plan, seconds=seconds / rounds, features=_DIM)
                loads.append(_measured(name, plan, ports, rounds=rounds))
                progress(number + 1, len(plans), "loads")
    return ThroughputReport(arms, seconds, tuple(loads), choose_us, added_us)


def _measured(name: str, plan: Load, ports: tuple[int, int], *, rounds: int) -> Measured:
    """Send a load to both in alternation."""
    found: tuple[list[Answers], list[Answers]] = ([], [])
    for _ in range(rounds):
        for port, answers in zip(ports, found, strict=True):
            answers.append(load_from_process(msgspec.structs.replace(plan, port=port)))
    own, bare = found
    return Measured(
        name,
        median(one.good_per_second for one in own),
        median(one.p50_ms for one in own),
        median(one.p99_ms for one in own),
        median(one.good_per_second for one in bare),
        median(one.p99_ms for one in bare),
        sum(sum(one.statuses.values()) - one.statuses.get("200", 0) + one.broken for one in own),
    )


# -- a service that has learned


def trained_stage(
    home: Path, arms: int, settings: Mapping[str, Any], *, rounds: int = 1_000
) -> Stage:
    """Set up a service of so many arms, which has learned from so many rewards."""
    stage = set_stage(home, Synthetic("h3", _DIM, arms), settings)
    train(stage, rounds=rounds)
    return stage


def train(stage: Stage, *, rounds: int) -> None:
    """Let a service that is not running learn once, from so many random choices."""
    _write_interactions(stage, rounds)
    learn_once(stage, rounds=rounds)


def learn_once(stage: Stage, *, rounds: int) -> None:
    """Let a service that is not running learn once from its log of so many rewards."""
    from fastbandit.learning.learner import Learner

    learn = replace(stage.config.learn, fresh=rounds, growth=0.0, held_out=0.0)
    step = Learner(replace(stage.config, learn=learn)).step()
    if step.did != "published":
        raise ServiceUnavailable(
            f"A campaign needs a service that has learned: the learner {step.did} ({step.reason}). "
            f"Try other settings."
        )


def _write_interactions(stage: Stage, rounds: int) -> None:
    """Write decisions that any arm could have been chosen in, and their rewards."""
    snapshot = stage.store.current()
    assert snapshot is not None
    contexts = stage.environment.contexts(0, rounds)
    decision = FrozenBandit.load(snapshot.frozen).select(contexts)
    rewards = stage.environment.observed(0, decision.rows[:, 0]).tolist()
    events: list[Event] = []
    for number, (context, arm) in enumerate(zip(contexts.tolist(), decision.arms, strict=True)):
        seed = int(decision.seeds[number]) >> 1
        made = DecisionMade(f"training-{number}", context, [arm], [0.0], seed, 0, 0, wait=10**9)
        events += [made, RewardCame(made.id, rewards[number])]
    log = SqliteLog(stage.data / LOG_FILE)
    log.append(events)
    log.close()


# -- a handler that does nothing


@contextmanager
def _bare_handler(stage: Stage) -> Iterator[int]:
    """Run a handler that reads the body and says always the same; return its port."""
    port, caller = free_port(), Caller(stage.port)
    context = stage.environment.contexts(0, 1)[0].tolist()
    reply = caller.ask("/v1/select", {"context": context})
    caller.close()
    assert reply is not None
    command = [sys.executable, "-m", "lab.faults.throughput"]
    command += [str(stage.home / "fastbandit.toml"), str(port), json.dumps(reply.content)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: _is_answered(port), seconds=60.0, what="a bare handler")
        yield port
    finally:
        process.kill()
        process.wait()


def _is_answered(port: int) -> bool:
    caller = Caller(port)
    try:
        return caller.ask("/v1/select", {}) is not None
    finally:
        caller.close()


class _Bare:
    """An ASGI application that reads a body and answers, in the place of a service's."""

    def __init__(self, app: Any, body: bytes) -> None:
        self.capacity, self.service, self._body = app.capacity, app.service, body
        self.arrivals, self.admit = app.arrivals, app.admit
        self._headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})

    async def start(self) -> None:
        """Start nothing: the service's folder belongs to another process."""

    async def stop(self) -> None:
        """Stop nothing."""


def main() -> None:
    """Serve a bare handler: the arguments are a config file, a port and what to say."""
    from fastbandit.serving.server import make_server
    from fastbandit.serving.service import Service
    from fastbandit.settings.service_files import read_config

    config = read_config(Path(sys.argv[1]), environ={}, overrides={"server.port": int(sys.argv[2])})
    server = make_server(config, Service(config))
    bare: Any = _Bare(server.config.app, sys.argv[3].encode())
    server.config.app = server.service = bare
    server.run()


# -- what the route adds to a choice


class _Memory:
    """Takes events and keeps nothing, at once."""

    trouble = None
    waiting = 0

    def submit(self, events: Sequence[Event]) -> Any:
        written: Any = asyncio.get_running_loop().create_future()
        written.set_result([Outcome(1, "written")] * len(events))
        return written


def added_time(stage: Stage, *, runs: int = 30, count: int = 100) -> tuple[float, float]:
    """Return the time of a choice, and what the route adds: µs, medians of alternating runs.

    The application is called in this process, without sockets, with a log that does nothing.
    """
    return asyncio.run(_added_time(stage, runs, count))


async def _added_time(stage: Stage, runs: int, count: int) -> tuple[float, float]:
    from fastbandit.serving.app import App
    from fastbandit.serving.keys import KeyRing
    from fastbandit.serving.service import Service

    snapshot = stage.store.current()
    assert snapshot is not None
    bandit, service = FrozenBandit.load(snapshot.frozen), Service(stage.config)
    service.decider.publish(bandit, catalogue=0)
    service.writer = _Memory()  # type: ignore[assignment]
    app = App(service, KeyRing(is_open=True))
    contexts: list[list[float]] = stage.environment.contexts(10_000, count).astype(float).tolist()
    bodies = [msgspec.json.encode({"context": one}) for one in contexts]
    choices, routes = [], []
    for run in range(runs + 2):
        choice = _time_choices(bandit, contexts)
        route = await _time_route(app, bodies)
        if run >= 2:  # before, things are compiled and cached
            choices.append(choice)
            routes.append(route)
    added = np.array(routes) - np.array(choices)
    return float(np.median(choices)), float(np.median(added))


def _time_choices(bandit: FrozenBandit, contexts: list[list[float]]) -> float:
    began = time.perf_counter()
    for seed, context in enumerate(contexts):
        bandit.select_one(context, seed=seed)
    return (time.perf_counter() - began) / len(contexts) * 1e6


async def _time_route(app: Any, bodies: list[bytes]) -> float:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/select",
        "query_string": b"",
        "headers": [(b"host", HOST.encode()), (b"content-type", b"application/json")],
    }
    statuses = []

    async def send(message: dict[str, Any]) -> None:
        if "status" in message:
            statuses.append(message["status"])

    began = time.perf_counter()
    for body in bodies:
        message = {"type": "http.request", "body": body}

        async def receive(message: dict[str, Any] = message) -> dict[str, Any]:
            return message

        await app(scope, receive, send)
    taken = time.perf_counter() - began
    if set(statuses) != {200}:
        raise ServiceUnavailable(f"The route needs to answer 200: got {sorted(set(statuses))}.")
    return taken / len(bodies) * 1e6


# -- the command


@click.command("throughput")
@click.option("--arms", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=10.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def throughput_command(arms: int, seconds: float, as_json: bool) -> None:
    """Measure decisions a second, their times, and the share of a bare handler's.

    Ends with 1 below 5,000 a second, above 15 ms for the slowest in a hundred, or where the
    route adds over 100 microseconds to a choice.
    """
    with progress_bar("Throughput") as progress:
        report = throughput(arms, seconds=seconds, progress=progress)
    ratios = {one.name: round(one.ratio, 3) for one in report.loads}
    end_with_report(
        report,
        {**asdict(report), "ratios": ratios},
        as_json=as_json,
        show=_show,
        is_met=report.is_enough,
    )


def _show(report: ThroughputReport) -> None:
    click.echo(f"{report.arms:,} arms, log durable, load from beside it")
    for one in report.loads:
        click.echo(
            f"{one.name:>16}: {one.per_second:8,.0f} decisions/s, p50 {one.p50_ms:.1f} ms, "
            f"p99 {one.p99_ms:.1f} ms; {one.ratio:.2f} of a bare handler's "
            f"{one.bare_per_second:,.0f}/s; {one.failed} failed"
        )
    click.echo(f"a choice takes {report.choose_us:.0f} µs, the route adds {report.added_us:.0f} µs")


if __name__ == "__main__":
    main()
