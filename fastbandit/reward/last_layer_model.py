"""LastLayerReward: a posterior from a Bayesian last layer (NeuralLinear, Riquelme et al. 2018).

The last layer here is the whole linear end of the network.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.interfaces import Plan
from fastbandit.reward.linear_end import LinearEnd
from fastbandit.reward.model import NetworkSettings, box_muller, normals_need
from fastbandit.types import Features, Interactions

_CHUNK = 8192


@part("posterior", name="last-layer", formerly=("LastLayerDoubt",))
class LastLayerPosterior:
    """Uncertainty from a Bayesian last layer (NeuralLinear)."""

    prior_precision: float = setting(default=1.0, above=0)

    def build(self, plan: Plan, *, rng: Generator) -> LastLayerReward:
        return LastLayerReward(
            plan.context,
            plan.arm,
            settings=plan.network,
            reward=plan.reward,
            prior_precision=self.prior_precision,
            rng=rng,
        )


class LastLayerReward(LinearEnd):
    """Rewards from a network whose last, linear part has an exact Gaussian posterior.

    For binary rewards the posterior is Laplace's approximation around the trained weights.
    """

    def __init__(
        self,
        context: Features,
        arm: Features,
        *,
        settings: NetworkSettings,
        reward: str,
        prior_precision: float = 1.0,
        rng: Generator,
    ) -> None:
        super().__init__(
            context,
            arm,
            settings=settings,
            reward=reward,
            prior_precision=prior_precision,
            rng=rng,
        )
        self.noise_size = normals_need(sum(self.parts))

    def shift(self, uniforms: Float[Tensor, "B Z"]) -> Float[Tensor, "B W"]:
        return box_muller(uniforms, len(self.centre)) @ self.spread.T

    @torch.no_grad()
    def fit_posterior(self, history: Interactions) -> None:
        size = sum(self.parts)
        precision = torch.eye(size, dtype=torch.float64) * self.prior_precision
        moment = torch.zeros(size, dtype=torch.float64)
        trained = self.trained_weights()
        for first in range(0, len(history), _CHUNK):
            rows = slice(first, first + _CHUNK)
            contexts = self.embed_contexts(history.contexts.take(rows))
            features = self.features(contexts, self.embed_arms(history.arms.take(rows)))
            rewards = torch.from_numpy(history.rewards[rows]).to(features.device)
            if self.reward == "binary":
                chance = torch.sigmoid(features @ trained)
                weight = (chance * (1 - chance)).double().cpu()
            else:
                weight = torch.exp(-2 * self.log_noise).double().cpu().expand(len(rewards))
            if history.weights is not None:
                weight = weight * torch.from_numpy(history.weights[rows])
            features = features.double().cpu()
            precision += features.T @ (features * weight[:, None])
            moment += features.T @ (weight * self.standardised(rewards).double().cpu())
        factor = torch.linalg.cholesky(precision)
        centre = torch.cholesky_solve(moment[:, None], factor).squeeze(1)
        self.centre.copy_(trained if self.reward == "binary" else centre)
        self.spread.copy_(torch.linalg.inv(factor).T)  # spread @ spread.T = inverse precision
