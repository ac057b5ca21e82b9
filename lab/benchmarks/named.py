"""`python -m lab bench named`: selects over HTTP by name, beside the same features as lists.

Three services learn from the same log and serve on loopback, each a process of its own: one reads
20 mixed columns by a schema, one the numbers that they become, as lists, one lists of 20 plain
numbers. Blocks of requests go to them in alternation, so that all meet the same moments of this
machine; what the process of a service spends of the CPU on a request is counted, too.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from fastbandit.progress import Progress, progress_bar, silent
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, Event, RewardCame
from fastbandit.storage.sqlite_log import SqliteLog
from lab.benchmarks.encode import ONE, dicts_of, make_columns, schema_for
from lab.benchmarks.reporting import output_options, print_rows, read_doc
from lab.experiments.timing import machine_of
from lab.faults.load import Load, load_from_process
from lab.faults.stage import Running, Stage, set_stage
from lab.faults.throughput import TRAINED, learn_once

LOSES = 0.15
"""The most that a select by name may lose of the rate of one by a list."""
NAMED = "by name"
HEADINGS = ("requests", "numbers", "bytes", "a second", "by name of it", "CPU µs", "of its CPU")
_ROWS = 500
_FIRST = 2.0  # seconds until all is compiled and cached, which do not count
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Row:
    """Requests of one kind, and what those by name reach of their rate and CPU.

    `share` is the median over rounds of the rate by name over this rate, between `low` and `high`
    at 95 % (bootstrap over rounds); `cpu_share` is the same of requests a CPU second.
    """

    what: str
    numbers: int
    size: int
    per_second: float
    share: float
    low: float
    high: float
    cpu_us: float
    cpu_share: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        rates = (f"{self.per_second:,.0f}", f"{self.share:.2f} [{self.low:.2f}, {self.high:.2f}]")
        sizes = (f"{self.numbers:,}", f"{self.size:,}")
        return (self.what, *sizes, *rates, f"{self.cpu_us:.0f}", f"{self.cpu_share:.2f}")


@dataclass(frozen=True)
class _Served:
    """A service that runs, its requests, and what it has measured in each round."""

    what: str
    numbers: int
    size: int
    service: Running
    bodies: Path
    rates: list[float]
    cpu_us: list[float]

    def send(self, *, seconds: float, connections: int) -> None:
        load = Load(self.service.stage.port, seconds, connections, bodies=str(self.bodies))
        before = cpu_seconds(self.service.pid)
        answers = load_from_process(load)
        failed = sum(answers.statuses.values()) - answers.statuses.get("200", 0) + answers.broken
        if failed:
            raise ServiceUnavailable(f"Selects need to be answered: {failed} were not.")
        spent = cpu_seconds(self.service.pid) - before
        self.rates.append(answers.good_per_second)
        self.cpu_us.append(1e6 * spent / sum(answers.statuses.values()))


def measure(
    *,
    arms: int,
    seconds: float,
    rounds: int,
    connections: int = 8,
    settings: dict[str, Any] | None = None,
    progress: Progress = silent,
) -> list[Row]:
    """Serve by name and by lists, and send blocks of requests in alternation."""
    columns = make_columns(2_000, ONE)
    schema = schema_for(columns)
    named = dicts_of(columns, _ROWS)
    encoded = schema.encode(named).astype(float).round(6).tolist()
    plain = np.random.default_rng(1).normal(size=(_ROWS, ONE)).round(6).tolist()
    kinds = [(NAMED, schema.dim, named), ("as lists", schema.dim, encoded)]
    kinds.append((f"as lists of {ONE}", ONE, plain))
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        schema.save(Path(folder) / "schema.json")
        served: list[_Served] = []
        for what, numbers, contexts in kinds:
            home = Path(folder) / str(len(served))
            own: dict[str, Any] = {"context.features": numbers}
            if what == NAMED:
                own = {"context.schema": str(Path(folder) / "schema.json"), "context.features": 0}
            stage = set_stage(home, Synthetic("h3", 8, arms), {**(settings or TRAINED), **own})
            write_decisions(stage, contexts)
            learn_once(stage, rounds=_ROWS)
            bodies = [msgspec.json.encode({"context": one}) for one in contexts]
            (home / "bodies").write_bytes(b"\n".join(bodies))
            service = stage.start("--no-learner")
            stack.callback(service.end)
            service.wait_until(True)
            size = round(float(np.mean([len(one) for one in bodies])))
            served.append(_Served(what, numbers, size, service, home / "bodies", [], []))
        for number in range(rounds + 1):
            for one in served:
                one.send(seconds=seconds if number else _FIRST, connections=connections)
                if not number:  # compiled and cached now
                    one.rates.clear()
                    one.cpu_us.clear()
            progress(number + 1, rounds + 1, "rounds")
    return [_row(one, served[0]) for one in served]


def write_decisions(stage: Stage, contexts: Sequence[Any]) -> None:
    """Write decisions that any arm could have been chosen in, and random rewards."""
    snapshot = stage.store.current()
    assert snapshot is not None
    decision = FrozenBandit.load(snapshot.frozen).select(contexts)
    rewards = np.random.default_rng(2).normal(size=len(contexts)).tolist()
    events: list[Event] = []
    for number, (context, arm) in enumerate(zip(contexts, decision.arms, strict=True)):
        seed = int(decision.seeds[number]) >> 1
        made = DecisionMade(f"training-{number}", context, [arm], [0.0], seed, 0, 0, wait=10**9)
        events += [made, RewardCame(made.id, rewards[number])]
    log = SqliteLog(stage.data / LOG_FILE)
    log.append(events)
    log.close()


def _row(one: _Served, named: _Served) -> Row:
    shares = np.array(named.rates) / np.array(one.rates)
    drawn = np.random.default_rng(3).integers(0, len(shares), (2_000, len(shares)))
    low, high = np.quantile(np.median(shares[drawn], axis=1), (0.025, 0.975)).tolist()
    cpu = np.median(np.array(one.cpu_us) / np.maximum(named.cpu_us, 1e-9))
    middle = (float(np.median(one.rates)), float(np.median(shares)), low, high)
    return Row(one.what, one.numbers, one.size, *middle, float(np.median(one.cpu_us)), float(cpu))


def cpu_seconds(pid: int) -> float:
    """Return the CPU that a process has spent, all threads."""
    text = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(text[11]) + int(text[12])) / _TICKS


@click.command("named")
@click.option("--arms", default=2_000, show_default=True, type=click.IntRange(2), help="Arms.")
@click.option(
    "--seconds", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Of a block."
)
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1), help="Of blocks.")
@output_options
def named_command(arms: int, seconds: float, rounds: int, doc: Path | None, as_json: bool) -> None:
    """Time selects over HTTP by name, beside the same features as lists of numbers.

    Each of three services has a log of its own, durable; 8 connections send as fast as answers
    come. At most 15 % of the rate of lists may be lost.
    """
    if doc is not None:
        read_doc(doc)
    with progress_bar("Selects") as progress:
        rows = measure(arms=arms, seconds=seconds, rounds=rounds, progress=progress)
    note = f"Selects over HTTP, 20 mixed columns, {arms:,} arms, {machine_of('cpu')}"
    print_rows("named", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
