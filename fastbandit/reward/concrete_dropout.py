"""Dropout that learns its own rate: Concrete Dropout (Gal, Hron and Kendall, NeurIPS 2017).

A mask multiplies the inputs of a layer. It is made from uniform numbers that are passed in,
so that one draw can be held still while arms are searched, and repeated later.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

_TEMPERATURE = 0.1
_FIRST_RATE = 0.1


class ConcreteDropout(nn.Module):
    """A learned dropout rate for the `size` inputs of one layer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.logit = nn.Parameter(torch.tensor(math.log(_FIRST_RATE / (1 - _FIRST_RATE))))

    @property
    def rate(self) -> Float[Tensor, ""]:
        return torch.sigmoid(self.logit)

    def mask(self, uniforms: Float[Tensor, "*s H"]) -> Float[Tensor, "*s H"]:
        """Return the factors of the inputs: near 0 (dropped) or near 1 / (1 - rate) (kept)."""
        drop = torch.sigmoid((self.logit + torch.logit(uniforms)) / _TEMPERATURE)
        return (1 - drop) / (1 - self.rate)

    def entropy_penalty(self) -> Float[Tensor, ""]:
        """Return the inputs times the negative entropy of the rate; training makes it small."""
        rate = self.rate
        return self.size * (rate * torch.log(rate) + (1 - rate) * torch.log1p(-rate))
