"""The loop, read top to bottom: one environment, one policy, one seed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fastbandit.errors import SettingError
from fastbandit.types import Audit, Decision
from lab.experiments.environment import Environment, Floats


class Agent(Protocol):
    """Anything that selects and learns: a bandit or a baseline."""

    def select(self, contexts: Any, /) -> Decision: ...

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None: ...


@dataclass(frozen=True)
class Run:
    """What one policy did in one environment; rewards are the environment's, never claimed."""

    rewards: Floats
    best: Floats
    qualities: tuple[float, ...]
    evaluations: float
    lookups: float
    select_seconds: float
    update_seconds: float

    @property
    def share(self) -> float:
        """The share of the best possible reward that was earned."""
        return float(self.rewards.sum() / self.best.sum())

    @property
    def quality(self) -> float | None:
        """The mean argmax quality of all audits, one after each update."""
        return float(np.mean(self.qualities)) if self.qualities else None


def run(
    environment: Environment,
    agent: Agent,
    *,
    rounds: int,
    batch: int,
    audits: int = 50,
    after_batch: Callable[[int], None] = lambda rounds: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Run:
    """Play `rounds` decisions in batches; audit `audits` contexts of each batch beforehand.

    Selects and updates are timed by `clock`.
    """
    if rounds < 1 or batch < 1:
        raise SettingError(
            f"A run needs rounds and a batch of at least 1: got rounds={rounds} and "
            f"batch={batch}. Raise them."
        )
    rewards, best, decisions, qualities = [], [], [], []
    select_seconds, update_seconds = [], []
    for first in range(0, rounds, batch):
        count = min(batch, rounds - first)
        contexts = environment.contexts(first, count)
        if first and audits and hasattr(agent, "audit"):
            report: Audit = agent.audit(environment.contexts(first, min(audits, count)))
            qualities.append(report.quality)

        started = clock()
        decision = agent.select(contexts)
        select_seconds.append((clock() - started) / count)

        chosen = decision.arms if environment.size is None else decision.rows[:, 0]
        rewards.append(environment.expected(first, chosen))
        best.append(environment.ceiling(first, count))
        decisions.append(decision)
        if first + count < rounds:
            observed = environment.observed(first, chosen)
            started = clock()
            agent.update(contexts=contexts, arms=decision.arms, rewards=observed)
            update_seconds.append(clock() - started)
        after_batch(first + count)
    learned = decisions[1:] or decisions
    return Run(
        rewards=np.concatenate(rewards),
        best=np.concatenate(best),
        qualities=tuple(qualities),
        evaluations=float(np.mean([d.evaluations.mean() for d in learned])),
        lookups=float(np.mean([d.lookups.mean() for d in learned])),
        select_seconds=float(np.median(select_seconds[1:] or select_seconds)),
        update_seconds=float(np.median(update_seconds)) if update_seconds else 0.0,
    )
