"""`python -m lab bench years`: a log of many days: start, learning, retention and forgetting."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from fastbandit.learning.learner import Learner
from fastbandit.progress import Progress, progress_bar
from fastbandit.serving.learner_process import environment_of
from fastbandit.serving.schemas import SelectRequest
from fastbandit.serving.service import Service
from fastbandit.settings.rewards import RewardConfig
from fastbandit.settings.service import (
    ArmsConfig,
    Config,
    ContextConfig,
    LearnConfig,
    SelectConfig,
    ServerConfig,
)
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.forgetting import forget
from fastbandit.storage.retention import DAY
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from lab.benchmarks.reporting import output_options, print_rows
from lab.experiments.timing import machine_of

_DAYS, _FIRST, _ARMS = 100, 1_000, 20
_SUBJECTS = 1_000
_PRESET = "format = 1\n[training.reward]\niterations = 200\n[training.generator]\niterations = 50\n"
_WRITE = """
WITH RECURSIVE numbers (n) AS (
    SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?2
) INSERT INTO {} SELECT {} FROM numbers
"""
_DECISIONS = (
    "decisions (seq, at, id, context, arms, scores, seed, version, catalogue, until, "
    "default_reward, adds_up, explored, epsilon, degraded, decided_by, subject)"
)
_DECISION = """
    2 * n + 1, ?3 + n * ?4, 'd' || n, json_array(n % 7 / 7.0, n % 11 / 11.0, n % 13 / 13.0, 1.0),
    json_array(n % 20), '[0.0]', n, 0, 0, ?3 + n * ?4 + 60000000, 0, 0, 1, 0, 0, 'bandit',
    's' || (n % 1000)
"""
_REWARD = "2 * n + 2, ?3 + n * ?4 + 1, 'd' || n, n % 20, '', (n % 7 > n % 5), 'counted'"
HEADINGS = (
    "events",
    "start",
    "learning, peak memory",
    "select p99",
    "while half leaves",
    "left in",
    "forget",
    "version at 10^3",
    "at the end",
)


@dataclass(frozen=True)
class Row:
    """What a long life of a service costs; bytes are those of a version on disk."""

    events: int
    start_s: float
    learn_s: float
    learn_peak_mb: float
    p99_ms: float
    p99_retaining_ms: float
    retain_s: float
    left: int
    forget_s: float
    forgotten: int
    interactions: int
    bytes_first: int
    bytes_last: int

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        return (
            f"{self.events:,}",
            f"{self.start_s:.2f} s",
            f"{self.learn_peak_mb:,.0f} MB",
            f"{self.p99_ms:.1f} ms",
            f"{self.p99_retaining_ms:.1f} ms",
            f"{self.retain_s:.0f} s",
            f"{self.forget_s:.1f} s",
            f"{self.bytes_first:,}",
            f"{self.bytes_last:,}",
        )


def config_in(folder: Path) -> Config:
    """Write arms and a preset into a folder, and return the settings of a service there."""
    features = np.random.default_rng(5).normal(size=(_ARMS, 4))
    np.save(folder / "arms.npy", features.astype(np.float32))
    (folder / "short.toml").write_text(_PRESET)
    return Config(
        server=ServerConfig(data_dir=str(folder)),
        context=ContextConfig(features=4),
        arms=ArmsConfig(file=str(folder / "arms.npy")),
        reward=RewardConfig(wait_seconds=60.0),
        select=SelectConfig(preset=str(folder / "short.toml")),
        learn=LearnConfig(
            fresh=_FIRST, growth=0.5, held_out=0.0, min_quality=0.0, seconds=3600.0, keep=1
        ),
    )


def write_events(folder: Path, first: int, last: int, *, until: int, step: int) -> None:
    """Write decisions of some numbers, with a reward each, in SQL; the last day ends at `until`."""
    SqliteLog(folder / LOG_FILE).close()
    connection, began = connect(folder / LOG_FILE), until - _DAYS * DAY
    with connection:
        for table, values in ((_DECISIONS, _DECISION), ("rewards", _REWARD)):
            query = _WRITE.format(table, values)
            connection.execute(query, (first, last, began, step))
    connection.close()


def measure(events: int, folder: Path, *, seconds: float, progress: Progress) -> Row:
    """Let a service learn a log of so many events as it grows, then age it and forget."""
    config, total = config_in(folder), events // 2
    now, store = time.time_ns() // 1000, SnapshotStore(folder / "snapshots")
    step, sizes = _DAYS * DAY // total, list[int]()
    bounds = [0, 2 * _FIRST]
    while bounds[-1] < total:
        bounds.append(min(total, 4 * bounds[-1]))
    learner, learn_s = Learner(config), 0.0
    learner.step()
    for number, (first, last) in enumerate(pairwise(bounds)):
        progress(number, len(bounds) + 2, f"{2 * last:,} events")
        write_events(folder, first, last, until=now, step=step)
        began = time.monotonic()
        if last < total:
            while learner.step().did != "waited":
                pass
        else:  # in a process of its own, whose memory is measured
            command = [sys.executable, "-m", "fastbandit", "learn", "--once"]
            subprocess.run(command, env=environment_of(config), check=True, capture_output=True)
        learn_s = time.monotonic() - began
        current = store.current()
        assert current is not None
        sizes.append(sum(p.stat().st_size for p in current.folder.rglob("*") if p.is_file()))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    progress(len(bounds), len(bounds) + 2, "half of it leaves")
    start_s, plain, retaining, retain_s = asyncio.run(_serve(config, seconds))
    progress(len(bounds) + 1, len(bounds) + 2, "forgetting")
    left = _count(folder)
    began = time.monotonic()
    made = forget(folder, folder / LOG_FILE, f"s{_SUBJECTS // 2}", keep=1)
    current = store.current()
    assert current is not None
    return Row(
        events=2 * total,
        start_s=start_s,
        learn_s=learn_s,
        learn_peak_mb=peak,
        p99_ms=plain,
        p99_retaining_ms=retaining,
        retain_s=retain_s,
        left=2 * total - left,
        forget_s=time.monotonic() - began,
        forgotten=made.decisions + made.archived_decisions,
        interactions=current.cut.interactions,
        bytes_first=sizes[0],
        bytes_last=sizes[-1],
    )


def _count(folder: Path) -> int:
    connection = connect(folder / LOG_FILE, is_reader=True)
    query = "SELECT (SELECT count(*) FROM decisions WHERE version = 0) + count(*) FROM rewards"
    counts: list[Any] = connection.execute(query).fetchall()
    connection.close()
    return int(counts[0][0])


async def _serve(config: Config, seconds: float) -> tuple[float, float, float, float]:
    """Return the seconds of a start, p99 of selects in ms alone and during retention, and its s."""
    began = time.monotonic()
    service = Service(config)
    await service.start()
    start_s = time.monotonic() - began
    plain = await _selects(service, seconds=seconds)
    began = time.monotonic()
    command = [sys.executable, "-m", "fastbandit", "retain", "--days", str(_DAYS // 2), "--json"]
    process = await asyncio.create_subprocess_exec(
        *command, env=environment_of(config), stdout=asyncio.subprocess.DEVNULL
    )
    during = await _selects(service, process=process)
    retain_s = time.monotonic() - began
    await service.stop()
    return start_s, plain, during, retain_s


async def _selects(
    service: Service,
    *,
    seconds: float = 1e9,
    process: asyncio.subprocess.Process | None = None,
) -> float:
    """Ask for decisions, about 200 a second, and return p99 of their milliseconds."""
    times, end = [], time.monotonic() + seconds
    ended = None if process is None else asyncio.create_task(process.wait())
    while time.monotonic() < end and not (ended is not None and ended.done()):
        began = time.monotonic()
        await service.select(SelectRequest(context=[0.1, 0.2, 0.3, 1.0]))
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.005)
    return float(np.quantile(times, 0.99) * 1e3)


@click.command("years")
@click.option("--events", default=1_000_000, show_default=True, type=click.IntRange(10_000))
@click.option("--seconds", default=5.0, show_default=True, help="Of selects before days leave.")
@output_options
def years_command(events: int, seconds: float, doc: Path | None, as_json: bool) -> None:
    """Measure a service with a log of many events: 100 days of them, in SQLite.

    How soon it starts, what one cut of learning takes in memory, how long selects take while half
    of the days leave into the archive, how long it takes to forget one of 1,000 subjects, and the
    bytes of a version after about 1,000 interactions and at the end.
    """
    with TemporaryDirectory() as place, progress_bar("Years") as progress:
        row = measure(events, Path(place), seconds=seconds, progress=progress)
    note = f"100 days of decisions with a reward each, on {machine_of('cpu')}"
    print_rows("years", HEADINGS, [row], note=note, doc=doc, as_json=as_json)
