"""LastLayerReward: doubt from a Bayesian last layer (NeuralLinear, Riquelme et al. 2018).

The last layer here is all that acts linearly on the output: the last hidden units, the
inputs of the wide path, and the constant.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.features import Features
from fastbandit.interfaces import Score
from fastbandit.reward.model import (
    NetworkSettings,
    NeuralReward,
    box_muller,
    no_noise,
    normals_need,
)
from fastbandit.reward.network import Folded
from fastbandit.types import Interactions

_CHUNK = 8192


class LastLayerReward(NeuralReward):
    """Rewards from a network whose last, linear part has an exact Gaussian posterior.

    For binary rewards the posterior is Laplace's approximation around the trained weights.
    """

    centre: Tensor
    spread: Tensor

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
        super().__init__(context, arm, settings=settings, reward=reward, dropout=False, rng=rng)
        self.prior_precision = prior_precision
        width = self.network.input_sizes[-1]
        self.parts = [width, self.network.input_sizes[0] if settings.wide else 0, 1]
        size = sum(self.parts)
        self.noise_size = normals_need(size)
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("spread", torch.eye(size) / prior_precision**0.5)

    @torch.no_grad()
    def settle(self, history: Interactions) -> None:
        size = sum(self.parts)
        precision = torch.eye(size, dtype=torch.float64) * self.prior_precision
        moment = torch.zeros(size, dtype=torch.float64)
        trained = self._trained_weights()
        for first in range(0, len(history), _CHUNK):
            rows = slice(first, first + _CHUNK)
            contexts = self.embed_contexts(history.contexts.take(rows))
            features = self._features(contexts, self.embed_arms(history.arms.take(rows)))
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

    def mean(self, contexts: Float[Tensor, "B E"]) -> Score:
        return Score(self._fold(contexts, self.centre[None]), contexts, no_noise(contexts))

    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        shift = scale * box_muller(uniforms, len(self.centre)) @ self.spread.T
        folded = self._fold(contexts, self.centre + shift)
        deviation = self.spread.square().sum(1).sqrt()
        return Score(folded, contexts, shift / deviation)

    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        folded = self._fold(contexts, self.centre[None])

        def bound(arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
            hidden = folded.hidden(arms)  # (B, K, H)
            arms = arms.expand(len(contexts), -1, -1)
            features = self._join(hidden, contexts[:, None].expand_as(arms), arms)
            return folded(arms) + width * (features @ self.spread).square().sum(-1).sqrt()

        return Score(bound, contexts, no_noise(contexts))

    def _fold(self, contexts: Float[Tensor, "B E"], weights: Float[Tensor, "b W"]) -> Folded:
        """Fold the network with other weights in its last, linear part."""
        last, wide, constant = weights.split(self.parts, dim=1)
        folded = self.network.fold(contexts)
        count = len(contexts)
        folded = replace(folded, last=last.expand(count, -1), constant=constant[:, 0].expand(count))
        if not self.settings.wide:
            return folded
        action, more = self.network.act_on_arm(wide[:, None], contexts)
        return replace(folded, wide=action[:, 0], constant=folded.constant + more[:, 0])

    def _features(self, contexts: Tensor, arms: Tensor) -> Tensor:
        hidden = self.network.features(contexts, arms)
        for layer in self.network.layers[:-1]:
            hidden = F.leaky_relu(layer(hidden), self.settings.leak)
        return self._join(hidden, contexts, arms)

    def _join(self, hidden: Tensor, contexts: Tensor, arms: Tensor) -> Tensor:
        parts = [hidden, self.network.features(contexts, arms)] if self.settings.wide else [hidden]
        return torch.cat([*parts, torch.ones_like(hidden[..., :1])], dim=-1)

    def _trained_weights(self) -> Tensor:
        last, wide = self.network.layers[-1], self.network.wide
        parts = [last.weight[0]] if wide is None else [last.weight[0], wide.weight[0]]
        constant = last.bias if wide is None else last.bias + wide.bias
        return torch.cat([*parts, constant]).detach()
