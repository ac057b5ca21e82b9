"""What GANBandit's updates cost, measured by those of Exhaust on the same data, by turns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lab.experiments.environment import Environment
from lab.experiments.policies import player_for
from lab.experiments.run import Player

_UPDATES = 4


def time_updates(
    environment: Environment, *, preset: str, seed: int, rounds: int, batch: int, device: str
) -> dict[str, Any]:
    """Give the ratio of median update times, GANBandit ÷ Exhaust, for TS and for UCB."""
    ratios: dict[str, Any] = {}
    for explore in ("TS", "UCB"):
        gan, exhaust = (
            player_for(name, environment, preset=preset, seed=seed, rounds=rounds, device=device)
            for name in (f"GANBandit {explore}", f"Exhaust {explore}")
        )
        seconds = _by_turns(environment, (gan, exhaust), rounds=rounds, batch=batch)
        ratios |= {explore: seconds[0] / seconds[1], f"{explore} seconds": seconds}
    return {"ratios": ratios}


def _by_turns(
    environment: Environment, pair: tuple[Player, Player], *, rounds: int, batch: int
) -> list[float]:
    seconds: list[list[float]] = [[], []]
    for first in range(0, min(rounds, _UPDATES * batch), batch):
        contexts = environment.contexts(first, min(batch, rounds - first))
        decision = pair[0].select(contexts)
        chosen = decision.arms if environment.size is None else decision.rows[:, 0]
        rewards = environment.observed(first, chosen)
        for player, times in zip(pair, seconds, strict=True):
            started = time.perf_counter()
            player.update(contexts=contexts, arms=decision.arms, rewards=rewards)
            times.append(time.perf_counter() - started)
    return [float(np.median(times)) for times in seconds]
