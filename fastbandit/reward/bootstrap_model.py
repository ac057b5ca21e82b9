"""BootstrapReward: a posterior from heads that each learned another resample of the history.

Osband and Van Roy, "Bootstrapped Thompson sampling and deep exploration" (2015); one head is
drawn for each decision. As in bootstrapped DQN (Osband, Blundell, Pritzel and Van Roy 2016) the
heads share a network. We differ in two things: a head is solved, not trained, on weights of its
own for all interactions (exponential ones: Rubin's Bayesian bootstrap, 1981), and is held to a
draw of its own from the prior, so that heads differ where there is no data.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import Plan
from fastbandit.noise.philox import Stream, decision_seeds, normals, uniforms
from fastbandit.reward.linear_end import LinearEnd
from fastbandit.types import Interactions

_CHUNK = 8192
_NEWTON_STEPS = 10  # at most, from the trained weights; real rewards need one
_STILL = 1e-4
_PRIORS, _WEIGHTS = 1, 2  # seeds: what a prior is drawn from, and what weights are


@part("posterior", name="bootstrap", formerly=("BootstrapDoubt",))
class BootstrapPosterior:
    """Uncertainty from `heads` of a network that disagree."""

    heads: int = 10
    prior_precision: float = setting(default=1.0, above=0)

    def build(self, plan: Plan, *, rng: Generator) -> BootstrapReward:
        return BootstrapReward(plan, self, rng=rng)


class BootstrapReward(LinearEnd):
    """Rewards from a network with `heads` linear ends; a draw is one of them."""

    draws_from = "heads"

    def __init__(self, plan: Plan, posterior: BootstrapPosterior, *, rng: Generator) -> None:
        heads = posterior.heads
        if heads < 2:
            raise SettingError(
                f"A bootstrap posterior needs at least 2 heads, or all agree: got heads={heads}. "
                f"Raise it."
            )
        super().__init__(plan, posterior.prior_precision, columns=heads, rng=rng)
        self.heads = heads

    def shift(self, uniforms: Float[Tensor, "B Z"]) -> Float[Tensor, "B W"]:
        """Take the head with the highest number: each is as likely as another."""
        return self.spread.T[uniforms.argmax(1)] * self.heads**0.5

    @torch.no_grad()
    def fit_posterior(self, history: Interactions) -> None:
        priors = self._priors()  # (M, W)
        heads = self.trained_weights().double().cpu().expand(self.heads, -1)
        for _ in range(_NEWTON_STEPS if self.reward == "binary" else 1):
            slopes, precisions = self._slopes(history, heads)
            slopes = slopes - self.prior_precision * (heads - priors)
            steps = torch.linalg.solve(precisions, slopes)
            heads = heads + steps
            if float(steps.abs().max()) < _STILL:
                break
        centre = heads.mean(0)
        self.centre.copy_(centre)
        self.spread.copy_((heads - centre).T / self.heads**0.5)

    def _priors(self) -> Float[Tensor, "M W"]:
        """Draw what each head is held to; together they are held to nothing."""
        numbers = normals(decision_seeds(_PRIORS, 0, self.heads), sum(self.parts), Stream.TRAINING)
        drawn = torch.from_numpy(numbers).double() / self.prior_precision**0.5
        return drawn - drawn.mean(0)

    def _slopes(
        self, history: Interactions, heads: Float[Tensor, "M W"]
    ) -> tuple[Float[Tensor, "M W"], Float[Tensor, "M W W"]]:
        """Return the slope of each head's log-likelihood, and its precision, prior included."""
        eye = torch.eye(sum(self.parts), dtype=torch.float64)
        precisions = (self.prior_precision * eye).repeat(self.heads, 1, 1)
        slopes = torch.zeros_like(heads)
        for first in range(0, len(history), _CHUNK):
            part = history.take(slice(first, first + _CHUNK))
            embedded = self.embed_contexts(part.contexts), self.embed_arms(part.arms)
            features = self.features(*embedded).double().cpu()  # (n, W)
            rewards = self.standardised(torch.from_numpy(part.rewards).to(self.device))
            misses, curves = self._likelihood(features @ heads.T, rewards.double().cpu())
            weights = self._weights(part, first)  # (n, M)
            slopes += (weights * misses).T @ features
            for head in range(self.heads):
                bent = features * (weights * curves)[:, head, None]
                precisions[head] += features.T @ bent
        return slopes, precisions

    def _likelihood(
        self, predicted: Float[Tensor, "n M"], rewards: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, "n M"], Float[Tensor, "n M"]]:
        """Return the first and minus the second derivative of each log-likelihood."""
        if self.reward == "binary":
            probabilities = torch.sigmoid(predicted)
            return rewards[:, None] - probabilities, probabilities * (1 - probabilities)
        sureness = torch.exp(-2 * self.log_noise).double().cpu()
        return sureness * (rewards[:, None] - predicted), sureness.expand_as(predicted)

    def _weights(self, part: Interactions, first: int) -> Float[Tensor, "n M"]:
        """Return how much each interaction counts for each head: 1 on average."""
        seeds = decision_seeds(_WEIGHTS, first, len(part))
        numbers = uniforms(seeds, self.heads, Stream.TRAINING).astype(np.float64)
        weights = -np.log(numbers) * (1.0 if part.weights is None else part.weights[:, None])
        return torch.from_numpy(weights)
