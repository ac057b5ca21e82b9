"""Parts whose right answer is known by hand, and tiny arm spaces to try parts in."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from fastbandit.arms.catalogue import Catalogue
from fastbandit.arms.ids import IdTable
from fastbandit.bandit import Bandit
from fastbandit.interfaces import RewardModel
from fastbandit.noise.philox import decision_seeds
from fastbandit.score import Score
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training
from fastbandit.types import Decision, Inputs, Interactions

LITTLE = Training(
    reward=RewardFit(iterations=40, batch=64),
    generator=GeneratorFit(iterations=40, batch=64, targets=128, sample=64),
)


class BowlReward(RewardModel):
    """The reward is minus the squared distance from the arm to the context (or to a draw).

    Contexts and arms are their own embeddings; the posterior of every reward is as wide.
    """

    def __init__(self, dim: int, *, posterior: float = 0.5) -> None:
        super().__init__()
        self.noise_size, self.posterior = dim, posterior

    @property
    def device(self) -> str:
        return "cpu"

    def embed_contexts(self, contexts: Inputs) -> Tensor:
        return torch.as_tensor(contexts.dense)

    def embed_arms(self, arms: Inputs) -> Tensor:
        return torch.as_tensor(arms.dense)

    def encode_arms(self, values: Tensor) -> Tensor:
        return values

    def mean(self, contexts: Tensor) -> Score:
        return self._bowl(contexts, torch.zeros_like(contexts)[:, :0], contexts)

    def draw(self, contexts: Tensor, uniforms: Tensor, *, scale: float) -> Score:
        shift = scale * self.posterior * (2 * uniforms - 1)
        return self._bowl(contexts + shift, shift, contexts)

    def upper(self, contexts: Tensor, *, width: float) -> Score:
        bowl = self.mean(contexts)
        return replace(bowl, function=lambda arms: bowl(arms) + width * self.posterior)

    def _bowl(self, targets: Tensor, noise: Tensor, contexts: Tensor) -> Score:
        def bowl(arms: Tensor) -> Tensor:
            return -(arms - targets[:, None]).square().sum(-1)

        return Score(bowl, contexts, noise)

    def loss(
        self, contexts: Inputs, arms: Inputs, rewards: Tensor, *, total: float, rng: Generator
    ) -> Tensor:
        return rewards.sum() * 0

    def observe_arms(self, arms: Inputs) -> None: ...

    def start(self, history: Interactions, *, fresh: int) -> None: ...

    def fit_posterior(self, history: Interactions) -> None: ...

    def in_rewards(self, scores: Tensor) -> Tensor:
        return scores


def vectors_of(count: int, dim: int, *, seed: int = 0) -> NDArray[np.float32]:
    """Return vectors spread like a Gaussian cloud."""
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


def catalogue_of(vectors: NDArray[np.float32]) -> Catalogue:
    """Return a catalogue whose embeddings are the vectors themselves."""
    catalogue = Catalogue.of(IdTable(count=len(vectors)), Inputs(dense=vectors))
    return catalogue.embedded_by(lambda inputs: torch.as_tensor(inputs.dense))


def seeds_of(count: int, *, first: int = 0) -> NDArray[np.uint64]:
    return decision_seeds(99, first, count)


def compiled(bandit: Bandit) -> Bandit:
    """Return a bandit in the same state that goes its own way (its state is never changed)."""
    return copy.copy(bandit)


def same_decision(one: Decision, two: Decision) -> bool:
    """Return whether two decisions agree in all they say."""
    return all(
        np.array_equal(np.asarray(getattr(one, name)), np.asarray(getattr(two, name)))
        for name in ("rows", "scores", "seeds", "version", "uniform", "evaluations", "lookups")
    ) and _same_arms(one.arms, two.arms)


def same_weights(one: Bandit, two: Bandit) -> bool:
    """Return whether two bandits have learned exactly the same."""
    left, right = one.policy.model.state_dict(), two.policy.model.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def _same_arms(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(one, two)
    return bool(one == two)
