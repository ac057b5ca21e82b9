"""Training of a small network over contexts with a head for each arm."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.cores import threads_for
from fastbandit.optim.schedule import set_rate
from fastbandit.reward.context_features import FeatureNetwork
from fastbandit.types import Floats

_STEPS, _BATCH, _RATE = 400, 512, 5e-3
_PENALTY = 0.5
_NOISE = 0.1  # the variance of a reward that penalties are weighed against
_TINY = 1e-9


@threads_for(0)
def fit_features(
    plain: Floats,
    rows: NDArray[np.int64],
    rewards: Floats,
    *,
    arms: int,
    units: int,
    seed: tuple[int, int],
    shares: Floats | None = None,
) -> FeatureNetwork:
    """Train a network from scratch to predict the rewards of the arms that were chosen.

    An interaction is drawn as often as its part of the `shares` says (None: all alike).
    """
    if not units:
        return FeatureNetwork.none()
    number = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    rng = torch.Generator().manual_seed(int(number >> np.uint64(1)))
    inputs, count = plain.shape[1], len(rewards)
    is_real = not ((rewards == 0) | (rewards == 1)).all()
    shift, scale = rewards.mean(), max(float(rewards.std()), _TINY) if is_real else 1.0
    seen = torch.from_numpy(plain).float()
    wanted = torch.from_numpy((rewards - shift) / scale).float()
    chosen = torch.from_numpy(rows)
    odds = None if shares is None else torch.from_numpy(shares)
    total = count if shares is None else float(shares.sum())
    weights = [
        math.sqrt(2.0) * torch.randn(inputs, units, generator=rng),
        torch.zeros(units),
        math.sqrt(2.0 / units) * torch.randn(units, units, generator=rng),
        torch.zeros(units),
        torch.zeros(arms, units),
        torch.zeros(arms),
    ]
    for weight in weights:
        weight.requires_grad_()
    first, first_bias, second, second_bias, heads, constants = weights
    optimiser = torch.optim.Adam(weights, lr=_RATE, fused=True)
    for step in range(_STEPS):
        cosine = 0.5 * (1.0 + math.cos(math.pi * step / _STEPS))
        set_rate(optimiser, _RATE * (0.02 + 0.98 * cosine))
        size = min(count, _BATCH)
        if odds is None:
            picked = torch.randint(count, (size,), generator=rng)
        else:
            picked = torch.multinomial(odds, size, replacement=True, generator=rng)
        arm = chosen[picked]
        hidden = torch.relu(seen[picked] @ first + first_bias)
        hidden = torch.relu(hidden @ second + second_bias)
        predicted = constants[arm] + (hidden * heads[arm]).sum(-1)
        misfit = (predicted - wanted[picked]).square().mean() / (2 * _NOISE)
        loss = misfit + _PENALTY * _penalty(weights, inputs) / total
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    one, two, three, four = (weight.detach().double().numpy() for weight in weights[:4])
    blank = FeatureNetwork(one, two, three, four, np.zeros(units), 1.0)
    said = blank(plain)
    centre = said.mean(axis=0)
    length = max(float(np.linalg.norm(said - centre, axis=1).mean()), _TINY)
    return replace(blank, centre=centre, length=length)


def _penalty(weights: list[Tensor], inputs: int) -> Tensor:
    first, _, second, _, heads, constants = weights
    ends = 4.0 * heads.square().sum() + 10.0 * constants.square().sum()
    return 4.0 * first.square().sum() / inputs + second.square().sum() + ends
