"""Layers initialised from an rng alone, never from torch's global state."""

from __future__ import annotations

import math

import torch
from torch import Generator, nn


def linear(inputs: int, outputs: int, *, rng: Generator) -> nn.Linear:
    """Make a linear layer, its weights even within ±1/√inputs, its bias zero."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs, device=_device())
    bound = 1 / math.sqrt(inputs)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=rng)
        layer.bias.zero_()
    return layer


def convolution(inputs: int, outputs: int, *, rng: Generator) -> nn.Conv2d:
    """Make a 3 x 3 convolution that keeps the size of its planes."""
    layer = nn.utils.skip_init(nn.Conv2d, inputs, outputs, 3, padding=1, device=_device())
    bound = 1 / math.sqrt(9 * inputs)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=rng)
        layer.bias.zero_()
    return layer


def _device() -> str:
    """Return where a layer is made: by an rng of the CPU, or nowhere, to see how large it is."""
    return "meta" if torch.get_default_device().type == "meta" else "cpu"
