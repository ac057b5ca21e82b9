"""The loop of the bake-off: one setting, one agent, one seed; time is that of the processor."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, SettingError
from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from fastbandit.types import Decision
from lab.bakeoff.sets import Log, Setting
from lab.experiments.environment import FAR

_FIRST = FAR + 7  # an offset of seeds that nothing else takes

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


class Agent(Protocol):
    """Anything that selects and learns: a bandit, or a peer that answers with rows alone.

    One with `fit(contexts=, arms=, rewards=)` begins from a log by it, others by an update.
    """

    def select(self, contexts: Any, /) -> Decision | Rows: ...

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None: ...


@dataclass(frozen=True)
class Played:
    """What an agent earned in each round, what the best arm would have, and what it cost."""

    rewards: Floats
    best: Floats
    warm_seconds: float
    update_seconds: tuple[float, ...]
    select_seconds: float
    decisions: int

    @property
    def share(self) -> float:
        """The share of the best possible reward."""
        return float(self.rewards.sum() / self.best.sum())

    @property
    def last_quarter(self) -> float:
        """The share in the last quarter of the rounds."""
        first = 3 * len(self.rewards) // 4
        return float(self.rewards[first:].sum() / self.best[first:].sum())

    @property
    def update_cpu_seconds(self) -> float | None:
        """The mean seconds of an update; None where there was none."""
        return float(np.mean(self.update_seconds)) if self.update_seconds else None

    @property
    def decision_cpu_us(self) -> float | None:
        """The mean microseconds of a decision; None where there was none."""
        return 1e6 * self.select_seconds / self.decisions if self.decisions else None


@dataclass
class _Clock:
    """Counts the seconds that the processor works for an agent."""

    warm: float = 0.0
    updates: list[float] = field(default_factory=list)
    select: float = 0.0
    decisions: int = 0


def play(
    setting: Setting,
    agent: Agent,
    *,
    rounds: int,
    batch: int,
    after_batch: Callable[[int], None] = lambda rounds: None,
) -> Played:
    """Play rounds in batches; without a log the arms of the first are the same for all agents."""
    environment = setting.environment
    if environment.size is None or rounds < 1 or batch < 1:
        raise SettingError(
            f"A bake-off needs a catalogue of arms, and rounds and a batch of at least 1: got "
            f"{environment.name} with {environment.size} arms, rounds={rounds} and batch={batch}."
        )
    clock = _Clock()
    if setting.log is not None:
        _begin(agent, setting.log, clock)
    rewards, best = [], []
    for first in range(0, rounds, batch):
        count = min(batch, rounds - first)
        contexts = environment.contexts(first, count)
        if first == 0 and setting.log is None:
            rows = first_rows(environment.seed, count, environment.size)
        else:
            rows = _select(agent, contexts, count, clock)
        rewards.append(environment.expected(first, rows))
        best.append(environment.ceiling(first, count))
        if first + count < rounds:
            observed = environment.observed(first, rows)
            started = time.process_time()
            agent.update(contexts=contexts, arms=rows, rewards=observed)
            clock.updates.append(time.process_time() - started)
        after_batch(first + count)
    return Played(
        rewards=np.concatenate(rewards),
        best=np.concatenate(best),
        warm_seconds=clock.warm,
        update_seconds=tuple(clock.updates),
        select_seconds=clock.select,
        decisions=clock.decisions,
    )


def first_rows(seed: int, count: int, arms: int) -> Rows:
    """Draw the arms of the first batch: any, equally likely, and the same for every agent."""
    root = int(decision_seeds(seed, _FIRST, 1)[0])
    draws = uniforms(decision_seeds(root, 0, count), 1, Stream.UNIFORM_CHOICE)[:, 0]
    return (draws.astype(np.float64) * arms).astype(np.int64)


def _begin(agent: Agent, log: Log, clock: _Clock) -> None:
    """Let an agent learn from a log before the first round."""
    learn = getattr(agent, "fit", agent.update)
    started = time.process_time()
    learn(contexts=log.contexts, arms=log.arms, rewards=log.rewards)
    clock.warm = time.process_time() - started


def _select(agent: Agent, contexts: Any, count: int, clock: _Clock) -> Rows:
    started = time.process_time()
    chosen = agent.select(contexts)
    clock.select += time.process_time() - started
    clock.decisions += count
    rows = np.asarray(chosen.rows[:, 0] if isinstance(chosen, Decision) else chosen, dtype=np.int64)
    if rows.shape != (count,):
        raise InputError(
            f"An agent needs to choose one arm for each of {count} contexts: got rows of shape "
            f"{rows.shape}."
        )
    return rows
