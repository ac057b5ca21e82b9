"""Minibatch steps on a reward model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator

from fastbandit.interfaces import RewardModel
from fastbandit.types import Interactions

Curve = Callable[[int, float], None]
"""Told the iterations done, and the mean loss of the last of them."""

_CURVE_STEP = 50


@dataclass(frozen=True)
class RewardFit:
    """How long and how fast a reward model learns in one update."""

    iterations: int = 1000
    batch: int = 256
    rate: float = 4e-3
    weight_decay: float = 0.0
    is_cooling: bool = True


def fit_reward(
    model: RewardModel,
    history: Interactions,
    settings: RewardFit,
    *,
    rng: Generator,
    done: Callable[[int], None] = lambda iterations: None,
    curve: Curve | None = None,
) -> None:
    """Teach the model its history; the learning rate falls to nothing along half a cosine."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.Adam(
        parameters, lr=settings.rate, weight_decay=settings.weight_decay, fused=True
    )
    device = parameters[0].device
    rewards = torch.from_numpy(history.rewards)
    losses: list[torch.Tensor] = []
    for iteration in range(settings.iterations):
        if settings.is_cooling:
            set_rate(optimiser, settings.rate * cooled(iteration / settings.iterations))
        rows = torch.randint(len(history), (settings.batch,), generator=rng)
        picked = rows.numpy()
        loss = model.loss(
            history.contexts.take(picked),
            history.arms.take(picked),
            rewards[rows].to(device),
            total=len(history),
            rng=rng,
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        done(iteration + 1)
        if curve is None:
            continue
        losses.append(loss.detach())
        if len(losses) == _CURVE_STEP or iteration + 1 == settings.iterations:
            curve(iteration + 1, float(torch.stack(losses).mean()))
            losses.clear()


def cooled(share: float) -> float:
    """Give the learning rate's factor after a share of the training: 1 falling to 0.01."""
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share))


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate
