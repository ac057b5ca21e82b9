"""`python -m lab bench rank`: ranks of Personalizer over HTTP, with actions that they bring.

A service learns from a log and serves on loopback, a process of its own, its log durable. Each rank
brings actions with named features that the catalogue does not have: all of them are read, scored
and logged. One connection measures how long a rank takes, several how many a second there are.
"""

from __future__ import annotations

import tempfile
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
from lab.benchmarks.named import write_decisions
from lab.benchmarks.reporting import output_options, print_rows, read_doc
from lab.experiments.timing import machine_of
from lab.faults.load import Load, load_from_process
from lab.faults.stage import Running, set_stage
from lab.faults.throughput import TRAINED, learn_once

P50_MS, PER_SECOND = 2.0, 1_500.0
"""Bars of one connection's median, and of the rate of several."""
HEADINGS = ("ranks", "actions", "features", "bytes", "p50 ms", "p99 ms", "a second")
_CONTEXT, _BODIES, _ARMS, _ROUNDS = 10, 200, 200, 500


@dataclass(frozen=True)
class Row:
    """Ranks over so many connections."""

    connections: int
    actions: int
    features: int
    size: int
    p50_ms: float
    p99_ms: float
    per_second: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        times = (f"{self.p50_ms:.2f}", f"{self.p99_ms:.2f}", f"{self.per_second:,.0f}")
        sizes = (str(self.actions), str(self.features), f"{self.size:,}")
        return (f"{self.connections} at a time", *sizes, *times)


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
    settings: dict[str, Any] | None = None,
    progress: Progress = silent,
) -> list[Row]:
    """Serve, and send ranks over one connection and over several."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        service = _start(home, features, settings or TRAINED)
        stack.callback(service.end)
        service.wait_until(True)
        size = _write_bodies(home / "bodies", actions, features)
        rows = []
        for number, connections in enumerate((8, 1, 4, 8)):  # the first compiles and caches
            load = Load(
                service.stage.port,
                seconds,
                connections,
                path="/personalizer/v1.0/rank",
                bodies=str(home / "bodies"),
            )
            answers = load_from_process(load)
            made = answers.statuses.get("201", 0)
            failed = sum(answers.statuses.values()) - made + answers.broken
            if failed:
                raise ServiceUnavailable(f"Ranks need to be answered: {failed} were not.")
            times = (answers.p50_ms, answers.p99_ms, made / answers.seconds)
            rows.append(Row(connections, actions, features, size, *times))
            progress(number + 1, 4, "loads")
        return rows[1:]


def _start(home: Path, features: int, settings: Any) -> Running:
    """Start a service that has learned from contexts and arms with names."""
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
    return stage.start("--no-learner")


def _write_bodies(path: Path, actions: int, features: int) -> int:
    """Write ranks, each with actions of its own; return their mean size."""
    contexts = make_rows(_BODIES, _CONTEXT, seed=3)
    pool = make_rows(_BODIES * 5, features, seed=4)
    rng, bodies = np.random.default_rng(5), []
    for context in contexts:
        some = rng.choice(len(pool), actions, replace=False).tolist()
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
@output_options
def rank_command(
    actions: int, features: int, seconds: float, doc: Path | None, as_json: bool
) -> None:
    """Time ranks of Personalizer over HTTP, durable, with the client beside the service.

    At one connection a rank may take 2 ms at the median; at several, 1,500 a second are due.
    """
    if doc is not None:
        read_doc(doc)
    with progress_bar("Ranks") as progress:
        rows = measure(actions=actions, features=features, seconds=seconds, progress=progress)
    note = f"Ranks over HTTP, durable, {machine_of('cpu')}"
    print_rows("rank", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
