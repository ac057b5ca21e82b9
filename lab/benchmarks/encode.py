"""`python -m lab bench encode`: named columns to numbers, one context and a large table."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.cores import one_thread
from fastbandit.errors import SettingError
from fastbandit.features.schema import Schema
from fastbandit.features.tables import Table
from fastbandit.packages import needed
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.offered_arms import Offer
from lab.benchmarks.peers import worded
from lab.benchmarks.reporting import output_options, print_rows, read_doc
from lab.experiments.timing import machine_of

ONE, MANY = 20, 30
"""Columns of the one context, and of the large table."""
_SAMPLE = 2_000
_ARMS, _ARM_FEATURES = 2_000, 8
OFFERED = (10, 200)
"""Arms that a request brings."""
_WORDS = [f"word{number}" for number in range(3_000)]
HEADINGS = ("what", "rows", "columns", "numbers", "figure", "bar")


@dataclass(frozen=True)
class Row:
    """A figure beside the most it may be; 0 where there is no bar."""

    what: str
    rows: int
    columns: int
    numbers: int
    figure: float
    unit: str
    bar: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        sizes = (f"{one:,}" for one in (self.rows, self.columns, self.numbers))
        bar = f"{self.bar:g} {self.unit}" if self.bar else "–"
        return (self.what, *sizes, f"{worded(self.figure)} {self.unit}", bar)


# -- what is encoded


def make_columns(rows: int, columns: int, *, seed: int = 0) -> dict[str, Any]:
    """Make mixed columns: of ten, four numbers, two categories, a flag, an id, a text, a date."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for number in range(columns):
        kind = number % 10
        if kind < 4:
            made: Any = rng.normal(size=rows) if kind % 2 else rng.lognormal(2, 1, size=rows)
        elif kind < 6:
            levels = np.array([f"level {n}" for n in range(12 if kind == 4 else 40)], dtype=object)
            made = levels[rng.integers(0, len(levels), rows)]
        elif kind == 6:
            made = rng.random(rows) < 0.5
        elif kind == 7:
            made = np.array([f"user-{n}" for n in rng.integers(0, 100_000, rows)], dtype=object)
        elif kind == 8:
            made = _texts(rng, rows)
        else:
            made = np.datetime64("2025-01-01", "us") + rng.integers(0, 3 * 10**13, rows)
        found[f"{_NAMES[kind]}_{number}"] = made
    return found


_NAMES = ("price", "age", "spend", "score", "city", "device", "member", "user", "query", "seen")


def _texts(rng: np.random.Generator, rows: int) -> list[str]:
    some = [" ".join(_WORDS[n] for n in rng.integers(0, len(_WORDS), 6)) for _ in range(20_000)]
    return [some[n] for n in rng.integers(0, len(some), rows)]


def schema_for(columns: dict[str, Any]) -> Schema:
    """Infer a schema; users are ids by their name."""
    some = {name: list(values[:_SAMPLE]) for name, values in columns.items()}
    ids = {name: "id" for name in some if name.startswith("user")}
    return Schema.infer(Table(some, len(next(iter(some.values())))), kinds=ids)


def dicts_of(columns: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    """Return rows as they come in JSON: dates are texts."""
    made = []
    for row in range(rows):
        one = {name: values[row] for name, values in columns.items()}
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in one.items()}
        made.append({k: _worded(v) for k, v in plain.items()})
    return made


def _worded(value: Any) -> Any:
    return value.replace(microsecond=0).isoformat() if isinstance(value, datetime) else value


# -- one context


def measure_one(*, calls: int) -> list[Row]:
    """Time one context of named values: its encoding, and a whole decision beside an array."""
    columns = make_columns(_SAMPLE, ONE)
    schema = schema_for(columns)
    rows = dicts_of(columns, 500)
    encoded = schema.encode(rows)
    took = _cpu_us(lambda number: schema.encode_one(rows[number % 500]), calls)
    frozen = _frozen(schema, rows)
    named = _cpu_us(lambda number: frozen.select_one(rows[number % 500], seed=number), calls)
    plain = _cpu_us(lambda number: frozen.select_one(encoded[number % 500], seed=number), calls)
    size = (1, ONE, schema.dim)
    found = [
        Row("encode one dict", *size, took, "µs", 15.0),
        Row("select_one by name", *size, named, "µs", 0.0),
        Row("select_one by an array", *size, plain, "µs", 0.0),
    ]
    return found + [_among(frozen, rows, count, calls) for count in OFFERED]


def _among(frozen: FrozenBandit, rows: list[dict[str, Any]], count: int, calls: int) -> Row:
    """Time decisions among arms that a request brings, unknown to the catalogue."""
    features = np.random.default_rng(2).normal(size=(count, _ARM_FEATURES)).astype(np.float32)
    offers = [Offer(f"new {number}", one) for number, one in enumerate(features)]
    took = _cpu_us(lambda n: frozen.offering(offers).select_one(rows[n % 500], seed=n), calls)
    schema = frozen.parts[2].schema
    assert schema is not None
    what = f"select_one among {count} arms of a request"
    return Row(what, 1, ONE, schema.dim, took, "µs", 0.0)


def _frozen(schema: Schema, rows: list[dict[str, Any]]) -> FrozenBandit:
    rng = np.random.default_rng(1)
    arms = rng.normal(size=(_ARMS, _ARM_FEATURES)).astype(np.float32)
    bandit = Bandit(arms=arms, context=schema, progress=False)
    chosen, rewards = rng.integers(0, _ARMS, len(rows)), rng.integers(0, 2, len(rows))
    bandit.update(contexts=rows, arms=chosen, rewards=rewards)
    return bandit.freeze()


def _cpu_us(task: Callable[[int], object], calls: int) -> float:
    """Return the median µs of this thread's CPU for a call, over rounds."""
    size, taken = max(1, calls // 20), []
    for number in range(size):
        task(number)
    for _ in range(20):
        started = time.thread_time()
        for number in range(size):
            task(number)
        taken.append((time.thread_time() - started) / size)
    return 1e6 * median(taken)


# -- a large table


def measure_many(rows: int) -> list[Row]:
    """Encode an Arrow table in a process of its own: seconds, and memory beyond the table."""
    command = [sys.executable, "-m", "lab.benchmarks.encode", str(rows)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SettingError(f"Encoding needs to end well: it said {done.stderr.strip()[-500:]!r}.")
    found = json.loads(done.stdout)
    size = (rows, MANY, found["dim"])
    return [
        Row("encode a table in batches", *size, found["batches_seconds"], "s", 5.0),
        Row("encode a table in batches, CPU", *size, found["batches_cpu_seconds"], "s", 0.0),
        Row("in batches: peak memory beyond the table", *size, found["batches"], "tables", 2.0),
        Row("encode a table, the first time", *size, found["first_seconds"], "s", 5.0),
        Row("encode a table, again", *size, found["seconds"], "s", 5.0),
        Row("encode a table again, CPU", *size, found["cpu_seconds"], "s", 0.0),
        Row("peak memory beyond the table", *size, found["beyond"], "tables", 2.0),
        Row("of which the numbers", *size, found["numbers"], "tables", 0.0),
    ]


def encode_table(rows: int) -> dict[str, float]:
    """Encode a table here, in batches and as a whole; return seconds, memory in tables.

    Memory is the most that the process holds resident beyond what it held with the table, with
    whatever is encoded at that moment: a batch, or all of it.
    """
    arrow: Any = needed("pyarrow", what="The table", extra="score")
    columns = make_columns(rows, MANY)
    schema = schema_for(columns)
    table = arrow.table(columns)
    del columns
    schema.encode(table.slice(0, min(rows, 100)))  # compiled, and imported
    size, times = float(table.nbytes), []

    def batches() -> int:
        return sum(one.nbytes for one in schema.encode_batches(table))

    def whole() -> int:
        return schema.encode(table).nbytes

    peaks = []
    for task in (batches, whole, whole):
        watch, started, of_cpu = _Peak(), time.perf_counter(), time.process_time()
        numbers = task()
        times.append((time.perf_counter() - started, time.process_time() - of_cpu))
        peaks.append(watch.stop() / size)
    return {
        "dim": schema.dim,
        "batches_seconds": times[0][0],
        "batches_cpu_seconds": times[0][1],
        "batches": peaks[0],
        "first_seconds": times[1][0],
        "seconds": times[2][0],
        "cpu_seconds": times[2][1],
        "beyond": max(peaks[1:]),
        "numbers": numbers / size,
    }


class _Peak:
    """Watches the memory of this process from a thread."""

    def __init__(self) -> None:
        self._before = self._most = _resident()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(0.005):
            self._most = max(self._most, _resident())

    def stop(self) -> int:
        """Return the bytes that came on top at most."""
        self._is_over.set()
        self._thread.join()
        return max(self._most, _resident()) - self._before


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


# -- the command


@click.command("encode")
@click.option(
    "--rows", default=1_000_000, show_default=True, type=click.IntRange(1), help="Of the table."
)
@click.option(
    "--calls", default=20_000, show_default=True, type=click.IntRange(20), help="For one context."
)
@output_options
def encode_command(rows: int, calls: int, doc: Path | None, as_json: bool) -> None:
    """Time named columns becoming numbers: one context of 20 columns, a table of 30.

    One context is timed by the CPU of its thread; the table comes from Arrow, in a process of its
    own: in batches of 8,192 rows by one thread, then twice as a whole by two threads (the first
    time, memory is fetched too). Memory is in units of the table's.
    """
    if doc is not None:
        read_doc(doc)
    one_thread()
    measured = [*measure_one(calls=calls), *measure_many(rows)]
    note = f"Named columns to numbers, {machine_of('cpu')}"
    print_rows("encode", HEADINGS, measured, note=note, doc=doc, as_json=as_json)


if __name__ == "__main__":
    click.echo(json.dumps(encode_table(int(sys.argv[1]))))
