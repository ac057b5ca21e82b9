"""Generated requests, many of them wrong: each gets an answer that says what to do about it.

They go to the ASGI application of a service in this process, without sockets: those that
schemathesis makes from /openapi.json, and those of odd_requests.py. Garbage that is no HTTP
goes to a service of its own over sockets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.serving.app import App
from fastbandit.serving.keys import KeyRing, create_key
from fastbandit.serving.service import Service
from lab.faults.described import ask_as_described
from lab.faults.ending import end_with_report
from lab.faults.garbage import throw_garbage
from lab.faults.judging import fault_of
from lab.faults.odd_requests import Answer, Asked, OddRequests
from lab.faults.stage import Stage, running, set_stage
from lab.faults.throughput import train

_ARMS, _FEATURES, _MOST_BYTES = 60, 3, 200_000
_TOGETHER = 16
_SHOWN = 20


@dataclass
class RequestsReport:
    """What came back for requests, by their kind and by status, and what was wrong with it.

    `server_errors` counts 5xx other than 503, `tracebacks` errors in the journal, `unfit`
    answers that are not as described or do not say what to do. `failures` shows some.
    """

    seed: int = 0
    requests: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    by_status: Counter[int] = field(default_factory=Counter)
    server_errors: int = 0
    tracebacks: int = 0
    unfit: int = 0
    garbage: int = 0
    events: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether every request got the answer that it should."""
        return self.server_errors == self.tracebacks == self.unfit == 0 and not self.failures

    def notes(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        counts = {"by_kind": dict(self.by_kind), "by_status": dict(self.by_status)}
        return {**vars(self), **counts}

    def take(self, asked: Asked, answer: Answer, fault: str) -> None:
        """Count an answer."""
        self.requests += 1
        self.by_kind[asked.kind] += 1
        self.by_status[answer.status] += 1
        self.server_errors += answer.status >= 500 and answer.status != 503
        self.unfit += bool(fault)
        if fault:
            self.record(f"{fault}: {asked.method} {asked.path!r:.80} {asked.body[:300]!r}", answer)

    def record(self, failure: str, answer: Answer | None = None) -> None:
        """Keep a failure, unless there are many."""
        if len(self.failures) < _SHOWN:
            self.failures.append(
                failure + (f" → {answer.status} {answer.body[:400]!r}" if answer else "")
            )


def generated_requests(
    count: int,
    *,
    described: int = 2_000,
    garbage: int = 200,
    seed: int = 0,
    seconds: float = float("inf"),
    progress: Progress = silent,
) -> RequestsReport:
    """Send `count` requests, so many of them made from the description; then garbage.

    After so many seconds no more are made.
    """
    report, began = RequestsReport(seed=seed), time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        stage = _small_stage(Path(home))
        with _journal(report), asyncio.Runner() as runner:
            trial = _Trial(stage, report, seed=seed)
            runner.run(trial.start())
            if described:
                _ask_as_described(trial, runner, described, seed=seed, progress=progress)
            while report.requests < count and time.monotonic() - began < seconds:
                runner.run(trial.ask_some(min(_TOGETHER, count - report.requests)))
                progress(report.requests, count, "generated requests")
            runner.run(trial.finish())
        report.events = len(stage.events())
        if garbage:
            with running(stage, "--no-learner") as service:
                for failure in throw_garbage(stage.port, garbage, seed=seed):
                    report.record(failure)
                report.garbage = garbage
                if not service.is_alive:
                    report.record("the service ended")
            for line in stage.journal.read_text(encoding="utf-8").splitlines():
                if "Traceback" in line:
                    report.tracebacks += 1
                    report.record(f"journal: {line}")
    report.seconds = round(time.monotonic() - began, 1)
    return report


def _small_stage(home: Path) -> Stage:
    """Set up a service of few arms with columns, which has learned a little."""
    environment = Synthetic("h2", _FEATURES, _ARMS)
    rows = [
        f"a{row},{','.join(map(str, arm))},{row},{'odd' if row % 2 else 'even'},{row % 3 == 0}"
        for row, arm in enumerate(environment.arms.tolist())
    ]
    (home / "arms.csv").write_text("\n".join(["id,x,y,z,price,kind,is_new", *rows]), "utf-8")
    settings = {
        "arms.file": str(home / "arms.csv"),
        "arms.columns": ["price", "kind", "is_new"],
        "server.max_body_bytes": _MOST_BYTES,
        "select.propensity_draws": 20,
    }
    stage = set_stage(home, environment, settings)
    train(stage, rounds=64)
    return stage


class _Trial:
    """A service in this process, asked with and without keys."""

    def __init__(self, stage: Stage, report: RequestsReport, *, seed: int) -> None:
        self.stage, self.report = stage, report
        self.service = Service(stage.config)
        path = stage.home / "keys.json"
        self.key = create_key(path, name="trial", scopes=["reward"])[0].encode()
        self.open = App(self.service, KeyRing(is_open=True))
        self.closed = App(self.service, KeyRing.load(path))
        self.rng = np.random.default_rng(seed)
        self.odd = OddRequests(features=_FEATURES, arms=_ARMS, most_bytes=_MOST_BYTES, rng=self.rng)

    async def start(self) -> None:
        await self.service.start()

    async def ask_some(self, count: int) -> None:
        """Send a few requests at the same time."""
        await asyncio.gather(*(self._ask_one() for _ in range(count)))

    async def ask(self, asked: Asked) -> Answer:
        """Send one request, and judge the answer."""
        answer = await ask(self.open, asked)
        self.report.take(asked, answer, fault_of(asked, answer))
        return answer

    async def finish(self) -> None:
        """See that the service still decides, and let go of it."""
        arms = [
            {"id": f"a{row}", "features": arm, "columns": _COLUMNS}
            for row, arm in enumerate(self.stage.environment.arms.tolist())
        ]
        asked = Asked("valid", "PUT", "/v1/arms", json.dumps({"arms": arms}).encode())
        put = await self.ask(asked)
        context = {"context": [0.1] * _FEATURES, "k": 3}
        made = await self.ask(Asked("valid", "POST", "/v1/select", json.dumps(context).encode()))
        if put.status != 200 or made.status != 200:
            self.report.record("the service does not decide any more", made)
        await self.service.stop()

    async def _ask_one(self) -> None:
        asked = self.odd.draw()
        if self.rng.random() < 0.05:
            await self._ask_with_key(asked)
            return
        answer = await self.ask(asked)
        if answer.status == 200 and asked.path == "/v1/select":
            decided = json.loads(answer.body)
            for one in decided.get("decisions", [decided]):
                self.odd.saw(one["decision"])

    async def _ask_with_key(self, asked: Asked) -> None:
        """Ask the service that wants keys, with one for rewards alone or without any."""
        if self.rng.random() < 0.5:
            given = (*asked.headers, (b"authorization", b"Bearer " + self.key))
            asked = replace(asked, headers=given)
        answer = await ask(self.closed, asked)
        self.report.take(asked, answer, fault_of(asked, answer))


_COLUMNS = {"price": 1.0, "kind": "odd", "is_new": False}


async def ask(app: Callable[..., Awaitable[None]], asked: Asked) -> Answer:
    """Send a request to an ASGI application in this process."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": asked.path,
        "raw_path": asked.path.encode("utf-8", "surrogatepass"),
        "query_string": asked.query,
        "root_path": "",
        "headers": list(asked.headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    messages, sent = _messages(asked), []

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], headers, body)


def _messages(asked: Asked) -> Iterator[dict[str, Any]]:
    """Return a body in its pieces; without the last where it is cut off."""
    size = -(-len(asked.body) // asked.pieces) or 1
    parts = [asked.body[at : at + size] for at in range(0, len(asked.body), size)] or [b""]
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if is_last and asked.is_cut_off:
            return
        yield {"type": "http.request", "body": part, "more_body": not is_last}


def _ask_as_described(
    trial: _Trial, runner: asyncio.Runner, count: int, *, seed: int, progress: Progress
) -> None:
    """Send requests made from what the service says of its interface."""
    description = runner.run(ask(trial.open, Asked("valid", "GET", "/openapi.json"))).body

    def send(asked: Asked) -> Answer:
        progress(trial.report.requests, count, "requests as described")
        return runner.run(trial.ask(asked))

    def record(failure: str, answer: Answer) -> None:
        trial.report.unfit += 1
        trial.report.record(failure, answer)

    ask_as_described(json.loads(description), count, seed=seed, send=send, record=record)


# -- the journal


@contextmanager
def _journal(report: RequestsReport) -> Iterator[None]:
    """Count what is logged as an error, and threads that end with one."""

    class Counting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            report.tracebacks += 1
            report.record(f"journal: {self.format(record)}")

    def ended(thread: threading.ExceptHookArgs) -> None:
        report.tracebacks += 1
        report.record(f"a thread ended: {thread.exc_value!r}")

    handler, logger, before = Counting(logging.ERROR), logging.getLogger(), threading.excepthook
    logger.addHandler(handler)
    threading.excepthook = ended
    try:
        yield
    finally:
        threading.excepthook = before
        logger.removeHandler(handler)


# -- the command


@click.command("requests")
@click.option("--requests", "count", type=click.IntRange(min=1), default=50_000, show_default=True)
@click.option(
    "--described",
    type=click.IntRange(min=0),
    default=2_000,
    show_default=True,
    help="How many of them schemathesis makes from /openapi.json.",
)
@click.option(
    "--garbage",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    help="Connections that send what is no HTTP.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=1e9, help="Make no more after so long."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def requests_command(
    count: int, described: int, garbage: int, *, seed: int, seconds: float, as_json: bool
) -> None:
    """Send generated requests, most of them wrong, and judge every answer.

    Ends with 1 if any was a server error, left a traceback, or did not say what to do.
    """
    with progress_bar("Requests") as progress:
        report = generated_requests(
            count,
            described=described,
            garbage=garbage,
            seed=seed,
            seconds=seconds,
            progress=progress,
        )
    end_with_report(report, report.notes(), as_json=as_json, show=_show, is_met=report.is_sound)


def _show(report: RequestsReport) -> None:
    kinds = ", ".join(f"{name} {count:,}" for name, count in report.by_kind.most_common())
    statuses = ", ".join(f"{status}: {n:,}" for status, n in sorted(report.by_status.items()))
    click.echo(f"{report.requests:,} requests ({kinds}) in {report.seconds:.0f} s")
    click.echo(f"answers by status: {statuses}")
    click.echo(
        f"{report.server_errors} server errors, {report.tracebacks} tracebacks, "
        f"{report.unfit} answers that do not fit; {report.garbage} connections of garbage"
    )
    for failure in report.failures:
        click.echo(failure)
