"""From a linear model to the scores of all arms: greedy, Thompson sampling, upper confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fastbandit.baselines.ridge import Floats, LinearModel, Seeds
from fastbandit.declaration import check_number


class LinearExploration(Protocol):
    """Says how much each arm is wanted now."""

    def score(self, model: LinearModel, contexts: Floats, seeds: Seeds) -> Floats:
        """Return the scores of all arms: (b, N)."""
        ...


@dataclass(frozen=True)
class Greedy:
    """Score an arm by its mean."""

    def score(self, model: LinearModel, contexts: Floats, seeds: Seeds) -> Floats:
        return model.means(contexts)


@dataclass(frozen=True)
class ThompsonSampling:
    """Score an arm by one draw of the weights for each context, `scale` times as wide."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale)

    def score(self, model: LinearModel, contexts: Floats, seeds: Seeds) -> Floats:
        return model.draws(contexts, seeds, scale=self.scale)


@dataclass(frozen=True)
class UpperConfidence:
    """Score an arm by its mean + `width` x standard deviation."""

    width: float = 1.0

    def __post_init__(self) -> None:
        check_number("width", self.width)

    def score(self, model: LinearModel, contexts: Floats, seeds: Seeds) -> Floats:
        return model.means(contexts) + self.width * model.stds(contexts)
