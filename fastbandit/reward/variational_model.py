"""VariationalReward: a posterior from Gaussian weights that are trained (Bayes by backprop).

Blundell, Cornebise, Kavukcuoglu and Wierstra, "Weight uncertainty in neural networks" (2015).
Independent Gaussian weights in the linear end of the network alone, whose deviations are
trained with all else. We differ in three things: the layers before have plain weights; the prior
is one Gaussian, so its divergence is exact; and predictions are drawn in the place of weights
(Kingma, Salimans and Welling 2015), which is less noisy.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from fastbandit.declaration import part, setting
from fastbandit.interfaces import Plan
from fastbandit.reward.linear_end import LinearEnd
from fastbandit.types import Inputs, Interactions

_FIRST_DEVIATION = 0.02  # of the prior's: from wide weights on, training drops all features
_PACE = 4.0  # deviations have far to go: a step moves their logarithms so many times as far


@part("posterior", name="variational", formerly=("VariationalDoubt",))
class VariationalPosterior:
    """Uncertainty from last weights whose deviations are trained."""

    prior_precision: float = setting(default=1.0, above=0)

    def build(self, plan: Plan, *, rng: Generator) -> VariationalReward:
        return VariationalReward(plan, self.prior_precision, rng=rng)


class VariationalReward(LinearEnd):
    """Rewards from a network whose linear end has independent Gaussian weights, trained."""

    def __init__(self, plan: Plan, prior_precision: float, *, rng: Generator) -> None:
        super().__init__(plan, prior_precision, rng=rng)
        first = math.log(_FIRST_DEVIATION / prior_precision**0.5)
        self.log_widths = nn.Parameter(torch.full((sum(self.parts),), first / _PACE))

    @property
    def log_deviation(self) -> Float[Tensor, " W"]:
        return _PACE * self.log_widths

    def loss(
        self, contexts: Inputs, arms: Inputs, rewards: Tensor, *, total: float, rng: Generator
    ) -> Float[Tensor, ""]:
        features = self.features(self.embed_contexts(contexts), self.embed_arms(arms))
        variances = features.square() @ torch.exp(2 * self.log_deviation)
        noise = torch.randn(len(rewards), generator=rng, device=rng.device).to(features.device)
        predicted = features @ self.trained_weights() + (variances + 1e-12).sqrt() * noise
        return self.misfit(predicted, rewards) + self.divergence() / total + self.penalty(total)

    def divergence(self) -> Float[Tensor, ""]:
        """Return the Kullback-Leibler divergence of the weights from their prior."""
        precision = self.prior_precision
        squares = self.trained_weights().square() + torch.exp(2 * self.log_deviation)
        logs = 2 * self.log_deviation + math.log(precision)
        return 0.5 * (precision * squares - 1 - logs).sum()

    @torch.no_grad()
    def fit_posterior(self, history: Interactions) -> None:
        self.centre.copy_(self.trained_weights())
        self.spread.copy_(torch.diag(torch.exp(self.log_deviation)))
