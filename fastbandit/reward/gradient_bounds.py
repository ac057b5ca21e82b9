"""Scores of a posterior from gradients, for fixed contexts: bounds, and a linear draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from fastbandit.reward.network import Folded, RewardNetwork
from fastbandit.score import Affine

_FEW_ARMS = 32
_AT_ONCE = 2**16  # arms


@dataclass(frozen=True)
class UpperBound:
    """mean + width x the root of a quadratic form in the gradient, for fixed contexts.

    For many arms the form is folded once into one of the arm features; for a few that would
    cost more than it saves.
    """

    folded: Folded
    network: RewardNetwork
    covariance: Callable[[Tensor], Tensor]
    deviations: Callable[[Tensor, Tensor], Tensor]
    size: int
    contexts: Float[Tensor, "B E"]
    width: float
    affine: Affine | None = None

    def through(self, affine: Affine) -> UpperBound:
        return replace(self, folded=self.folded.through(affine), affine=affine)

    def __call__(self, arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
        if arms.shape[1] <= _FEW_ARMS:
            return self._one_by_one(arms.expand(len(self.contexts), -1, -1))
        trace = trace_of(self.folded, self.network, arms)
        features = trace.arm_features(arms, self.network)  # (B, K, F)
        variance = (torch.bmm(features, self._posterior) * features).sum(-1)
        return trace.rewards + variance.clamp_min(1e-12).sqrt()

    @cached_property
    def _posterior(self) -> Float[Tensor, "B F F"]:
        covariance = self.covariance(self.contexts) * (self.width**2 / self.size)
        if self.affine is None:
            return covariance
        half = _features_through(self.network, covariance, self.affine)
        return _features_through(self.network, half.transpose(1, 2), self.affine)

    def _one_by_one(self, arms: Float[Tensor, "B K E"]) -> Float[Tensor, "B K"]:
        embedded = arms if self.affine is None else self.affine(arms)
        contexts = self.contexts[:, None].expand(-1, arms.shape[1], -1).flatten(0, 1)
        embedded = embedded.flatten(0, 1)
        parts = zip(contexts.split(_AT_ONCE), embedded.split(_AT_ONCE), strict=True)
        deviations = torch.cat([self.deviations(*part) for part in parts])
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
        parts = [outer(self.slopes[0], arms), *self.later]
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
    later = [outer(slope, below) for slope, below in zip(slopes[1:], hidden, strict=False)]
    return Trace(slopes, [*later, hidden[-1], torch.ones_like(rewards)[..., None]], rewards)


def outer(slopes: Tensor, inputs: Tensor) -> Tensor:
    """Return the gradient of a layer's weights and bias: slopes x (inputs, 1)."""
    inputs = torch.cat([inputs, torch.ones_like(inputs[..., :1])], dim=-1)
    return (slopes[..., :, None] * inputs[..., None, :]).flatten(-2)


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
