"""From a posterior to a score: greedy, upper confidence, Thompson sampling.

An exploration `asks` for the "mean", a "draw" or an "upper" bound; its `amount` is how wide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from fastbandit.declaration import part
from fastbandit.interfaces import RewardModel
from fastbandit.noise.device import uniforms_on
from fastbandit.noise.philox import Stream
from fastbandit.score import Score, Seeds


@part("exploration", name="greedy")
class Greedy:
    """Score an arm by its expected reward: no exploration at all."""

    asks: ClassVar[str] = "mean"
    amount: ClassVar[float] = 0.0

    def score(self, model: RewardModel, contexts: Float[Tensor, "B E"], *, seeds: Seeds) -> Score:
        return replace(model.mean(contexts), own=model.own(contexts))

    def quiet(self) -> Greedy:
        return self


@part("exploration", name="ucb")
class UpperConfidence:
    """Score an arm by `mean + width * std`: optimism in the face of uncertainty.

    Where `batched`, a model that can says what is left uncertain once other decisions, made before
    the next update, will have been rewarded: these then ask for different arms.
    """

    width: float = 1.0
    batched: bool = False
    asks: ClassVar[str] = "upper"

    @property
    def amount(self) -> float:
        return self.width

    def score(self, model: RewardModel, contexts: Float[Tensor, "B E"], *, seeds: Seeds) -> Score:
        own = model.own(contexts, width=self.width)
        if not self.batched:
            return replace(model.upper(contexts, width=self.width), own=own)
        numbers = uniforms_on(contexts.device, seeds, 1 + model.noise_size, Stream.POSTERIOR)
        return replace(model.upper_beside(contexts, numbers, width=self.width), own=own)

    def quiet(self) -> UpperConfidence:
        return replace(self, width=0.0)


@part("exploration", name="ts")
class ThompsonSampling:
    """Score an arm by its reward under one posterior draw, shared by all arms of a request.

    `scale` widens (> 1) or narrows (< 1) the draw about the mean; 0 is greedy.
    """

    scale: float = 1.0
    asks: ClassVar[str] = "draw"

    @property
    def amount(self) -> float:
        return self.scale

    def score(self, model: RewardModel, contexts: Float[Tensor, "B E"], *, seeds: Seeds) -> Score:
        numbers = uniforms_on(contexts.device, seeds, model.noise_size, Stream.POSTERIOR)
        own = model.own(contexts, seeds=seeds, scale=self.scale)
        return replace(model.draw(contexts, numbers, scale=self.scale), own=own)

    def quiet(self) -> ThompsonSampling:
        return ThompsonSampling(scale=0.0)
