"""LastLayerReward: a posterior from a Bayesian last layer (NeuralLinear, Riquelme et al. 2018).

The last layer here is the whole linear end of the network.
"""

from __future__ import annotations

import torch
from torch import Generator

from fastbandit.declaration import part, setting
from fastbandit.interfaces import Plan
from fastbandit.reward.linear_end import LinearEnd
from fastbandit.types import Interactions

_CHUNK = 8192


@part("posterior", name="last-layer", formerly=("LastLayerDoubt",))
class LastLayerPosterior:
    """Uncertainty from a Bayesian last layer (NeuralLinear)."""

    prior_precision: float = setting(default=1.0, above=0)

    def build(self, plan: Plan, *, rng: Generator) -> LastLayerReward:
        return LastLayerReward(plan, self.prior_precision, rng=rng)


class LastLayerReward(LinearEnd):
    """Rewards from a network whose last, linear part has an exact Gaussian posterior.

    For binary rewards the posterior is Laplace's approximation around the trained weights.
    """

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
                probability = torch.sigmoid(features @ trained)
                weight = (probability * (1 - probability)).double().cpu()
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
