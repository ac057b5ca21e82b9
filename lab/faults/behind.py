"""A learner whose training is slower than what arrives, that hangs, or that is killed all the time.

Slow: versions lag behind the log, but no more than two trainings. Hung: the service says so within
a minute. Killed faster than it trains: it ends all the same, with the snapshot of one that was not.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from fastbandit.bandit import Bandit
from fastbandit.learning.candidates import TrainingData, train_here
from fastbandit.learning.learner import Learner
from fastbandit.learning.learner_loop import run_learner
from fastbandit.serving.learner_process import BEHIND, LearnerProcess
from fastbandit.serving.metrics import Metrics
from fastbandit.settings.service import Config
from fastbandit.settings.service_files import read_config
from fastbandit.storage.data_folder import LOG_FILE
from fastbandit.storage.events import DecisionMade, Event, RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.training.fit_reward import Curve
from lab.faults.ending import end_with_report

_ARMS, _FEATURES = 40, 4
_BETWEEN = 0.05  # seconds from one decision to the next
_GENERATOR = "[training.generator]\niterations = 10\ntargets = 64\nsample = 16\n"
_MOST_KILLS = 50
_DUE = 1.0  # seconds after a cut
_WITHIN = 60.0  # seconds until somebody is told


@dataclass(frozen=True)
class BehindReport:
    """What came of trainings of so many seconds, of one that hangs, and of kills.

    `lags` are for how long each version had been due when its training ended, `update_seconds` how
    long the longest update took from its cut until it was published. `told_seconds` is how
    long after a version was due the problem showed (None: not tried). `alone_seconds` is what the
    update takes that was killed every `kill_seconds`; `same` says whether both snapshots are.
    """

    train_seconds: float
    update_seconds: float
    lags: list[float]
    told_seconds: float | None
    alone_seconds: float
    kill_seconds: float
    kills: int
    same: bool

    @property
    def ratio(self) -> float:
        """The longest lag, in updates: trainings with their checks, saved and synced."""
        return round(max(self.lags) / self.update_seconds, 3)

    @property
    def is_met(self) -> bool:
        is_told = self.told_seconds is None or self.told_seconds <= _WITHIN
        return self.ratio <= 2.0 and is_told and self.same and self.kills > 1


def fall_behind(
    *, train_seconds: float, versions: int, hung_seconds: float, kill_seconds: float
) -> BehindReport:
    """Let a learner be slow for some versions, hang for so long, and be killed so often."""
    torch.set_num_threads(1)  # threads do not survive a fork
    with tempfile.TemporaryDirectory() as home:
        alone, kills, same = _killed(Path(home) / "killed", kill_seconds)
        longest, lags = _slow(Path(home) / "slow", train_seconds, versions)
        told = _hung(Path(home) / "hung", hung_seconds) if hung_seconds else None
    return BehindReport(train_seconds, longest, lags, told, alone, kill_seconds, kills, same)


def _config(folder: Path, *, iterations: int, **settings: Any) -> Config:
    folder.mkdir()
    features = np.random.default_rng(5).normal(size=(_ARMS, _FEATURES)).astype(np.float32)
    np.save(folder / "arms.npy", features)
    short = f"format = 1\n[training.reward]\niterations = {iterations}\n"
    (folder / "short.toml").write_text(short + _GENERATOR)
    own = {
        "server.data_dir": str(folder),
        "context.features": _FEATURES,
        "arms.file": str(folder / "arms.npy"),
        "reward.kind": "real",
        "reward.wait_seconds": 1.0,
        "select.preset": str(folder / "short.toml"),
        "learn.delta_seconds": 0.0,
        "learn.min_quality": 0.0,
    }
    return read_config(None, environ={}, overrides={**own, **settings})


def _visit(number: int) -> list[Event]:
    rng = np.random.default_rng(number)
    context, arm = rng.normal(size=_FEATURES).round(3).tolist(), int(rng.integers(_ARMS))
    made = DecisionMade(f"visit {number}", context, [arm], [0.0], number, 0, 0, 1_000_000)
    return [made, RewardCame(made.id, context[0])]


@contextmanager
def _arriving(folder: Path) -> Iterator[None]:
    """Let decisions and their rewards arrive, twenty a second."""
    is_open, is_over = threading.Event(), threading.Event()

    def write() -> None:
        with closing(SqliteLog(folder / LOG_FILE)) as log:
            is_open.set()
            number = 0
            while not is_over.wait(_BETWEEN):
                log.append(_visit(number))
                number += 1

    thread = threading.Thread(target=write)
    thread.start()
    is_open.wait()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _slow(folder: Path, train_seconds: float, versions: int) -> tuple[float, list[float]]:
    """Return how long an update took, and for how long versions were due when trained."""
    config = _config(folder, iterations=5, **{"learn.seconds": _DUE, "learn.fresh": 10**6})
    store, lags = SnapshotStore(folder / "snapshots"), list[float]()

    def train(bandit: Bandit, data: TrainingData, curve: Curve) -> Bandit:
        until = time.monotonic() + train_seconds
        trained = train_here(bandit, data, curve)
        time.sleep(max(0.0, until - time.monotonic()))
        parent = store.current()
        with closing(SqliteLog(folder / LOG_FILE, is_reader=True)) as log:
            if parent is not None and parent.cut.at:  # a version is due so long after the last cut
                lags.append(round((log.last_at - parent.cut.at) / 1e6 - _DUE, 3))
        return trained

    with _arriving(folder):
        learner = Learner(config, train=train)
        learner.start()
        longest = 0.0
        while len(lags) < versions:
            began = time.monotonic()
            step = learner.step()
            if step.did == "waited":
                time.sleep(_BETWEEN)
            elif step.version:  # the first, 0, is not trained
                longest = max(longest, time.monotonic() - began)
    return round(longest, 3), lags


def _hung(folder: Path, hung_seconds: float) -> float | None:
    """Return how long after a version was due the service said that its learner is behind."""
    config = _config(folder, iterations=5, **{"learn.fresh": 10})  # with the usual seconds
    beside, told = LearnerProcess(config, None, metrics=Metrics()), list[float]()

    def train(bandit: Bandit, data: TrainingData, curve: Curve) -> Bandit:
        until = time.monotonic() + hung_seconds
        while time.monotonic() < until and not told:
            time.sleep(0.25)
            if any(one.name == BEHIND for one in beside.problems([])):
                told.append(float(beside.state()["lag_seconds"]))
        return train_here(bandit, data, curve)

    with _arriving(folder):
        learner = Learner(config, train=train)
        learner.start()
        while not told and learner.step().version in (None, 0):
            time.sleep(_BETWEEN)
    return told[0] if told else hung_seconds


def _killed(folder: Path, kill_seconds: float) -> tuple[float, int, bool]:
    """Return how long an update takes alone, how often it was killed, and if all ends alike."""
    iterations, alone = 500, 0.0
    while alone < 3 * kill_seconds:  # as many as this machine does not do between two kills
        iterations *= 2
        for name in ("alone", "killed"):
            shutil.rmtree(folder / name, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        config = _config(folder / "alone", iterations=iterations, **{"learn.fresh": 100})
        Learner(config).step()  # version 0, which has no training to go on with
        with closing(SqliteLog(folder / "alone" / LOG_FILE)) as log:
            for number in range(120):
                log.append(_visit(number))
        shutil.copytree(folder / "alone", folder / "killed")
        began = time.monotonic()
        assert _ends(config)
        alone = round(time.monotonic() - began, 3)
    there = {"server.data_dir": str(folder / "killed")}
    other = _config(folder / "settings", iterations=iterations, **{"learn.fresh": 100}, **there)
    kills = 0
    while kills < _MOST_KILLS and not _ends(other, kill_seconds):
        kills += 1
    return alone, kills, _hashes(folder / "alone") == _hashes(folder / "killed")


def _hashes(folder: Path) -> list[str]:
    return [one.hash for one in SnapshotStore(folder / "snapshots").list()]


def _ends(config: Config, seconds: float | None = None) -> bool:
    """Make what is due in a process of its own; kill that after so long; return if it ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run_learner(config, once=True)
            status = 0
        finally:
            os._exit(status)
    until = None if seconds is None else time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if until is not None and time.monotonic() >= until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.01)
    return True


@click.command("behind")
@click.option("--train-seconds", type=float, default=8.0, show_default=True)
@click.option("--versions", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--hung-seconds", type=float, default=70.0, show_default=True)
@click.option("--kill-seconds", type=float, default=6.0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def behind_command(
    train_seconds: float, versions: int, hung_seconds: float, kill_seconds: float, as_json: bool
) -> None:
    """Let training be slower than what arrives, hang, and be killed faster than it ends.

    Ends with 1 if a version is later than two trainings, if it takes over a minute to be told, or
    if kills starve the learner.
    """
    report = fall_behind(
        train_seconds=train_seconds,
        versions=versions,
        hung_seconds=hung_seconds,
        kill_seconds=kill_seconds,
    )
    notes = {**asdict(report), "ratio": report.ratio}
    end_with_report(report, notes, as_json=as_json, show=_show, is_met=report.is_met)


def _show(report: BehindReport) -> None:
    lags = ", ".join(f"{lag:.1f}" for lag in report.lags)
    took = f"trainings of {report.train_seconds:g} s, updates of {report.update_seconds:.1f} s"
    click.echo(f"{took}: lags {lags} s, {report.ratio} updates")
    if report.told_seconds is not None:
        click.echo(f"one that hangs: told {report.told_seconds:.1f} s after a version was due")
    alone = f"an update of {report.alone_seconds:.1f} s, killed every {report.kill_seconds:g} s"
    click.echo(
        f"{alone}: {report.kills} kills, {'the same' if report.same else 'another'} snapshot"
    )
