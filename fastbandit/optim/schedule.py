"""The cosine schedule of a learning rate (Loshchilov and Hutter, 2017), without restarts."""

from __future__ import annotations

import math

import torch


def cosine_factor(share: float) -> float:
    """Return the learning rate's factor after a share of the training: 1 falling to 0.01."""
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share))


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Let an optimiser go on with another learning rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate
