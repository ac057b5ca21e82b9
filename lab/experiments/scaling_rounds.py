"""How time and memory grow with the rounds that were learned, for policies that keep them all.

Gaussian processes keep every point, up to 1,000 different ones; a tree has two partitions more
after each round. All learn the same rewards, of points drawn evenly from the box of a continuum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.experiments.continuum import Continuum
from lab.experiments.held_memory import held_bytes
from lab.experiments.policies import agent_for
from lab.experiments.run import Agent
from lab.experiments.slopes import format_bytes, growth_table, slope_numbers, slope_of
from lab.experiments.timing import Tick
from lab.printing import format_seconds

POLICIES = ("GP-UCB", "GP-TS", "HOO")
FUNCTION = "sines"
CAPPED = 1000
"""Different points that the Gaussian processes keep."""
_FEWEST, _REPETITIONS = 5, 20


@dataclass(frozen=True)
class Spot:
    """A policy that has learned so many rounds, and the points that it learns next."""

    policy: str
    rounds: int
    agent: Agent
    environment: Continuum
    points: NDArray[np.float64]

    @property
    def name(self) -> str:
        return f"{self.policy}, {self.rounds:,} rounds"

    def learn(self, first: int, count: int) -> None:
        """Learn the rewards of some points."""
        points = self.points[first : first + count]
        self.agent.update(
            contexts=self.environment.contexts(first, count),
            arms=points,
            rewards=self.environment.observed(first, points),
        )


def measure_rounds(
    rounds: Sequence[int],
    policies: Sequence[str],
    *,
    seconds: float,
    tick: Tick = lambda name: None,
) -> list[dict[str, Any]]:
    """Return seconds of an update with one reward and of the decision after it, and bytes.

    All policies learn first, then they are timed in alternation. Each is timed at least 5 times,
    and no more than 20 times or after so many seconds.
    """
    environment = Continuum(FUNCTION, seed=0)
    points = np.random.default_rng(0).random((max(rounds) + _REPETITIONS, environment.arms.dim))
    spots = []
    for count in sorted(rounds):  # each policy comes after the same other one, at any size
        for policy in policies:
            agent = agent_for(policy, environment, seed=0, rounds=count)
            spots.append(spot := Spot(policy, count, agent, environment, points))
            spot.learn(0, count)
            tick(spot.name)
    taken = _time(spots, seconds=seconds, tick=tick)
    return [_result(policy, [s for s in spots if s.policy == policy], taken) for policy in policies]


Times = dict[str, list[tuple[float, float]]]
"""Seconds of updates and of decisions, by the name of a spot."""


def _time(spots: Sequence[Spot], *, seconds: float, tick: Tick) -> Times:
    taken: Times = {spot.name: [] for spot in spots}
    for number in range(_REPETITIONS):
        for spot in spots:
            times = taken[spot.name]
            if number >= _FEWEST and sum(map(sum, times)) >= seconds:
                continue
            contexts = spot.environment.contexts(0, 1)
            started = perf_counter()
            spot.learn(spot.rounds + number, 1)
            learned = perf_counter()
            spot.agent.select(contexts)
            times.append((learned - started, perf_counter() - learned))
    for spot in spots:
        tick(spot.name)
    return taken


def _result(policy: str, spots: Sequence[Spot], taken: Times) -> dict[str, Any]:
    rounds = [spot.rounds for spot in spots]
    updates, decisions = ([median(one) for one in _columns(spots, taken, at)] for at in (0, 1))
    held = [held_bytes(spot.agent) for spot in spots]
    return {
        "policy": policy,
        "dataset": FUNCTION,
        "rounds": rounds,
        "seconds": decisions,
        "update_seconds": updates,
        "bytes": held,
        "repetitions": [len(taken[spot.name]) for spot in spots],
        **slope_numbers("slope", slope_of(rounds, decisions)),
        **slope_numbers("update_slope", slope_of(rounds, updates)),
        **slope_numbers("memory_slope", slope_of(rounds, held)),
    }


def _columns(spots: Sequence[Spot], taken: Times, at: int) -> list[list[float]]:
    return [[times[at] for times in taken[spot.name]] for spot in spots]


def rounds_text(results: Sequence[dict[str, Any]]) -> str:
    """Format what was found: decisions, updates, memory."""
    parts = []
    for title, of, form in (
        ("A decision after a reward", "seconds", format_seconds),
        ("The update with that reward", "update_seconds", format_seconds),
        ("Memory held", "bytes", format_bytes),
    ):
        table = growth_table(results, over="rounds", of=of, letter="T", form=form, until=CAPPED)
        parts.append(f"{title}:\n\n{table.to_markdown()}")
    return "\n\n".join(parts)
