"""Writes the files whose format must stay readable: once, with the code of that day."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from golden_files import ARMS, DIM, FILES, SMALL_BANDIT, features_of, service_config

from fastbandit import Bandit
from fastbandit.learning.learner import Learner
from fastbandit.settings.service import ArmsConfig, SelectConfig
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def make_files() -> None:
    """Write all files anew."""
    shutil.rmtree(FILES, ignore_errors=True)
    bandit = make_bandit(FILES / "bandit")
    for name, dtype in (("frozen", "float32"), ("frozen-int8", "int8")):
        frozen = bandit.freeze(dtype=dtype)
        rows = range(ARMS + 2)
        colours = ["red" if row % 2 else "blue" for row in rows]
        frozen.set_columns({"price": [row / 2 for row in rows], "colour": colours})
        frozen.save(FILES / name)
    make_log(FILES / "log")
    make_service(FILES / "service")
    for name in ("*-lock", ".lock", "*-shm", "*-wal"):  # what is made again when it is needed
        for left in FILES.rglob(name):
            assert left.stat().st_size == 0 or name == "*-shm", f"{left} holds something"
            left.unlink()


def make_bandit(folder: Path) -> Bandit:
    """Save a bandit that learned twice, and whose arms changed."""
    ids = [row if row % 3 == 0 else f"arm-{row}" for row in range(ARMS)]
    arms = features_of(ARMS, seed=1)
    bandit = Bandit(
        arms=arms,
        ids=ids,
        context=DIM,
        reward="real",
        posterior="neural",
        preset=SMALL_BANDIT,
        seed=7,
        progress=False,
    )
    for seed in (2, 3):
        contexts = np.random.default_rng(seed).normal(size=(40, DIM)).astype(np.float32)
        taken = bandit.select(contexts)
        rewards = (contexts * arms[taken.rows[:, 0]]).sum(axis=1)
        bandit.update(contexts=contexts, arms=taken.arms, rewards=rewards)
    bandit.add_arms(features_of(2, seed=4), ids=[("new", 1), 58])
    bandit.discard_arms(["arm-5", 9])
    bandit.select(contexts)
    bandit.save(folder)
    return bandit


def make_log(folder: Path) -> None:
    """Write a log in which every kind of event, and of reward, happens."""
    folder.mkdir(parents=True)
    times = iter(range(START, START + 3600 * SECOND, SECOND))
    log = SqliteLog(folder / "events.db", clock=lambda: next(times))
    for events in _happenings():
        log.append(events)
    log.close()


def _happenings() -> list[list[Event]]:
    one, two = Arm("x", [0.5, 1.0, -1.0], {"price": 3, "colour": "rot é"}), Arm(7, [0.25, 0.0, 2.0])
    terms: dict[str, Any] = {"seed": 2**63 - 1, "version": 3, "catalogue": 1, "wait": 20 * SECOND}
    return [
        [ArmsChanged([one, two])],
        [DecisionMade("d1", [0.1, 0.1 + 0.2, -5.0], ["x", 7], [0.5, 0.25], **terms)],
        [RewardCame("d1", 0.1 + 0.2, "x"), RewardCame("d1", 1.0, 7), RewardCame("d1", 1.0, 7)],
        [RewardCame("d1", 2.0), RewardCame("d1", 2.0, "y"), RewardCame("nobody", 1.0)],
        [
            DecisionMade(
                "d2",
                context=[1.0, 2.0, 3.0],
                arms=["x"],
                scores=[1e-3],
                default_reward=-0.5,
                explored=False,
                epsilon=0.1,
                propensities=[0.75],
                eligible={"price": {"<=": 10}},
                degraded=True,
                decided_by="baseline",
                other=7,
                **terms,
            ),
            DecisionMade("d3", [0.0, 0.0, 0.0], [7], [0.0], adds_up=True, **terms),
            DecisionMade("d4", [0.0, 0.0, 1.0], [7], [0.0], eligible=["x", 7], **terms),
        ],
        [RewardCame("d3", 1.5, part="click"), RewardCame("d3", 2.0, part="sale")],
        [RewardCame("d3", 2.0, part="sale"), RewardCame("d3", 3.0, 7, "sale")],
        [ArmsChanged([Arm("y", [1.0, 1.0, 1.0])], ["x"])],
        *([TimePassed()] for _ in range(20)),
        [RewardCame("d4", 1.0)],
        [DecisionMade("d5", [0.0, 1.0, 0.0], ["y"], [0.0], **{**terms, "catalogue": 17})],
    ]


def make_service(folder: Path) -> None:
    """Let a learner publish three versions from a log; one more is refused."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        arms = Path(name) / "arms.csv"
        _write_arms(arms)
        config = replace(
            service_config(folder),
            arms=ArmsConfig(file=str(arms), columns=("price", "colour")),
            select=SelectConfig(preset=str(SMALL_BANDIT), seed=5),
        )
        learner = Learner(config)
        learner.start()
        assert learner.step().version == 0
        _write_service_log(folder)
        while learner.step().did == "published":
            pass
    store = SnapshotStore(folder / "snapshots")
    assert list(store.versions()) == [0, 1, 2]
    cut = {"seq": 0, "at": 0, "since": 0, "interactions": 0, "held": 0}
    store.refuse(3, {"parent": 2, "cut": cut, "reason": "Its losses are not finite.", "arms": ARMS})
    for note in folder.glob("*.json"):
        note.unlink()


def _write_arms(path: Path) -> None:
    lines = ["id,a,b,c,price,colour"]
    for row, features in enumerate(features_of(ARMS, seed=8).astype(float).round(3).tolist()):
        numbers = ",".join(map(str, features))
        lines.append(f"arm-{row},{numbers},{row},{'red' if row % 2 else 'blue'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_service_log(folder: Path) -> None:
    rng, now = np.random.default_rng(9), START
    log = SqliteLog(folder / "events.db", clock=lambda: now)
    for number in range(75):
        now += SECOND // 10
        context = rng.normal(size=DIM).round(3).tolist()
        arm = f"arm-{rng.integers(ARMS)}"
        made = DecisionMade(f"d{number}", context, [arm], [0.0], number, 0, 0, 10 * SECOND)
        log.append([made, RewardCame(made.id, context[0])])
        if number == 20:
            new = Arm("new", [0.1, 0.2, 0.3], {"price": 99, "colour": "green"})
            log.append([ArmsChanged([new], ["arm-0"])])
    log.close()
