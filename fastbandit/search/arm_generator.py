"""ArmGenerator: a network that proposes the best arm's coordinates in one pass."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor, nn

from fastbandit.interfaces import ArmSpace
from fastbandit.optim.layers import linear
from fastbandit.score import Score
from fastbandit.search.gradient_ascent import slope_of
from fastbandit.search.ranking import Tally


class ArmGenerator(nn.Module):
    """A network from (context, draw) to `heads` points in the arms' coordinates."""

    def __init__(self, inputs: int, dim: int, *, heads: int, hidden: int, rng: Generator) -> None:
        super().__init__()
        self.inputs, self.dim, self.heads, self.hidden = inputs, dim, heads, hidden
        sizes = ((inputs, hidden), (hidden, hidden), (hidden, heads * dim))
        self.layers = nn.ModuleList(linear(*size, rng=rng) for size in sizes)

    def forward(self, inputs: Float[Tensor, "B I"], arms: ArmSpace) -> Float[Tensor, "B M D"]:
        first, second, last = self.layers
        hidden = F.leaky_relu(second(F.leaky_relu(first(inputs), 0.1)), 0.1)
        points = last(hidden).unflatten(-1, (self.heads, self.dim))  # (B, M, D)
        middle, half = (arms.high + arms.low) / 2, (arms.high - arms.low) / 2
        return middle + half * torch.tanh(points)


def generator_inputs(score: Score, arms: ArmSpace, tally: Tally) -> Float[Tensor, "B I"]:
    """Return what a generator sees: contexts, the draw, the slope in the middle of the arms."""
    middle = ((arms.high + arms.low) / 2).expand(len(score.contexts), 1, -1)
    _, slopes = slope_of(score, middle, tally)
    return torch.cat([score.contexts, score.noise, F.normalize(slopes[:, 0], dim=-1)], dim=1)
