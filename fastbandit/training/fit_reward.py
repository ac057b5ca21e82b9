"""Minibatch steps on a reward model, and how much of the past it learns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.interfaces import RewardModel
from fastbandit.optim.process_group import SINGLE, Loop, ProcessGroup, share_of
from fastbandit.optim.schedule import cosine_factor, set_rate
from fastbandit.types import Interactions

Curve = Callable[[int, float], None]
"""Called with the iterations done, and the mean loss of the last of them."""

_CURVE_STEP = 50


@part("training", name="reward")
class RewardFit:
    """How long and how fast a reward model learns in one update, and from how much of the past.

    Where rewards drift, the past misleads: only the last `window` interactions are learned, and
    one counts half as much as another that came `half_life` interactions later. None: all of
    them, alike.
    """

    iterations: int = setting(default=1000, least=0)
    batch: int = 256
    rate: float = setting(default=4e-3, above=0)
    weight_decay: float = 0.0
    cosine_schedule: bool = setting(default=True, formerly="is_cooling")
    window: int | None = None
    half_life: float | None = setting(default=None, above=0)


def recall(history: Interactions, settings: RewardFit) -> Interactions:
    """Return what is to be learned of a history: its newest part, each with its weight."""
    if settings.window is not None:
        history = history.take(slice(max(0, len(history) - settings.window), None))
    if settings.half_life is None:
        return history
    ages = np.arange(len(history) - 1, -1, -1)
    faded = 0.5 ** (ages / settings.half_life)
    return replace(history, weights=faded if history.weights is None else faded * history.weights)


def fit_reward(
    model: RewardModel,
    history: Interactions,
    settings: RewardFit,
    *,
    rng: Generator,
    done: Callable[[int], None] = lambda iterations: None,
    curve: Curve | None = None,
    group: ProcessGroup = SINGLE,
) -> None:
    """Let the model learn its history; the learning rate falls to nothing along half a cosine."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:  # all is learned in closed form
        return
    optimiser = torch.optim.Adam(
        parameters, lr=settings.rate, weight_decay=settings.weight_decay, fused=True
    )
    device = parameters[0].device
    rewards = torch.from_numpy(history.rewards)
    sums = None if history.weights is None else torch.from_numpy(history.weights.cumsum())
    loop = Loop(model, optimiser, rng)
    losses, noise = loop.losses, group.noise(rng)
    for iteration in group.iterations(loop, settings.iterations):
        if settings.cosine_schedule:
            set_rate(optimiser, settings.rate * cosine_factor(iteration / settings.iterations))
        rows, weight = share_of(_draw_rows(len(history), sums, settings.batch, rng=rng), group)
        picked = rows.numpy()
        loss = model.loss(
            history.contexts.take(picked),
            history.arms.take(picked),
            rewards[rows].to(device),
            total=history.total,
            rng=noise,
        )
        optimiser.zero_grad()
        (loss * weight).backward()
        group.average(parameters)
        optimiser.step()
        done(iteration + 1)
        if curve is None:
            continue
        losses.append(loss.detach())
        if len(losses) == _CURVE_STEP or iteration + 1 == settings.iterations:
            curve(iteration + 1, float(torch.stack(losses).mean()))
            losses.clear()
    group.check(parameters)


def _draw_rows(count: int, sums: Tensor | None, batch: int, *, rng: Generator) -> Tensor:
    """Draw a minibatch, each interaction as often as its weight says (`sums`: so far)."""
    if sums is None:
        return torch.randint(count, (batch,), generator=rng)
    numbers = torch.rand(batch, generator=rng, dtype=torch.float64) * sums[-1]
    return torch.searchsorted(sums, numbers, right=True).clamp_max(count - 1)
