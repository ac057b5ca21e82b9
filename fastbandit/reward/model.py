"""What all reward models share: encoders, a network over them, and a likelihood."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import CompiledModel, Plan, RewardModel
from fastbandit.reward.encoders import DenseEncoder, PointEncoder, encoder_for
from fastbandit.reward.network import RewardNetwork
from fastbandit.score import Score
from fastbandit.types import Inputs, Interactions


@part("network")
class NetworkSettings:
    """The shape of a reward network and the strength of its penalties.

    `weight_penalty` is on the layers, `embedding_penalty` on the encoders before them.
    `fourier_features` are so many random ones that help to see the points of a box.
    `penalties="per observation"` divides all penalties by the number of observations, as
    Concrete Dropout defines them; "constant" does not, which is the other reading of the
    paper's "dropout regularization = 1e-1".
    """

    embedding: int
    hidden: tuple[int, ...]
    weight_penalty: float
    dropout_penalty: float
    embedding_penalty: float = 0.0
    fourier_features: int = setting(default=0, least=0, formerly="waves")
    product: bool = True
    wide: bool = True
    leak: float = 0.1
    penalties: str = setting(default="per observation", choices=("per observation", "constant"))


class NeuralReward(RewardModel):
    """A neural reward model, abstract in its posterior."""

    reward_shift: Tensor
    reward_scale: Tensor

    def __init__(self, plan: Plan, *, dropout: bool, rng: Generator) -> None:
        super().__init__()
        settings: NetworkSettings = plan.network
        self.settings, self.reward = settings, plan.reward
        self.context_encoder, self.arm_encoder = (
            encoder_for(
                kind, settings.embedding, fourier_features=settings.fourier_features, rng=rng
            )
            for kind in (plan.context, plan.arm)
        )
        self.network = RewardNetwork(
            settings.embedding,
            settings.hidden,
            product=settings.product,
            wide=settings.wide,
            dropout=dropout,
            leak=settings.leak,
            rng=rng,
        )
        self.log_noise = nn.Parameter(torch.zeros(()))
        self.register_buffer("reward_shift", torch.zeros(()))
        self.register_buffer("reward_scale", torch.ones(()))

    def embed_contexts(self, contexts: Inputs) -> Float[Tensor, "B E"]:
        return self.context_encoder(contexts)

    def is_clipped(self, contexts: Inputs) -> NDArray[np.bool_]:
        return self.context_encoder.is_clipped(contexts)

    def embed_arms(self, arms: Inputs) -> Float[Tensor, "N E"]:
        return self.arm_encoder(arms)

    def encode_arms(self, values: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        assert isinstance(self.arm_encoder, DenseEncoder | PointEncoder), "points form a continuum"
        return self.arm_encoder.encode(values)

    def observe_arms(self, arms: Inputs) -> None:
        self.arm_encoder.fit(arms)

    def start(self, history: Interactions, *, fresh: int) -> None:
        self.context_encoder.fit(history.contexts)
        self.arm_encoder.fit(history.arms)
        if self.reward == "real":
            shift, std = mean_and_std(history)
            self.reward_shift.fill_(shift)
            self.reward_scale.fill_(std if std > 1e-9 else 1.0)

    def compiled(self, asks: str) -> CompiledModel:
        if asks != "mean":
            raise SettingError(
                f"This exploration cannot be frozen: a {type(self).__name__} has no compiled "
                f"{asks or 'score'}. Use Thompson sampling with a dropout, last-layer, variational "
                f"or bootstrap posterior, UpperConfidence with a gradient posterior, or Greedy; or "
                f"select with the Bandit."
            )
        return CompiledModel(
            "mean",
            network=self.network,
            context_encoder=self.context_encoder,
            arm_encoder=self.arm_encoder,
            reward_shift=float(self.reward_shift),
            reward_scale=float(self.reward_scale),
        )

    def mean(self, contexts: Float[Tensor, "B E"]) -> Score:
        return Score(self.network.fold(contexts), contexts, no_noise(contexts))

    def in_rewards(self, scores: Tensor) -> Tensor:
        if self.reward == "binary":
            return torch.sigmoid(scores)
        return scores * self.reward_scale + self.reward_shift

    def standardised(self, rewards: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """Return rewards in the units the network learns."""
        return (rewards - self.reward_shift) / self.reward_scale

    def loss(
        self, contexts: Inputs, arms: Inputs, rewards: Tensor, *, total: float, rng: Generator
    ) -> Float[Tensor, ""]:
        embedded = self.embed_contexts(contexts), self.embed_arms(arms)
        predicted = self.network(*embedded, self.training_masks(len(rewards), rng=rng))
        return self.misfit(predicted, rewards) + self.penalty(total)

    def misfit(
        self, predicted: Float[Tensor, " B"], rewards: Float[Tensor, " B"]
    ) -> Float[Tensor, ""]:
        """Return how unlikely rewards are under what was predicted, on average."""
        if self.reward == "binary":
            return F.binary_cross_entropy_with_logits(predicted, rewards)
        squares = (predicted - self.standardised(rewards)).square().mean()
        return 0.5 * squares * torch.exp(-2 * self.log_noise) + self.log_noise

    def training_masks(self, count: int, *, rng: Generator) -> list[Tensor] | None:
        """Draw a mask for each interaction of a minibatch, where the network has dropout."""
        if not self.network.dropouts:
            return None
        device = self.log_noise.device
        numbers = torch.rand(count, sum(self.network.input_sizes), generator=rng, device=rng.device)
        return self.network.masks(numbers.to(device).clamp(1e-6, 1 - 1e-6))

    def penalty(self, total: float) -> Float[Tensor, ""]:
        settings = self.settings
        penalty = settings.weight_penalty * self.network.weight_penalty()
        for encoder in (self.context_encoder, self.arm_encoder):
            if settings.embedding_penalty:
                penalty = penalty + settings.embedding_penalty * encoder.weight_penalty()
        if self.network.dropouts:
            penalty = penalty + settings.dropout_penalty * self.network.entropy_penalty()
        return penalty / total if settings.penalties == "per observation" else penalty


def mean_and_std(history: Interactions) -> tuple[float, float]:
    """Return the mean and the deviation of the rewards of a history, by their weights."""
    rewards = history.rewards.astype(np.float64)
    mean = np.average(rewards, weights=history.weights)
    variance = np.average(np.square(rewards - mean), weights=history.weights)
    return float(mean), float(np.sqrt(variance))


def no_noise(contexts: Float[Tensor, "B E"]) -> Float[Tensor, "B 0"]:
    """Return a draw of nothing, for scores that are not random."""
    return contexts.new_zeros(len(contexts), 0)


def box_muller(uniforms: Float[Tensor, "B Z"], count: int) -> Float[Tensor, "B Y"]:
    """Turn uniform numbers into `count` standard normal ones (see `fastbandit.noise.philox`)."""
    halves = -(-count // 2)
    radius = torch.sqrt(-2 * torch.log(uniforms[:, :halves]))
    angle = 2 * math.pi * uniforms[:, halves : 2 * halves]
    both = torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)
    return both[:, :count]


def normals_need(count: int) -> int:
    """Return how many uniform numbers `box_muller` takes for `count` normal ones."""
    return 2 * -(-count // 2)
