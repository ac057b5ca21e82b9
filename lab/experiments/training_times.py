"""What GANBandit's updates cost, measured by those of Exhaust on the same data, in alternation."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lab.experiments.environment import Environment
from lab.experiments.policies import agent_for
from lab.experiments.run import Agent

_UPDATES = 4


def time_updates(
    environment: Environment, *, preset: str, seed: int, rounds: int, batch: int, device: str
) -> dict[str, Any]:
    """Return the ratio of median update times, GANBandit ÷ Exhaust, for TS and for UCB."""
    ratios: dict[str, Any] = {}
    for exploration in ("TS", "UCB"):
        gan, exhaust = (
            agent_for(name, environment, preset=preset, seed=seed, rounds=rounds, device=device)
            for name in (f"GANBandit {exploration}", f"Exhaust {exploration}")
        )
        seconds = _alternately(environment, (gan, exhaust), rounds=rounds, batch=batch)
        ratios |= {exploration: seconds[0] / seconds[1], f"{exploration} seconds": seconds}
    return {"ratios": ratios}


def _alternately(
    environment: Environment, agents: tuple[Agent, Agent], *, rounds: int, batch: int
) -> list[float]:
    seconds: list[list[float]] = [[], []]
    for first in range(0, min(rounds, _UPDATES * batch), batch):
        contexts = environment.contexts(first, min(batch, rounds - first))
        decision = agents[0].select(contexts)
        chosen = decision.arms if environment.size is None else decision.rows[:, 0]
        rewards = environment.observed(first, chosen)
        for agent, times in zip(agents, seconds, strict=True):
            started = time.perf_counter()
            agent.update(contexts=contexts, arms=decision.arms, rewards=rewards)
            times.append(time.perf_counter() - started)
    return [float(np.median(times)) for times in seconds]
