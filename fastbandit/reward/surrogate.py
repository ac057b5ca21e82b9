"""Fit a small network to the deviations of a posterior that are dear to work out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.interfaces import ArmSpace
from fastbandit.optim.nearby import contexts_near, embed_all
from fastbandit.optim.schedule import cosine_factor, set_rate
from fastbandit.reward.network import RewardNetwork
from fastbandit.types import Inputs

_INTERACTIONS, _CHUNK = 16_384, 2048
_ITERATIONS, _BATCH, _RATE = 800, 256, 5e-3
_JITTER = 0.5

Deviations = Callable[[Tensor, Tensor], Tensor]
"""The standard deviation of the reward of each embedded context with its arm."""


def fit_deviations(
    network: RewardNetwork,
    deviations: Deviations,
    arms: ArmSpace,
    embed: Callable[[Inputs], Tensor],
    contexts: Inputs,
    *,
    rng: Generator,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Learn the deviations of random arms for contexts near those of a history.

    Returns their mean and their spread: the network learns them in these units.
    """
    near = contexts_near(embed_all(embed, contexts), _INTERACTIONS, _JITTER, rng=rng)
    some = arms.to_embedding(arms.sample(_INTERACTIONS, rng=rng).points)[0]
    with torch.no_grad():
        parts = zip(near.split(_CHUNK), some.split(_CHUNK), strict=True)
        targets = torch.cat([deviations(*part) for part in parts])
    shift, scale = targets.mean(), targets.std().clamp_min(1e-9)
    targets = (targets - shift) / scale
    optimiser = torch.optim.Adam(list(network.parameters()), lr=_RATE, fused=True)
    network.requires_grad_(True)
    for iteration in range(_ITERATIONS):
        set_rate(optimiser, _RATE * cosine_factor(iteration / _ITERATIONS))
        rows = torch.randint(len(targets), (_BATCH,), generator=rng).to(targets.device)
        loss = (network(near[rows], some[rows]) - targets[rows]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    network.requires_grad_(False)
    return shift, scale
