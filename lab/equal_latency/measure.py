"""What a decision and an arm cost once all rounds were played: time of the processor, bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from fastbandit.bandit import Bandit
from fastbandit.features.kinds import Dense
from lab.bakeoff.contextual_bandits import ContextualBandits
from lab.bakeoff.play import Agent
from lab.bakeoff.ridge import Disjoint
from lab.bakeoff.sets import Setting
from lab.equal_latency.two_towers import TwoTowers
from lab.experiments.held_memory import held_bytes
from lab.experiments.linear_view import Projected
from lab.planning.timing import decide_for

ASKED = 64
_SECONDS = 1.0


def measure(agent: Agent, setting: Setting) -> dict[str, Any]:
    """Return the median microseconds of one decision, how many were timed, and bytes an arm."""
    environment = setting.environment
    count = min(ASKED, environment.rounds or ASKED)
    decide = decision_of(agent, environment.contexts(0, count), count, environment.context)
    decide(0)  # what is made once, such as compiled code, is no part of a decision
    taken = decide_for(decide, _SECONDS, first=1, clock=time.process_time)
    return {
        "p50_us": 1e6 * median(taken),
        "timed": len(taken),
        "bytes_per_arm": bytes_per_arm(agent, environment.size or 1),
    }


def decision_of(agent: Agent, contexts: Any, count: int, kind: Any) -> Callable[[int], object]:
    """Return what makes the decision of a number, by the quickest way that the agent has."""
    if isinstance(agent, Bandit):
        frozen = agent.freeze()
        rows = [_taken(contexts, row if isinstance(kind, Dense) else [row]) for row in range(count)]
        return lambda number: frozen.select_one(rows[number % count], seed=number)
    if isinstance(agent, TwoTowers) and isinstance(kind, Dense):
        return lambda number: agent.select_one(contexts[number % count])
    parts = [_taken(contexts, slice(row, row + 1)) for row in range(count)]
    return lambda number: agent.select(parts[number % count])


def _taken(contexts: Any, rows: Any) -> Any:
    """Return some of raw contexts, which may be features beside ids."""
    return tuple(part[rows] for part in contexts) if isinstance(contexts, tuple) else contexts[rows]


def bytes_per_arm(agent: Agent, arms: int) -> float | None:
    """Return what an arm takes, without what all arms share: as counted, or as held in memory."""
    if isinstance(agent, Bandit):
        return agent.freeze().bytes_per_arm
    if isinstance(agent, Projected):
        vectors = getattr(getattr(agent.agent, "_model", None), "arms", None)
        return None if vectors is None else vectors.nbytes / arms
    if isinstance(agent, Disjoint):
        return held_bytes(agent.posteriors) / arms
    if isinstance(agent, ContextualBandits):
        return held_bytes(agent.model) / arms
    return getattr(agent, "bytes_per_arm", None)
