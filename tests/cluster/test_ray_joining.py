"""Workers of Ray join a log as a learner does, and a learner makes the same versions by them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.cli import learn as learn_command
from fastbandit.cluster.engine import Engine
from fastbandit.cluster.ray_joining import RayJoin
from fastbandit.learning import learner as learning
from fastbandit.learning.joining import Joiner
from fastbandit.storage.events import DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.sqlite_log import SqliteLog

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray warns of itself
sys.path.append(str(Path(__file__).parent.parent / "learning"))  # for little_service


def events_of(count: int) -> list[Event]:
    """Give decisions of two arms, rewards for some of them, and time that passes."""
    numbers, events = np.random.default_rng(2), []
    for number in range(count):
        events.append(
            DecisionMade(f"d{number}", [float(number)], ["a", 1], [], 0, 0, 0, wait=2 + number % 7)
        )
        asked = f"d{numbers.integers(max(0, number - 3), number + 1)}"
        arm = ["a", 1][int(numbers.integers(2))]
        events += [RewardCame(asked, float(number), arm), TimePassed()]
    return events


def fed(log: Any, until: int) -> Joiner:
    joiner = Joiner()
    for event in log.read(limit=until):
        joiner.feed(event)
    return joiner


@pytest.fixture(params=["sqlite", "postgres"])
def make_log(request: Any, tmp_path: Path, url: str) -> Callable[..., tuple[Any, str]]:
    def make(clock: Callable[[], int]) -> tuple[Any, str]:
        if request.param == "sqlite":
            return SqliteLog(tmp_path / "events.db", clock=clock), ""
        return PostgresLog(url, clock=clock), url

    return make


def test_workers_join_what_a_learner_joins(
    make_log: Callable[..., tuple[Any, str]], tmp_path: Path, ray_engine: Engine
) -> None:
    clock = [10]
    log, url = make_log(lambda: clock[0])
    with closing(log):
        for event in events_of(60):
            clock[0] += 1
            log.append([event])
        before, whole = fed(log, 50), fed(log, 1_000)
        found = RayJoin(url, tmp_path, ray_engine.workers)(before, until=log.last)

    assert len(whole.interactions) > 60
    assert before.interactions + found.interactions == whole.interactions
    assert found.seqs.tolist() == list(range(51, 181))


def test_a_learner_on_ray_makes_a_version_of_the_same_pairs(
    tmp_path: Path, ray_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from little_service import LittleLog, learn_all, little_config, store_of

    configs = []
    for name in ("local", "ray"):
        (tmp_path / name).mkdir()
        configs.append(little_config(tmp_path / name))
        LittleLog(tmp_path / name).decide(25)
    local, ray = configs
    learn_all(learning.Learner(local))
    monkeypatch.setattr(learning, "FAR", 3)
    monkeypatch.setattr(os, "nice", lambda more: 0)
    monkeypatch.setattr(learn_command, "read_service", lambda *told: ray)
    asked = ["--engine", "ray", "--workers", "2", "--once"]
    done = CliRunner().invoke(learn_command.command, asked)

    assert done.exit_code == 0, done.exception
    ours, theirs = (store_of(config).get(1) for config in configs)
    assert (ours.cut, ours.notes["learned"]) == (theirs.cut, theirs.notes["learned"])
