"""DropoutReward: a posterior from dropout masks that are held still while arms are searched."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part
from fastbandit.interfaces import CompiledModel, Plan
from fastbandit.noise.philox import Stream, decision_seeds, uniforms
from fastbandit.reward.model import NeuralReward, no_noise
from fastbandit.score import Score

_POSTERIOR_DRAWS = 16


@part("posterior", name="dropout", formerly=("DropoutDoubt",))
class DropoutPosterior:
    """Uncertainty from dropout masks whose rates are learned (Concrete Dropout)."""

    def build(self, plan: Plan, *, rng: Generator) -> DropoutReward:
        return DropoutReward(plan, rng=rng)


class DropoutReward(NeuralReward):
    """Rewards with Concrete Dropout before each layer; a set of masks is a posterior draw."""

    def __init__(self, plan: Plan, *, rng: Generator) -> None:
        super().__init__(plan, dropout=True, rng=rng)
        self.noise_size = sum(self.network.input_sizes)

    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        masks = self.network.masks(uniforms, scale)
        return Score(self.network.fold(contexts, masks), contexts, torch.cat(masks, dim=1) - 1)

    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        """Fix mean + width x std, the latter over a few draws that never change."""
        numbers = uniforms(
            decision_seeds(0, 0, _POSTERIOR_DRAWS), self.noise_size, Stream.POSTERIOR
        )
        count = len(contexts)
        draws = torch.from_numpy(numbers).to(contexts.device).repeat_interleave(count, dim=0)
        folded = self.network.fold(contexts.repeat(_POSTERIOR_DRAWS, 1), self.network.masks(draws))
        middle = self.network.fold(contexts)

        def bound(arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
            repeated = arms.repeat(_POSTERIOR_DRAWS, 1, 1) if len(arms) == count else arms
            rewards = folded(repeated).unflatten(0, (_POSTERIOR_DRAWS, count))  # (S, B, K)
            return middle(arms) + width * (rewards.var(0) + 1e-12).sqrt()

        return Score(bound, contexts, no_noise(contexts))

    def compiled(self, asks: str) -> CompiledModel:
        if asks != "draw":
            return super().compiled(asks)
        return replace(super().compiled("mean"), draws_from="dropout")
