"""`python -m lab bench deltas`: seconds from a reward's answer to decisions that know of it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from fastbandit.cores import cores
from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.storage.events import Event, RewardCame
from fastbandit.storage.shared import open_log
from lab.benchmarks.log import serving
from lab.benchmarks.reporting import output_options, print_rows, read_doc, seconds_option
from lab.experiments.timing import machine_of
from lab.faults.stage import HOST, Caller, Stage, running, set_stage, wait_for, write_stage

_FEATURES = 8
_TOGETHER = 10  # rewards in a request
_FIRST = 600  # rewards before the first version
_LOOK_SECONDS = 0.05
_PATIENCE = 300.0
_LAST_SECONDS = 15.0
_READ = 10_000
_KEPT = 1000  # versions: their cuts are asked for at the end
HEADINGS = (
    "arms",
    "rewards/s",
    "versions",
    "deltas",
    "known after, p50",
    "p95",
    "longest",
    "unknown for, p95",
)


@dataclass(frozen=True)
class Row:
    """How soon decisions knew rewards that were acknowledged, at a rate.

    `unknown_p95_s` is the age of the oldest reward that decisions do not know, over the whole time:
    a new version may not know for a moment what a delta of the last one knew.
    """

    arms: int
    rewards: int
    rewards_per_s: float
    versions: int
    deltas: int
    p50_s: float
    p95_s: float
    longest_s: float
    unknown_p95_s: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.arms:,}",
            f"{self.rewards_per_s:,.0f}",
            f"{self.versions}",
            f"{self.deltas}",
            f"{self.p50_s:.2f} s",
            f"{self.p95_s:.2f} s",
            f"{self.longest_s:.2f} s",
            f"{self.unknown_p95_s:.2f} s",
        )


@dataclass(frozen=True)
class Look:
    """What a service said of itself at a moment: its version, and the last event a delta knows."""

    at: float
    version: int
    seq: int | None


@dataclass
class Watch:
    """Looks at the metrics of a service again and again, in a thread of its own."""

    port: int
    looks: list[Look] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Look until it is over."""
        connection = HTTPConnection(HOST, self.port, timeout=10.0)
        while not self.is_over.wait(_LOOK_SECONDS):
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            version, seq = _gauge(text, "version"), _gauge(text, "delta_events")
            seen = None if seq is None else int(seq)
            self.looks.append(Look(time.monotonic(), int(version or 0), seen))
        connection.close()


def _gauge(text: str, name: str) -> float | None:
    found = re.search(rf"^fastbandit_{name} (\S+)$", text, flags=re.MULTILINE)
    return None if found is None else float(found[1])


@contextmanager
def watching(port: int) -> Iterator[Watch]:
    """Look at a service meanwhile."""
    watch = Watch(port)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.is_over.set()
        thread.join()


def measure_deltas(
    home: Path,
    *,
    arms: int,
    rate: float,
    seconds: float,
    preset: str = "default",
    url: str = "",
    progress: Progress = silent,
) -> Row:
    """Send rewards to a service at a rate, and time when its decisions know them.

    Its log is shared, where the URL of a database is named.
    """
    environment = Synthetic(dim=_FEATURES, arms=arms)
    own = {} if preset == "little" else {"select.preset": preset}
    settings = {"learn.keep": _KEPT, "limits.contexts": 1_000, **own}
    if url:
        shared = {"log.url": url, "snapshots.url": f"file://{home}/shared"}
        stage = write_stage(home, environment, {**settings, **shared})
    else:
        stage = set_stage(home, environment, settings)
    with running(stage), closing(Sender(stage)) as sender:
        sender.send(_FIRST)
        wait_for(lambda: sender.version() >= 1, seconds=_PATIENCE, what="a first version")
        sender.acknowledged.clear()
        with watching(stage.port) as watch:
            began = time.monotonic()
            while (now := time.monotonic() - began) < seconds:
                progress(int(now), int(seconds), f"{len(sender.acknowledged):,} rewards")
                due = rate * now - len(sender.acknowledged)
                if due >= _TOGETHER:
                    sender.send(_TOGETHER)
                else:
                    time.sleep(0.001)
            took = time.monotonic() - began
            last = rewards_of(stage)[-1].seq
            wait_for(
                lambda: _known(stage, watch.looks[-1]) >= last,
                seconds=_LAST_SECONDS,
                what="the last reward",
            )
        return _row(stage, watch.looks, sender.acknowledged, arms=arms, seconds=took)


class Sender:
    """Asks for decisions and rewards them; `acknowledged` says when, by decision."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._caller, self._round = stage, Caller(stage.port, seconds=60.0), 0
        self.acknowledged: dict[str, float] = {}

    def send(self, count: int) -> None:
        """Decide for so many contexts at once, and send the rewards of all."""
        environment = self._stage.environment
        asked = {"contexts": environment.contexts(self._round, count).tolist()}
        made = self._ask("/v1/select", asked)["decisions"]
        rows = np.array([int(one["arms"][0]) for one in made])
        rewards = environment.observed(self._round, rows).tolist()
        sent = [
            {"decision": one["decision"], "value": value}
            for one, value in zip(made, rewards, strict=True)
        ]
        self._ask("/v1/reward", {"rewards": sent})
        now = time.monotonic()
        self.acknowledged.update((one["decision"], now) for one in sent)
        self._round += count

    def version(self) -> int:
        """Return the version that decides."""
        return int(self._ask("/v1/status")["version"])

    def close(self) -> None:
        """Let go of the connection."""
        self._caller.close()

    def _ask(self, path: str, request: Any = None) -> Any:
        reply = self._caller.ask(path, request)
        if reply is None or reply.status != 200:
            raise ServiceUnavailable(
                f"The benchmark needs answers of {path}: got {reply}. See {self._stage.journal}."
            )
        return reply.content


def rewards_of(stage: Stage) -> list[RewardCame]:
    """Return the rewards in the log, in its order."""
    found: list[Event] = []
    with closing(open_log(stage.config.log.url, stage.data, is_reader=True)) as log:
        while events := log.read(after=found[-1].seq if found else 0, limit=_READ):
            found += events
    return [one for one in found if isinstance(one, RewardCame)]


def _known(stage: Stage, look: Look) -> int:
    """Return the last event that decisions knew at a look: a delta's, or a version's."""
    return stage.store.get(look.version).cut.seq if look.seq is None else look.seq


def _row(
    stage: Stage, looks: list[Look], acknowledged: dict[str, float], *, arms: int, seconds: float
) -> Row:
    rewards = [one for one in rewards_of(stage) if one.decision in acknowledged]
    seqs = np.array([one.seq for one in rewards])  # in order
    acknowledged_at = np.array([acknowledged[one.decision] for one in rewards])
    at = np.array([look.at for look in looks])
    known = np.array([_known(stage, look) for look in looks])
    first = np.searchsorted(np.maximum.accumulate(known), seqs)
    waits = np.maximum(at[first] - acknowledged_at, 0.0)
    next_one = np.searchsorted(seqs, known, side="right")
    oldest = np.append(acknowledged_at, np.inf)[next_one]
    ages = np.maximum(at - oldest, 0.0)
    return Row(
        arms=arms,
        rewards=len(rewards),
        rewards_per_s=len(rewards) / seconds,
        versions=len({look.version for look in looks}),
        deltas=len({look.seq for look in looks if look.seq is not None}),
        p50_s=float(np.quantile(waits, 0.5)),
        p95_s=float(np.quantile(waits, 0.95)),
        longest_s=float(waits.max()),
        unknown_p95_s=float(np.quantile(ages[at <= acknowledged_at[-1]], 0.95)),
    )


# -- the command


@click.command("deltas")
@click.option("--arms", default=1_000, show_default=True, type=click.IntRange(1), help="Arms.")
@click.option(
    "--rate", default=500.0, show_default=True, type=click.FloatRange(1.0), help="Rewards a second."
)
@click.option("--preset", default="default", show_default=True, help="As select.preset; or little.")
@click.option("--shared", "is_shared", is_flag=True, help="Keep the log in a PostgreSQL server.")
@seconds_option(30.0, "Send rewards for so long.")
@output_options
def deltas_command(
    arms: int,
    rate: float,
    preset: str,
    is_shared: bool,
    seconds: float,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Time how soon decisions know a reward that was acknowledged.

    A service on this machine, its learner beside it, gets decisions and their rewards at a rate,
    while versions are trained as ever.
    """
    if doc is not None:
        read_doc(doc)
    with ExitStack() as meanwhile:
        url = meanwhile.enter_context(serving("")) if is_shared else ""
        folder = meanwhile.enter_context(TemporaryDirectory())
        row = measure_deltas(
            Path(folder),
            arms=arms,
            rate=rate,
            seconds=seconds,
            preset=preset,
            url=url,
            progress=meanwhile.enter_context(progress_bar("Deltas")),
        )
    print_rows("deltas", HEADINGS, [row], note=note_on(), doc=doc, as_json=as_json)


def note_on() -> str:
    """Say what was timed, and on which machine."""
    return (
        f"Contexts of {_FEATURES} features, {_TOGETHER} rewards a request; service, learner and "
        f"load on {machine_of('cpu')} ({cores()} cores)"
    )
