"""Layers initialised from an rng alone, never from torch's global state."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Generator, nn


def linear(inputs: int, outputs: int, *, rng: Generator) -> nn.Linear:
    """Make a linear layer, its weights even within ±1/√inputs, its bias zero."""
    return _made(nn.Linear, inputs, outputs, fan=inputs, rng=rng)


def convolution(inputs: int, outputs: int, *, rng: Generator) -> nn.Conv2d:
    """Make a 3 x 3 convolution that keeps the size of its planes."""
    return _made(nn.Conv2d, inputs, outputs, 3, fan=9 * inputs, rng=rng, padding=1)


def _made(kind: type[nn.Module], *sizes: int, fan: int, rng: Generator, **terms: int) -> Any:
    is_real = torch.get_default_device().type != "meta"  # else only its size is looked at
    layer: Any = nn.utils.skip_init(kind, *sizes, device="cpu" if is_real else "meta", **terms)
    with torch.no_grad():
        layer.weight.uniform_(-1 / math.sqrt(fan), 1 / math.sqrt(fan), generator=rng)
        layer.bias.zero_()
    return layer
