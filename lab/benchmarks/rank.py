"""`python -m lab bench rank`: ranks of Personalizer over HTTP, with actions that they bring.

A service learns from a log and serves on loopback, a process of its own, its log durable. Each rank
brings actions with named features that the catalogue does not have: all of them are read, scored
and logged. One connection measures how long a rank takes, several how many a second there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceUnavailable
from fastbandit.features.schema import Schema
from fastbandit.features.tables import Table
from fastbandit.progress import Progress, progress_bar, silent
from lab.benchmarks.named import cpu_seconds, write_decisions
from lab.benchmarks.reporting import output_options, print_rows, read_doc
from lab.experiments.timing import machine_of
from lab.faults.load import Load, load_from_process
from lab.faults.stage import Running, Stage, set_stage
from lab.faults.throughput import TRAINED, learn_once

P50_MS, PER_SECOND = 2.0, 1_500.0
"""Bars of one connection's median, and of the rate of several."""
HEADINGS = (
    "ranks",
    "workers",
    "actions",
    "features",
    "bytes",
    "p50 ms",
    "p99 ms",
    "a second",
    "CPU µs",
    "client's",
)
_CONTEXT, _BODIES, _ARMS, _ROUNDS = 10, 200, 200, 500
_NEW_BODIES = 400  # of 50 actions each: more than a service remembers, so none is remembered


@dataclass(frozen=True)
class Row:
    """Ranks over so many connections; the CPU of a rank is of the service, and of the load."""

    connections: int
    workers: int
    actions: int
    features: int
    size: int
    p50_ms: float
    p99_ms: float
    per_second: float
    cpu_us: float
    client_us: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        times = (f"{self.p50_ms:.2f}", f"{self.p99_ms:.2f}", f"{self.per_second:,.0f}")
        sizes = (str(self.workers), str(self.actions), str(self.features), f"{self.size:,}")
        spent = (f"{self.cpu_us:,.0f}", f"{self.client_us:,.0f}")
        return (f"{self.connections} at a time", *sizes, *times, *spent)


def make_rows(count: int, columns: int, *, seed: int) -> list[dict[str, Any]]:
    """Make named features: of three, two numbers and a category."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(count, columns)).round(3).tolist()
    levels = rng.integers(0, 8, size=(count, columns)).tolist()
    return [
        {
            f"feature{n}": f"level{levels[row][n]}" if n % 3 == 2 else numbers[row][n]
            for n in range(columns)
        }
        for row in range(count)
    ]


def measure(
    *,
    actions: int,
    features: int,
    seconds: float,
    workers: Sequence[int] = (1,),
    are_new: bool = False,
    settings: dict[str, Any] | None = None,
    progress: Progress = silent,
) -> list[Row]:
    """Serve by so many workers, and send ranks over one connection and over several.

    Actions come again and again, unless they `are_new`.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        stage = _set_up(home, features, settings or TRAINED)
        size = _write_bodies(home / "bodies", actions, features, are_new=are_new)
        rows = []
        for number, count in enumerate(workers):
            service = stage.start("--no-learner", "--workers", str(count))
            stack.callback(service.end)
            service.wait_until(True)
            for connections in (8, 1, 4, 8):  # the first compiles and caches
                load = Load(
                    stage.port,
                    seconds,
                    connections,
                    path="/personalizer/v1.0/rank",
                    bodies=str(home / "bodies"),
                )
                before = _cpu_seconds(service)
                answers = load_from_process(load)
                spent = _cpu_seconds(service) - before
                made = answers.statuses.get("201", 0)
                failed = sum(answers.statuses.values()) - made + answers.broken
                if failed:
                    raise ServiceUnavailable(f"Ranks need to be answered: {failed} were not.")
                times = (answers.p50_ms, answers.p99_ms, made / answers.seconds)
                cpu = (1e6 * spent / made, 1e6 * answers.cpu_seconds / made)
                rows.append(Row(connections, count, actions, features, size, *times, *cpu))
                progress(len(rows), 4 * len(workers), "loads")
            del rows[3 * number]
            service.stop()
        return rows


def _cpu_seconds(service: Running) -> float:
    """Return the CPU that the processes of a service have spent."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    return sum(cpu_seconds(pid) for pid in (service.pid, *map(int, children)))


def _set_up(home: Path, features: int, settings: Any) -> Stage:
    """Write what a service has that has learned from contexts and arms with names."""
    contexts = make_rows(_ROUNDS, _CONTEXT, seed=1)
    columns = {name: [one[name] for one in contexts] for name in contexts[0]}
    Schema.infer(Table(columns, len(contexts))).save(home / "context.json")
    arms = [{"id": f"arm{n}", **one} for n, one in enumerate(make_rows(_ARMS, features, seed=2))]
    pq.write_table(pa.Table.from_pylist(arms), home / "arms.parquet")
    own = {
        "context.schema": str(home / "context.json"),
        "context.features": 0,
        "arms.file": str(home / "arms.parquet"),
        "personalizer.enabled": True,
    }
    stage = set_stage(home, Synthetic("h3", 8, _ARMS), {**settings, **own})
    write_decisions(stage, contexts)
    learn_once(stage, rounds=_ROUNDS)
    return stage


def _write_bodies(path: Path, actions: int, features: int, *, are_new: bool) -> int:
    """Write ranks, each with actions of its own; return their mean size."""
    count = _NEW_BODIES if are_new else _BODIES
    contexts = make_rows(count, _CONTEXT, seed=3)
    pool = make_rows(count * actions if are_new else count * 5, features, seed=4)
    rng, bodies = np.random.default_rng(5), []
    for number, context in enumerate(contexts):
        some = rng.choice(len(pool), actions, replace=False).tolist()
        if are_new:
            some = [*range(number * actions, (number + 1) * actions)]
        offered = [{"id": f"action{n}", "features": [pool[n]]} for n in some]
        bodies.append(msgspec.json.encode({"contextFeatures": [context], "actions": offered}))
    path.write_bytes(b"\n".join(bodies))
    return round(float(np.mean([len(one) for one in bodies])))


@click.command("rank")
@click.option("--actions", default=50, show_default=True, type=click.IntRange(1, 50), help="Each.")
@click.option(
    "--features", default=30, show_default=True, type=click.IntRange(1), help="Of an action."
)
@click.option(
    "--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1), help="Of a load."
)
@click.option(
    "--workers",
    default=(1,),
    show_default=True,
    multiple=True,
    type=click.IntRange(1),
    help="Of the service; several times for one after the other.",
)
@click.option("--new", "are_new", is_flag=True, help="Send actions that never came before.")
@output_options
def rank_command(
    actions: int,
    features: int,
    seconds: float,
    workers: tuple[int, ...],
    are_new: bool,
    doc: Path | None,
    as_json: bool,
) -> None:
    """Time ranks of Personalizer over HTTP, durable, with the client beside the service.

    At one connection a rank may take 2 ms at the median; at several, 1,500 a second are due.
    """
    if doc is not None:
        read_doc(doc)
    with progress_bar("Ranks") as progress:
        rows = measure(
            actions=actions,
            features=features,
            seconds=seconds,
            workers=workers,
            are_new=are_new,
            progress=progress,
        )
    note = f"Ranks over HTTP, durable, {machine_of('cpu')}"
    print_rows("rank", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
