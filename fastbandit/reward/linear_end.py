"""What models share whose posterior is over the linear end of their network alone.

The linear end is all that acts linearly on the output: the last hidden units, the inputs of the
wide path, and the constant. For a fixed context any weights of it fold as cheaply as the
trained ones.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.interfaces import CompiledModel, Plan
from fastbandit.reward.model import NeuralReward, box_muller, no_noise, normals_need
from fastbandit.reward.network import Folded
from fastbandit.score import Score


class LinearEnd(NeuralReward):
    """A network whose linear end has weights about a `centre`: covariance `spread` x its transpose.

    `fit_posterior` works both out; `spread` has `columns` columns (None: one for each weight).
    """

    centre: Tensor
    spread: Tensor
    draws_from = "last-layer"
    """How compiled code draws the weights (see `CompiledModel`)."""

    def __init__(
        self, plan: Plan, prior_precision: float, *, columns: int | None = None, rng: Generator
    ) -> None:
        super().__init__(plan, dropout=False, rng=rng)
        self.prior_precision = prior_precision
        width = self.network.input_sizes[-1]
        self.parts = [width, self.network.input_sizes[0] if self.settings.wide else 0, 1]
        size = sum(self.parts)
        self.noise_size = columns or normals_need(size)
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("spread", torch.eye(size, columns or size) / prior_precision**0.5)

    def compiled(self, asks: str) -> CompiledModel:
        mean = super().compiled("mean" if asks == "draw" else asks)
        last, wide, constant = self.centre.split(self.parts)
        mean = replace(mean, last=(last, wide, constant))
        if asks != "draw":
            return mean
        return replace(mean, draws_from=self.draws_from, centre=self.centre, spread=self.spread)

    def shift(self, uniforms: Float[Tensor, "B Z"]) -> Float[Tensor, "B W"]:
        """Return how far drawn weights lie from the centre."""
        return box_muller(uniforms, len(self.centre)) @ self.spread.T

    def mean(self, contexts: Float[Tensor, "B E"]) -> Score:
        return Score(self._fold(contexts, self.centre[None]), contexts, no_noise(contexts))

    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        shift = scale * self.shift(uniforms)
        folded = self._fold(contexts, self.centre + shift)
        deviation = self.spread.square().sum(1).sqrt().clamp_min(1e-9)
        return Score(folded, contexts, shift / deviation)

    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        folded = self._fold(contexts, self.centre[None])

        def bound(arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
            hidden = folded.hidden(arms)  # (B, K, H)
            arms = arms.expand(len(contexts), -1, -1)
            features = self._join(hidden, contexts[:, None].expand_as(arms), arms)
            return folded(arms) + width * (features @ self.spread).square().sum(-1).sqrt()

        return Score(bound, contexts, no_noise(contexts))

    def features(self, contexts: Tensor, arms: Tensor) -> Tensor:
        """Return what the linear end sees of interactions: (n, W)."""
        hidden = self.network.features(contexts, arms)
        for layer in self.network.layers[:-1]:
            hidden = F.leaky_relu(layer(hidden), self.settings.leak)
        return self._join(hidden, contexts, arms)

    def trained_weights(self) -> Tensor:
        """Return the weights of the linear end that training found: (W,)."""
        last, wide = self.network.layers[-1], self.network.wide
        parts = [last.weight[0]] if wide is None else [last.weight[0], wide.weight[0]]
        constant = last.bias if wide is None else last.bias + wide.bias
        return torch.cat([*parts, constant])

    def _fold(self, contexts: Float[Tensor, "B E"], weights: Float[Tensor, "b W"]) -> Folded:
        last, wide, constant = weights.split(self.parts, dim=1)
        folded = self.network.fold(contexts)
        count = len(contexts)
        folded = replace(folded, last=last.expand(count, -1), constant=constant[:, 0].expand(count))
        if not self.settings.wide:
            return folded
        action, more = self.network.act_on_arm(wide[:, None], contexts)
        return replace(folded, wide=action[:, 0], constant=folded.constant + more[:, 0])

    def _join(self, hidden: Tensor, contexts: Tensor, arms: Tensor) -> Tensor:
        parts = [hidden, self.network.features(contexts, arms)] if self.settings.wide else [hidden]
        return torch.cat([*parts, torch.ones_like(hidden[..., :1])], dim=-1)
