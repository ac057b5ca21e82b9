"""Parts from outside the package, as a user would write them."""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.exploration import Greedy, ThompsonSampling
from fastbandit.interfaces import ArmSpace, Plan, RewardModel
from fastbandit.reward.last_layer_model import LastLayerReward
from fastbandit.score import Choice, Score, Seeds
from fastbandit.search.exhaustive import Exhaustive
from fastbandit.search.gradient_ascent import GradientAscent
from fastbandit.search.steps import CompiledSteps


@part("posterior", name="shy")
class ShyPosterior:
    """A last layer that believes its prior more than ours does."""

    precision: float = setting(default=4.0, above=0)

    def build(self, plan: Plan, *, rng: Generator) -> RewardModel:
        return LastLayerReward(plan, self.precision, rng=rng)


@part("search", name="patient")
class PatientSearch:
    """An ascent from more starts than ours has."""

    starts: int = 12

    def best(
        self,
        score: Score,
        arms: ArmSpace,
        *,
        count: int,
        seeds: Seeds,
        eligible: Bool[Tensor, "b N"] | None = None,
    ) -> Choice:
        return self._ascent.best(score, arms, count=count, seeds=seeds, eligible=eligible)

    def compiled(self) -> CompiledSteps:
        return self._ascent.compiled()

    @property
    def _ascent(self) -> GradientAscent:
        return GradientAscent(starts=self.starts, far=0)


@part("search", name="unfrozen")
class UnfrozenSearch:
    """A search that says nothing of how compiled code could do it."""

    def best(
        self,
        score: Score,
        arms: ArmSpace,
        *,
        count: int,
        seeds: Seeds,
        eligible: Bool[Tensor, "b N"] | None = None,
    ) -> Choice:
        return Exhaustive().best(score, arms, count=count, seeds=seeds, eligible=eligible)


@part("exploration", name="halved")
class HalvedSampling:
    """Thompson sampling from a posterior half as wide."""

    asks: ClassVar[str] = "draw"
    amount: ClassVar[float] = 0.5

    def score(self, model: RewardModel, contexts: Float[Tensor, "B E"], *, seeds: Seeds) -> Score:
        return ThompsonSampling(0.5).score(model, contexts, seeds=seeds)

    def quiet(self) -> Greedy:
        return Greedy()
