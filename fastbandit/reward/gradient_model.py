"""GradientReward: a posterior from the network's own gradients (NeuralUCB, Zhou, Li and Gu 2020).

The standard deviation of a reward is sqrt(gᵀ Z⁻¹ g / m), where g is the gradient of the
network (not of the encoders) at a context and an arm, Z = ridge·I + Σ g gᵀ / m over the history, and m the
width. Differences from the paper: the network learns with Concrete Dropout as a penalty that
adapts (posterior and predictions use its mean); Z is worked out anew from the whole history with
the current weights after each update (`gradients="current"`; "when chosen" is the printed
rule); and Z is full while the network is small, diagonal beyond `full_below` parameters.

Searches find their way by a surrogate of the standard deviation, a small network that learns it
after each update, and settle the last few arms with the bound itself.

For a fixed context the gradient is a linear map of something much smaller, the *arm
features*: slopes x (arm, 1), the later layers' gradients, (arm, 1). So Z⁻¹ folds, once per
context, into a small matrix, and one evaluation costs its square instead of the square of
all parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import Affine, ArmSpace, CompiledModel, Plan, Score
from fastbandit.reward.model import (
    NetworkSettings,
    NeuralReward,
    box_muller,
    no_noise,
    normals_need,
)
from fastbandit.reward.network import Folded, RewardNetwork
from fastbandit.reward.surrogate import fit_deviations
from fastbandit.types import Features, Inputs, Interactions

_CHUNK = 4096
_SURROGATE = 32
_FEW_ARMS = 32
_CHUNK_OF_ARMS = 2**16
_FOLDED_ON_GPU = 1024
_FOLDED_AT_ONCE = 8  # so few stay in the processor's cache: four times as fast at 16 columns


@part("posterior", name="gradient", formerly=("GradientDoubt",))
class GradientPosterior:
    """Uncertainty from the gradients of the history: NeuralUCB, and NeuralTS.

    With fewer than `full_below` parameters their covariance is a full matrix, else a diagonal.
    `gradients` are taken with the "current" weights, or with those "when chosen".
    """

    ridge: float = setting(default=1.0, above=0)
    full_below: int = setting(default=512, least=0)
    gradients: str = setting(default="current", choices=("current", "when chosen"))

    def build(self, plan: Plan, *, rng: Generator) -> GradientReward:
        return GradientReward(
            plan.context,
            plan.arm,
            settings=plan.network,
            reward=plan.reward,
            posterior=self,
            rng=rng,
        )


class GradientReward(NeuralReward):
    """Rewards whose posterior is what the gradients of the history leave open."""

    information: Tensor
    inverse: Tensor
    root: Tensor
    bonus_shift: Tensor
    bonus_scale: Tensor

    def __init__(
        self,
        context: Features,
        arm: Features,
        *,
        settings: NetworkSettings,
        reward: str,
        posterior: GradientPosterior | None = None,
        rng: Generator,
    ) -> None:
        super().__init__(context, arm, settings=settings, reward=reward, dropout=True, rng=rng)
        posterior = GradientPosterior() if posterior is None else posterior
        self.ridge, self.gradients = posterior.ridge, posterior.gradients
        self.parts = _part_sizes(self.network)
        parameters = sum(self.parts)
        self.is_full = parameters < posterior.full_below
        self.noise_size = normals_need(parameters)
        start = torch.eye(parameters) if self.is_full else torch.ones(parameters)
        self.register_buffer("information", start.double() * self.ridge)  # Z, or its diagonal
        self.register_buffer("inverse", start / self.ridge)
        self.register_buffer("root", start / self.ridge**0.5)  # root @ root.T = inverse
        self.bonus = self._small_network(rng) if len(settings.hidden) == 1 else None
        self.register_buffer("bonus_shift", torch.zeros(()))
        self.register_buffer("bonus_scale", torch.zeros(()))

    def _small_network(self, rng: Generator) -> RewardNetwork:
        """Make the network that learns the standard deviation."""
        settings = self.settings
        return RewardNetwork(
            settings.embedding,
            (_SURROGATE,),
            product=settings.product,
            dropout=False,
            leak=settings.leak,
            rng=rng,
        )

    @property
    def width(self) -> int:
        return self.network.input_sizes[-1]

    def start(self, history: Interactions, *, fresh: int) -> None:
        super().start(history, fresh=fresh)
        if self.gradients == "when chosen":
            self._gather(history, len(history) - fresh)

    def fit_posterior(self, history: Interactions) -> None:
        if self.gradients == "current":
            self.information.zero_()
            diagonal = self.information.diagonal() if self.is_full else self.information
            diagonal.fill_(self.ridge)
            self._gather(history, 0)
        if self.is_full:
            root = torch.linalg.inv(torch.linalg.cholesky(self.information)).T
            self.root.copy_(root)
            self.inverse.copy_(root @ root.T)
        else:
            self.root.copy_(self.information.rsqrt())
            self.inverse.copy_(1 / self.information)

    def compiled(self, asks: str) -> CompiledModel:
        if asks != "upper":
            return super().compiled(asks)
        if self.bonus is None or not self.bonus_scale > 0:
            raise SettingError(
                f"This bound cannot be frozen: got hidden layers {self.settings.hidden} and no "
                f"trained surrogate. Use a network of one hidden layer and update it, or select "
                f"with the Bandit."
            )
        return replace(
            super().compiled("mean"),
            draws_from="bound",
            surrogate=self.bonus,
            bonus_scale=float(self.bonus_scale),
            bonus_shift=float(self.bonus_shift),
            root=self.root.T if self.is_full else self.inverse[None],
        )

    def fit_surrogate(self, arms: ArmSpace, contexts: Inputs, *, rng: Generator) -> None:
        if self.bonus is not None:
            shift, scale = fit_deviations(
                self.bonus, self.deviations, arms, self.embed_contexts, contexts, rng=rng
            )
            self.bonus_shift.copy_(shift)
            self.bonus_scale.copy_(scale)

    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        folded, surrogate = self.network.fold(contexts), self._surrogate(contexts, width)
        if not self.is_full:
            diagonal = DiagonalBound(folded, self.network, contexts, self._weights(width))
            return Score(diagonal, contexts, no_noise(contexts), surrogate)
        bound = UpperBound(folded, self, contexts, width)
        return Score(bound, contexts, no_noise(contexts), surrogate)

    def deviations(
        self, contexts: Float[Tensor, "B E"], arms: Float[Tensor, "B E"]
    ) -> Float[Tensor, " B"]:
        """Return the standard deviation of each interaction's reward."""
        gradients = self._gradients(contexts, arms)
        if self.is_full:
            variances = (gradients @ self.root).square().sum(1)
        else:
            variances = gradients.square() @ self.inverse
        return (variances / self.width).clamp_min(1e-12).sqrt()

    def _surrogate(self, contexts: Float[Tensor, "B E"], width: float) -> Folded | None:
        """Fold mean + width x the surrogate of the deviation: two networks side by side are one."""
        if self.bonus is None or not self.bonus_scale > 0:
            return None
        mean, more = self.network.fold(contexts), self.bonus.fold(contexts)
        factor = width * self.bonus_scale
        return replace(
            mean,
            first=torch.cat([mean.first, more.first], dim=1),
            first_bias=torch.cat([mean.first_bias, more.first_bias], dim=1),
            last=torch.cat([mean.last, factor * more.last], dim=1),
            wide=mean.wide + factor * more.wide,
            constant=mean.constant + factor * more.constant + width * self.bonus_shift,
        )

    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        """Fix one draw of the weights in the network made linear about the trained ones."""
        normal = scale * box_muller(uniforms, sum(self.parts))
        shift = normal @ self.root.T if self.is_full else normal * self.root
        action = self._fold_rows(shift[:, None], contexts)[:, 0] / self.width**0.5  # (B, F)
        drawn = LinearDraw(self.network.fold(contexts), self.network, action)
        return Score(drawn, contexts, normal)

    def _weights(self, width: float) -> tuple[Tensor, ...]:
        return (self.inverse * (width**2 / self.width)).split(self.parts)

    @torch.no_grad()
    def _gather(self, history: Interactions, first: int) -> None:
        """Add the gradients of the history from `first` on to the information matrix."""
        for start in range(first, len(history), _CHUNK):
            rows = slice(start, start + _CHUNK)
            contexts = self.embed_contexts(history.contexts.take(rows))
            arms = self.embed_arms(history.arms.take(rows))
            gradients = self._gradients(contexts, arms)
            if history.weights is not None:
                shares = torch.from_numpy(history.weights[rows]).sqrt().to(gradients)
                gradients = gradients * shares[:, None]
            if self.is_full:
                self.information += (gradients.T @ gradients).double() / self.width
            else:
                self.information += gradients.double().square().sum(0) / self.width

    def _gradients(
        self, contexts: Float[Tensor, "B E"], arms: Float[Tensor, "B E"]
    ) -> Float[Tensor, "B P"]:
        """Return the gradient of each interaction's reward, layer by layer, wide path last."""
        inputs = self.network.features(contexts, arms)[:, None]  # (B, 1, 3E)
        trace = trace_of(self.network.fold(contexts), self.network, arms[:, None])
        parts = [_outer(trace.slopes[0], inputs), *trace.later]
        if self.network.wide is not None:
            parts.append(inputs)
        return torch.cat(parts, dim=-1)[:, 0]

    def fold_bonus(self, contexts: Float[Tensor, "B E"]) -> Float[Tensor, "B F F"]:
        """Fold the inverse of Z for each context, from both sides."""
        at_once = _FOLDED_AT_ONCE if contexts.device.type == "cpu" else _FOLDED_ON_GPU
        return torch.cat([self._fold_some(part) for part in contexts.split(at_once)])

    def _fold_some(self, contexts: Float[Tensor, "B E"]) -> Float[Tensor, "B F F"]:
        half = self._fold_rows(self.inverse[None], contexts)  # (B, P, F)
        return self._fold_rows(half.transpose(1, 2), contexts)

    def _fold_rows(
        self, rows: Float[Tensor, "b R P"], contexts: Float[Tensor, "B E"]
    ) -> Float[Tensor, "B R F"]:
        """Turn functions of the gradient into functions of the arm features."""
        first, *later = rows.split(self.parts, dim=-1)
        hidden, count = self.network.first_width, rows.shape[1]
        weight = first.unflatten(-1, (hidden, -1))  # (b, R, H, 3E + 1)
        action, constant = self.network.act_on_arm(weight[..., :-1].flatten(1, 2), contexts)
        constant = constant.unflatten(1, (count, hidden)) + weight[..., -1]
        action = action.unflatten(1, (count, hidden))  # (B, R, H, E)
        parts = [torch.cat([action, constant[..., None]], dim=-1).flatten(2)]
        wide = later.pop() if self.network.wide is not None else None
        parts += [part.expand(len(contexts), -1, -1) for part in later]
        if wide is not None:
            action, constant = self.network.act_on_arm(wide, contexts)
            parts += [action, constant[..., None]]
        return torch.cat(parts, dim=-1)


@dataclass(frozen=True)
class UpperBound:
    """mean + width x the root of a quadratic form in the gradient, for fixed contexts.

    For many arms the form is folded once into one of the arm features; for a few that would
    cost more than it saves.
    """

    folded: Folded
    model: GradientReward
    contexts: Float[Tensor, "B E"]
    width: float
    affine: Affine | None = None

    def through(self, affine: Affine) -> UpperBound:
        return replace(self, folded=self.folded.through(affine), affine=affine)

    def __call__(self, arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
        if arms.shape[1] <= _FEW_ARMS:
            return self._one_by_one(arms.expand(len(self.contexts), -1, -1))
        network = self.model.network
        trace = trace_of(self.folded, network, arms)
        features = trace.arm_features(arms, network)  # (B, K, F)
        variance = (torch.bmm(features, self._posterior) * features).sum(-1)
        return trace.rewards + variance.clamp_min(1e-12).sqrt()

    @cached_property
    def _posterior(self) -> Float[Tensor, "B F F"]:
        covariance = self.model.fold_bonus(self.contexts) * (self.width**2 / self.model.width)
        if self.affine is None:
            return covariance
        half = _features_through(self.model.network, covariance, self.affine)
        return _features_through(self.model.network, half.transpose(1, 2), self.affine)

    def _one_by_one(self, arms: Float[Tensor, "B K E"]) -> Float[Tensor, "B K"]:
        embedded = arms if self.affine is None else self.affine(arms)
        contexts = self.contexts[:, None].expand(-1, arms.shape[1], -1).flatten(0, 1)
        parts = zip(
            contexts.split(_CHUNK_OF_ARMS),
            embedded.flatten(0, 1).split(_CHUNK_OF_ARMS),
            strict=True,
        )
        deviations = torch.cat([self.model.deviations(*part) for part in parts])
        means = self.folded(arms)
        return means + (self.width * deviations.unflatten(0, means.shape)).clamp_min(1e-6)


@dataclass(frozen=True)
class LinearDraw:
    """mean + a linear function of the arm features, for fixed contexts."""

    folded: Folded
    network: RewardNetwork
    action: Float[Tensor, "B F"]

    def through(self, affine: Affine) -> LinearDraw:
        action = _features_through(self.network, self.action[:, None], affine)[:, 0]
        return replace(self, folded=self.folded.through(affine), action=action)

    def __call__(self, arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
        trace = trace_of(self.folded, self.network, arms)
        features = trace.arm_features(arms, self.network)
        return trace.rewards + torch.matmul(features, self.action[..., None]).squeeze(-1)


@dataclass(frozen=True)
class DiagonalBound:
    """mean + the root of a weighted sum of squared gradients, for fixed contexts."""

    folded: Folded
    network: RewardNetwork
    contexts: Float[Tensor, "B E"]
    weights: tuple[Tensor, ...]

    def __call__(self, arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
        trace = trace_of(self.folded, self.network, arms)
        arms = arms.expand(len(self.contexts), -1, -1)
        inputs = self.network.features(self.contexts[:, None].expand_as(arms), arms)
        squares = torch.cat([inputs.square(), torch.ones_like(inputs[..., :1])], dim=-1)
        first, *later = self.weights
        first = first.unflatten(0, (self.network.first_width, -1))
        variance = (trace.slopes[0].square() * (squares @ first.T)).sum(-1)
        if self.network.wide is not None:
            variance = variance + squares[..., :-1] @ later.pop()
        variance = variance + torch.cat(trace.later, dim=-1).square() @ torch.cat(later)
        return trace.rewards + variance.clamp_min(1e-12).sqrt()


@dataclass(frozen=True)
class Trace:
    """One pass through the network: slopes of the reward, later layers' gradients, rewards."""

    slopes: list[Tensor]
    later: list[Tensor]
    rewards: Tensor

    def arm_features(
        self, arms: Float[Tensor, "b K E"], network: RewardNetwork
    ) -> Float[Tensor, "B K F"]:
        """Return what the gradient at each arm is a linear map of, once the context is fixed."""
        arms = arms.expand(len(self.rewards), -1, -1)
        parts = [_outer(self.slopes[0], arms), *self.later]
        if network.wide is not None:
            parts += [arms, torch.ones_like(arms[..., :1])]
        return torch.cat(parts, dim=-1)


def trace_of(folded: Folded, network: RewardNetwork, arms: Float[Tensor, "b K E"]) -> Trace:
    """Run the folded network forward and backward."""
    layers = network.layers
    before = folded.before(arms)
    hidden = [F.leaky_relu(before, folded.leak)]
    signs = [torch.where(before > 0, 1.0, folded.leak)]
    for layer in layers[1:-1]:
        before = layer(hidden[-1])
        hidden.append(F.leaky_relu(before, folded.leak))
        signs.append(torch.where(before > 0, 1.0, folded.leak))
    last = layers[-1].weight[0]
    wide = torch.matmul(arms, folded.wide[..., None]).squeeze(-1)
    rewards = hidden[-1] @ last + wide + folded.constant[:, None]
    slopes = [last * signs[-1]]
    for layer, sign in zip(layers[-2:0:-1], signs[-2::-1], strict=True):
        slopes.insert(0, (slopes[0] @ layer.weight) * sign)
    later = [_outer(slope, below) for slope, below in zip(slopes[1:], hidden, strict=False)]
    return Trace(slopes, [*later, hidden[-1], torch.ones_like(rewards)[..., None]], rewards)


def _outer(slopes: Tensor, inputs: Tensor) -> Tensor:
    """Return the gradient of a layer's weights and bias: slopes x (inputs, 1)."""
    inputs = torch.cat([inputs, torch.ones_like(inputs[..., :1])], dim=-1)
    return (slopes[..., :, None] * inputs[..., None, :]).flatten(-2)


def _part_sizes(network: RewardNetwork) -> list[int]:
    """Return the number of parameters of each layer, weights and bias, wide path last."""
    layers = [layer.weight.numel() + layer.bias.numel() for layer in network.layers]
    return layers if network.wide is None else [*layers, network.wide.weight.numel()]


def _features_through(
    network: RewardNetwork, rows: Float[Tensor, "B R F"], affine: Affine
) -> Float[Tensor, "B R G"]:
    """Turn functions of the arm features into functions of the same features of points."""
    size = len(affine.centre) + 1
    first = network.first_width * size
    last = size if network.wide is not None else 0
    middle = rows.shape[-1] - first - last
    parts = rows.split([first, middle, last], dim=-1)
    blocks = _through(parts[0].unflatten(-1, (network.first_width, size)), affine).flatten(-2)
    tail = [_through(parts[2], affine)] if last else []
    return torch.cat([blocks, parts[1], *tail], dim=-1)


def _through(block: Float[Tensor, "*s F"], affine: Affine) -> Float[Tensor, "*s G"]:
    """Turn functions of (arm, 1) into functions of (point, 1)."""
    action, constant = block[..., :-1], block[..., -1:]
    shift = (action @ affine.centre)[..., None]
    return torch.cat([action @ affine.axes.T, constant + shift], dim=-1)
