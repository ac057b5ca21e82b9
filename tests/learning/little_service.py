"""A data folder with a few arms and a log, for tests of the learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fastbandit.bandit import Bandit
from fastbandit.learning.learner import Learner, Step
from fastbandit.learning.service_data import ServiceData
from fastbandit.learning.training_history import TrainingHistory
from fastbandit.settings.rewards import RewardConfig
from fastbandit.settings.service import (
    ArmsConfig,
    Config,
    ContextConfig,
    LearnConfig,
    SelectConfig,
    ServerConfig,
)
from fastbandit.storage.events import Arm, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot
from fastbandit.storage.sqlite_log import SqliteLog

SECOND = 1_000_000
_SHORT = """format = 1
[training.reward]
iterations = 20
batch = 16
[training.generator]
iterations = 10
batch = 16
pairs = 32
sample = 16
"""


def little_config(folder: Path, *, arms: int = 10, **learn: Any) -> Config:
    """Write arms with three features and a price, and return a config that learns in a blink."""
    features = np.random.default_rng(5).normal(size=(arms, 3)).round(3)
    rows = [f"arm {n},{a},{b},{c},{n}" for n, (a, b, c) in enumerate(features.tolist())]
    (folder / "arms.csv").write_text("\n".join(["id,a,b,c,price", *rows]))
    (folder / "short.toml").write_text(_SHORT)
    minimum = {"min_quality": 0.0}
    return Config(
        server=ServerConfig(data_dir=str(folder)),
        context=ContextConfig(features=2),
        arms=ArmsConfig(file=str(folder / "arms.csv"), columns=("price",)),
        reward=RewardConfig(kind="real", wait_seconds=10.0),
        select=SelectConfig(preset=str(folder / "short.toml")),
        learn=LearnConfig(**{"fresh": 20, "held_out": 0.2, **minimum, **learn}),
    )


class LittleLog:
    """Writes decisions and their rewards into a log, a tenth of a second apart."""

    def __init__(self, folder: Path) -> None:
        self.now, self._numbers, self._made = SECOND, np.random.default_rng(6), 0
        self._log = SqliteLog(folder / "events.db", clock=lambda: self.now)

    def write(self, *events: Event) -> int:
        """Write events; return the number of the last."""
        return self._log.append(events)[-1].seq

    def close(self) -> None:
        """Let another writer have the log."""
        self._log.close()

    def decide(
        self,
        count: int,
        *,
        arms: int = 10,
        version: int = 0,
        reward: bool = True,
        features: list[float] | None = None,
    ) -> None:
        """Choose random arms for random contexts; a reward is the first number of the context.

        With `features` the arms come with the requests.
        """
        for _ in range(count):
            self.now += SECOND // 10
            context = self._numbers.normal(size=2).round(3).tolist()
            arm = f"arm {self._numbers.integers(arms)}"
            made = DecisionMade(
                id=f"d{self._made}",
                context=context,
                arms=[arm],
                scores=[0.0],
                seed=self._made,
                version=version,
                catalogue=0,
                wait=10 * SECOND,
                offered=None if features is None else [Arm(arm, features)],
            )
            came = [RewardCame(made.id, context[0])] if reward else []
            self.write(made, *came)
            self._made += 1

    def let_pass(self, seconds: float) -> None:
        """Let time go on."""
        self.now += int(seconds * SECOND)
        self.write(TimePassed())


def learn_all(learner: Learner) -> list[Step]:
    """Let a learner make what is due; return its steps, the last of which waited."""
    learner.start()
    steps = [learner.step()]
    while steps[-1].did != "waited":
        steps.append(learner.step())
    return steps


def learned_by(config: Config) -> Bandit:
    """Return the bandit that is served, with all that it has learned."""
    bandit = Bandit.load(current_of(config).bandit)
    return TrainingHistory(ServiceData(config)).of(bandit, current_of(config))[0]


def store_of(config: Config) -> SnapshotStore:
    """Return the store of a config."""
    return SnapshotStore(Path(config.server.data_dir) / "snapshots")


def current_of(config: Config) -> Snapshot:
    """Return the version that is served."""
    current = store_of(config).current()
    assert current is not None
    return current
