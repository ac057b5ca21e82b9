"""Fair clocks: tasks in alternation, policies that learned the same, arms scored one at a time."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastbandit.bandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, Search
from fastbandit.noise.philox import decision_seeds
from fastbandit.score import Choice, Eligible, Score, Seeds
from fastbandit.settings.files import Settings
from fastbandit.types import Inputs
from lab.experiments.environment import Environment, as_raw

UPDATES, ROUNDS = 2, 500
"""All policies learn so often, from so many rounds each time, before decisions are timed."""

Clock = Callable[[], float]
Task = Callable[[int], object]
"""Something to be timed; called with the number of its round."""
Tick = Callable[[str], None]
"""Called with the name of a task that had its last round."""


# -- alternation


def time_alternately(
    tasks: Mapping[str, Task],
    *,
    least: int,
    most: int,
    seconds: float,
    clock: Clock,
    tick: Tick = lambda name: None,
) -> dict[str, list[float]]:
    """Return the seconds of each round of each task; a noisy moment hits all of them.

    A task is over after `most` rounds, or after `least` once they took so many seconds.
    """
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    todo = list(tasks)
    while todo:
        for name in tuple(todo):
            started = clock()
            tasks[name](len(taken[name]))
            taken[name].append(clock() - started)
            rounds = len(taken[name])
            if rounds >= most or (rounds >= least and sum(taken[name]) >= seconds):
                todo.remove(name)
                tick(name)
    return taken


def over_and_over(task: Task, *, seconds: float, clock: Clock) -> tuple[Task, int]:
    """Return a task that does another as often as takes about so long, and how often that is.

    A task of a millisecond by itself is timed with caches that the one before it left.
    """
    started = clock()
    task(0)
    often = max(1, math.ceil(seconds / max(clock() - started, 1e-6)))

    def repeat(number: int) -> None:
        for _ in range(often):
            task(number)

    return repeat, often


def clock_on(device: str) -> Clock:
    """Return a clock that lets a GPU end its work before it is read."""
    if not device.startswith("cuda"):
        return time.perf_counter

    def clock() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return clock


def warm_up(device: str) -> None:
    """Train and ask two tiny bandits: what torch does once in a process is not to be timed."""
    hasty = {"iterations": 2}
    quick = Settings(sections={"training.reward": hasty, "training.generator": hasty})
    contexts, arms = np.eye(4), np.arange(64.0).reshape(16, 4)
    for exploration in ("ts", "ucb"):
        bandit = Bandit(
            arms=arms,
            context=4,
            reward="real",
            exploration=exploration,
            search="generator",
            preset=quick,
            device=device,
            progress=False,
        )
        bandit.update(contexts=contexts, arms=range(4), rewards=[0.0, 1.0, 2.0, 3.0])
        bandit.select(contexts)


def machine_of(device: str) -> str:
    """Name the processor or the GPU that things are timed on."""
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return f"{_processor()}, one thread"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, named), platform.processor() or platform.machine())


# -- what is learned, and what is asked


@dataclass(frozen=True)
class TrainingBatch:
    """A batch of rounds that were played, as an update takes it."""

    contexts: Any
    arms: Any
    rewards: Any


def training_batches_for(environment: Environment, agent: Bandit) -> list[TrainingBatch]:
    """Let an agent that knows nothing choose evenly among the arms, in the first rounds."""
    size = _training_rounds(environment)
    batches = []
    for first in range(0, UPDATES * size, size):
        contexts = environment.contexts(first, size)
        decision = agent.select(contexts)
        chosen = decision.arms if environment.size is None else decision.rows[:, 0]
        batches.append(TrainingBatch(contexts, decision.arms, environment.observed(first, chosen)))
    return batches


def learning(agent: Bandit, batches: Sequence[TrainingBatch]) -> Task:
    """Make the task of learning a batch a round."""

    def task(number: int) -> None:
        batch = batches[number]
        agent.update(
            contexts=batch.contexts,
            arms=batch.arms,
            rewards=batch.rewards,
        )

    return task


def requests_after(environment: Environment, count: int) -> Inputs:
    """Return `count` contexts of the rounds after the training, over and over if they are few."""
    first = UPDATES * _training_rounds(environment)
    left = count if environment.rounds is None else min(count, environment.rounds - first)
    inputs = environment.context.read(environment.contexts(first, left), what="contexts")
    return inputs.take(np.arange(count) % left)


def _training_rounds(environment: Environment) -> int:
    """Return the rounds of one training batch; a short dataset keeps some for requests."""
    if environment.rounds is None:
        return ROUNDS
    if environment.rounds <= UPDATES:
        raise SettingError(
            f"Run times need at least {UPDATES + 1} rounds: {environment.name} has "
            f"{environment.rounds}. Choose another dataset."
        )
    return min(ROUNDS, environment.rounds // (UPDATES + 1))


# -- many requests at once, or one; arms together, or one at a time


def batch_of(agent: Bandit, contexts: Inputs, size: int) -> Task:
    """Make the task of deciding for the first `size` contexts in one call."""
    raw, seeds = as_raw(contexts.take(slice(size))), decision_seeds(0, 0, size)
    return lambda number: agent.select(raw, seeds=seeds)


def each_request(agent: Bandit, contexts: Inputs, count: int) -> Task:
    """Make the task of deciding for one of `count` contexts a round."""
    asked = [(as_raw(row), seeds) for row, seeds in _one_by_one(contexts, count)]
    return lambda number: agent.select(asked[number][0], seeds=asked[number][1])


def each_arm(agent: Bandit, contexts: Inputs, count: int) -> Task:
    """Make the same task with arms that are scored one at a time."""
    policy = replace(agent.policy, search=OneAtATime(agent.policy.search))
    asked = _one_by_one(contexts, count)
    return lambda number: policy.select(asked[number][0], seeds=asked[number][1])


def _one_by_one(contexts: Inputs, count: int) -> list[tuple[Inputs, Seeds]]:
    return [(contexts.take([row]), decision_seeds(0, row, 1)) for row in range(count)]


def fitting_size(agent: Bandit, contexts: Inputs, *, size: int) -> int:
    """Decide for `size` contexts once, untimed; return how many of them a GPU has room for."""
    while size:
        try:
            batch_of(agent, contexts, size)(0)
            return size
        except torch.cuda.OutOfMemoryError:
            size //= 2
        torch.cuda.empty_cache()
    raise MemoryError


@dataclass(frozen=True)
class OneAtATime:
    """A search as it is, except that its score sees one point at a time."""

    search: Search

    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        slow = one_at_a_time(score)
        return self.search.best(slow, arms, count=count, seeds=seeds, eligible=eligible)


def one_at_a_time(score: Score) -> Score:
    """Return the same score, worked out for one point of each context after another."""
    return replace(score, function=_OneByOne(score))


@dataclass(frozen=True)
class _OneByOne:
    score: Score

    def __call__(self, points: Tensor) -> Tensor:
        return torch.cat([self.score(point) for point in points.split(1, dim=1)], dim=1)

    def slope(self, points: Tensor) -> tuple[Tensor, Tensor]:
        found = [self.score.slope(point) for point in points.split(1, dim=1)]
        scores, slopes = zip(*found, strict=True)
        return torch.cat(scores, dim=1), torch.cat(slopes, dim=1)
