"""`python -m lab bench engines`: one log learned in one process, and by workers of Ray together."""

from __future__ import annotations

import math
import shutil
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import click
import numpy as np

from fastbandit.cluster.engine import Engine, engine_for
from fastbandit.cluster.ray_joining import RayJoin
from fastbandit.cluster.ray_training import RayTraining
from fastbandit.cores import one_thread
from fastbandit.demo.synthetic import Synthetic
from fastbandit.learning.learner import Learner
from fastbandit.progress import Progress, progress_bar, silent
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
from fastbandit.storage.events import DecisionMade, Event, RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog
from lab.benchmarks.reporting import output_options, print_rows, read_doc
from lab.experiments.timing import machine_of

WORKERS = 2
_DIM = 4
_HELD_OUT = 0.3
_NOISE = 0.3
_WAIT = 3_600_000_000
_ERRORS = 2.0
HEADINGS = ("measured", "local", f"ray, {WORKERS} workers", "difference", "noise", "within it")


@dataclass(frozen=True)
class Row:
    """Means over seeds, by engine, and how far two such means of one engine lie apart by chance.

    `noise` is two standard errors of the difference of two means over these seeds, by the
    spread of the local engine alone.
    """

    measured: str
    local: float
    ray: float
    spread: float
    noise: float
    is_within: bool
    seeds: int
    local_seconds: float
    ray_seconds: float

    def cells(self) -> tuple[str, ...]:
        """Format the row for a table."""
        numbers = (self.local, self.ray, self.ray - self.local, self.noise)
        return (self.measured, *(f"{n:.4f}" for n in numbers), "yes" if self.is_within else "no")


@dataclass(frozen=True)
class Learned:
    """What a version is worth: its loss on interactions that it has not seen, and its q."""

    loss: float
    quality: float
    seconds: float


def compare(
    folder: Path,
    engine: Engine,
    *,
    rounds: int,
    arms: int,
    seeds: int,
    progress: Progress = silent,
) -> list[Row]:
    """Learn one log with several seeds, here and on an engine of Ray."""
    environment = Synthetic("h3", _DIM, arms, noise=_NOISE)
    write_environment(environment, folder / "log", rounds)
    local, ray = [], []
    for seed in range(seeds):
        progress(2 * seed, 2 * seeds, f"seed {seed}: local")
        local.append(learn(folder, seed, rounds=rounds))
        progress(2 * seed + 1, 2 * seeds, f"seed {seed}: ray")
        ray.append(learn(folder, seed, rounds=rounds, engine=engine))
    return [row_of(name, local, ray) for name in ("loss", "quality")]


def write_environment(environment: Synthetic, folder: Path, rounds: int) -> None:
    """Write the arms of an environment, and a log of random choices among them."""
    folder.mkdir(parents=True)
    names = [f"x{column}" for column in range(environment.dim)]
    lines = [",".join(map(repr, [row, *arm])) for row, arm in enumerate(environment.arms.tolist())]
    (folder / "arms.csv").write_text("\n".join([",".join(["id", *names]), *lines]))
    rows = np.random.default_rng(0).integers(environment.size, size=rounds)
    contexts, rewards = (
        environment.contexts(0, rounds).tolist(),
        environment.observed(0, rows).tolist(),
    )
    events: list[Event] = []
    for number, row in enumerate(rows.tolist()):
        context, reward = contexts[number], rewards[number]
        id = f"{number:032x}"
        events.append(DecisionMade(id, context, [row], [0.0], number, 0, 0, _WAIT))
        events.append(RewardCame(id, reward))
    with closing(SqliteLog(folder / LOG_FILE)) as log:
        for first in range(0, len(events), 1_000):
            log.append(events[first : first + 1_000])


def learn(folder: Path, seed: int, *, rounds: int, engine: Engine | None = None) -> Learned:
    """Learn a copy of the log whole: one version, judged on interactions that are held out."""
    home = folder / f"{'local' if engine is None else 'ray'}-{seed}"
    shutil.copytree(folder / "log", home)
    config = Config(
        server=ServerConfig(data_dir=str(home)),
        context=ContextConfig(features=_DIM),
        arms=ArmsConfig(file=str(home / "arms.csv")),
        reward=RewardConfig(kind="real"),
        select=SelectConfig(seed=seed),
        learn=LearnConfig(fresh=rounds, held_out=_HELD_OUT, seconds=1e9, min_quality=0.0),
    )
    learner = Learner(config)
    if engine is not None:
        join = RayJoin("", home, engine.workers)
        learner = Learner(config, train=RayTraining(engine.workers), join=join)
    learner.step()
    started = time.perf_counter()
    learner.step()
    seconds = time.perf_counter() - started
    current = SnapshotStore(home / "snapshots").current()
    assert current is not None
    checks = current.notes["checks"]
    return Learned(checks["loss"], checks["quality"], seconds)


def row_of(name: str, local: list[Learned], ray: list[Learned]) -> Row:
    """Compare one number of the versions that two engines made."""
    here, there = ([getattr(one, name) for one in made] for made in (local, ray))
    spread = stdev(here)
    noise = _ERRORS * spread * math.sqrt(2 / len(here))
    return Row(
        measured={"loss": "held-out loss", "quality": "q"}[name],
        local=mean(here),
        ray=mean(there),
        spread=spread,
        noise=noise,
        is_within=abs(mean(there) - mean(here)) <= noise,
        seeds=len(here),
        local_seconds=mean(one.seconds for one in local),
        ray_seconds=mean(one.seconds for one in ray),
    )


# -- the command


@click.command("engines")
@click.option("--rounds", default=4_000, show_default=True, type=click.IntRange(10))
@click.option("--arms", default=2_000, show_default=True, type=click.IntRange(2))
@click.option("--seeds", default=5, show_default=True, type=click.IntRange(2))
@output_options
def engines_command(rounds: int, arms: int, seeds: int, doc: Path | None, as_json: bool) -> None:
    """Learn one log in one process and on two workers of Ray, and compare what was learned.

    The log holds random choices in the environment h3; the last 30 % of its rewards, at most 1,000,
    are held out. Engines differ by chance alone where their means over seeds lie no farther
    apart than two standard errors, by the spread of the local engine.
    """
    if doc is not None:
        read_doc(doc)
    one_thread()
    with (
        TemporaryDirectory() as folder,
        engine_for("ray", workers=WORKERS) as engine,
        progress_bar("Engines") as progress,
    ):
        rows = compare(
            Path(folder), engine, rounds=rounds, arms=arms, seeds=seeds, progress=progress
        )
    here, there = rows[0].local_seconds, rows[0].ray_seconds
    note = (
        f"{rounds:,} rewards, {arms:,} arms, {seeds} seeds; a version took {here:.1f} s here and "
        f"{there:.1f} s on Ray, {machine_of('cpu')}"
    )
    print_rows("engines", HEADINGS, rows, note=note, doc=doc, as_json=as_json)
