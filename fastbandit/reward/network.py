"""The layers over an embedded context and an embedded arm.

Inputs of the first layer are both embeddings and their element-wise product; a wide linear
path leads from the same inputs straight to the output. For one request nearly everything is
fixed, so the network folds: first layer, masks and wide path become a few small matrices
that act on the arm alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor, nn

from fastbandit.optim.layers import linear
from fastbandit.score import Affine

_TEMPERATURE = 0.1
_FIRST_RATE = 0.1  # of dropout


@dataclass(frozen=True)
class Folded:
    """A reward network for fixed contexts and masks: a small network of the arm alone."""

    first: Float[Tensor, "B H E"]
    first_bias: Float[Tensor, "B H"]
    deeper: tuple[Tensor, ...]
    deeper_biases: tuple[Tensor, ...]
    last: Float[Tensor, "B L"]
    wide: Float[Tensor, "B E"]
    constant: Float[Tensor, " B"]
    leak: float

    def before(self, arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K H"]:
        if len(arms) < len(self.first):  # the same arms for all contexts: one matrix product
            return torch.einsum("ke,bhe->bkh", arms[0], self.first) + self.first_bias[:, None]
        return torch.baddbmm(self.first_bias[:, None], arms, self.first.transpose(1, 2))

    def hidden(self, arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K L"]:
        hidden = F.leaky_relu(self.before(arms), self.leak)
        for weight, bias in zip(self.deeper, self.deeper_biases, strict=True):
            hidden = F.leaky_relu(torch.matmul(hidden, weight.transpose(-1, -2)) + bias, self.leak)
        return hidden

    def through(self, affine: Affine) -> Folded:
        """Take the map from points to arms into the first layer and the wide path."""
        return replace(
            self,
            first=self.first @ affine.axes.T,
            first_bias=self.first_bias + self.first @ affine.centre,
            wide=self.wide @ affine.axes.T,
            constant=self.constant + self.wide @ affine.centre,
        )

    def slope(
        self, arms: Float[Tensor, "B K E"]
    ) -> tuple[Float[Tensor, "B K"], Float[Tensor, "B K E"]]:
        """Return the rewards of arms and their slopes: one pass forward, one back."""
        before = [self.before(arms)]
        for weight, bias in zip(self.deeper, self.deeper_biases, strict=True):
            hidden = F.leaky_relu(before[-1], self.leak)
            before.append(torch.matmul(hidden, weight.transpose(-1, -2)) + bias)
        back = self.last[:, None] * torch.where(before[-1] > 0, 1.0, self.leak)  # (B, K, H)
        rewards = (back * before[-1]).sum(-1)  # slope x sum is what a leaky unit gives
        for weight, below in zip(reversed(self.deeper), reversed(before[:-1]), strict=True):
            back = torch.matmul(back, weight) * torch.where(below > 0, 1.0, self.leak)
        wide = torch.matmul(arms, self.wide[..., None]).squeeze(-1)
        rewards = rewards + wide + self.constant[:, None]
        return rewards, torch.bmm(back, self.first) + self.wide[:, None]

    def __call__(self, arms: Float[Tensor, "b K E"]) -> Float[Tensor, "B K"]:
        deep = torch.matmul(self.hidden(arms), self.last[..., None]).squeeze(-1)
        wide = torch.matmul(arms, self.wide[..., None]).squeeze(-1)
        return deep + wide + self.constant[:, None]


class ConcreteDropout(nn.Module):
    """Dropout of the `size` inputs of one layer that learns its own rate: Concrete Dropout.

    Gal, Hron and Kendall (NeurIPS 2017). A mask multiplies the inputs. It is made from uniform
    numbers that are passed in, so that one draw can be held still while arms are searched.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.logit = nn.Parameter(torch.tensor(math.log(_FIRST_RATE / (1 - _FIRST_RATE))))

    @property
    def rate(self) -> Float[Tensor, ""]:
        return torch.sigmoid(self.logit)

    def mask(self, uniforms: Float[Tensor, "*s H"]) -> Float[Tensor, "*s H"]:
        """Return the factors of the inputs: near 0 (dropped) or near 1 / (1 - rate) (kept)."""
        drop = torch.sigmoid((self.logit + torch.logit(uniforms)) / _TEMPERATURE)
        return (1 - drop) / (1 - self.rate)

    def entropy_penalty(self) -> Float[Tensor, ""]:
        """Return the inputs times the negative entropy of the rate; training makes it small."""
        rate = self.rate
        return self.size * (rate * torch.log(rate) + (1 - rate) * torch.log1p(-rate))


class RewardNetwork(nn.Module):
    """Rewards from embedded contexts and arms, of `dim` columns each."""

    def __init__(
        self,
        dim: int,
        hidden: Sequence[int],
        *,
        product: bool = True,
        wide: bool = True,
        dropout: bool = True,
        leak: float = 0.1,
        rng: Generator,
    ) -> None:
        super().__init__()
        self.dim, self.product, self.leak = dim, product, leak
        inputs = 3 * dim if product else 2 * dim
        sizes = [inputs, *hidden]
        pairs = zip(sizes, [*sizes[1:], 1], strict=True)
        self.stack = nn.ModuleList(linear(size, after, rng=rng) for size, after in pairs)
        self.wide = linear(inputs, 1, rng=rng) if wide else None
        self.drops = nn.ModuleList(ConcreteDropout(size) for size in sizes if dropout)
        self.input_sizes = sizes
        self.first_width = sizes[1]

    @property
    def layers(self) -> list[nn.Linear]:
        """The layers from the joined embeddings to the reward."""
        return list(self.stack)  # type: ignore[arg-type]

    @property
    def dropouts(self) -> list[ConcreteDropout]:
        """The dropout before each layer; none where the network has no dropout."""
        return list(self.drops)  # type: ignore[arg-type]

    def masks(self, uniforms: Float[Tensor, "B Z"], scale: float = 1.0) -> list[Tensor]:
        """Turn uniform numbers into one mask per layer, moved towards 1 by a small scale."""
        parts = uniforms.split(self.input_sizes, dim=-1)
        masks = [drop.mask(part) for drop, part in zip(self.dropouts, parts, strict=True)]
        return masks if scale == 1.0 else [1 + scale * (mask - 1) for mask in masks]

    def features(self, contexts: Tensor, arms: Tensor) -> Tensor:
        """Join two embeddings (and their product): the inputs of the first layer."""
        parts = [contexts, arms, contexts * arms] if self.product else [contexts, arms]
        return torch.cat(parts, dim=-1)

    def forward(
        self,
        contexts: Float[Tensor, "B E"],
        arms: Float[Tensor, "B E"],
        masks: list[Tensor] | None = None,
    ) -> Float[Tensor, " B"]:
        inputs = self.features(contexts, arms)  # (B, 3E)
        hidden: Tensor = inputs
        for number, layer in enumerate(self.layers):
            if number:
                hidden = F.leaky_relu(hidden, self.leak)
            hidden = layer(hidden if masks is None else hidden * masks[number])
        rewards = hidden.squeeze(-1)  # (B,)
        return rewards if self.wide is None else rewards + self.wide(inputs).squeeze(-1)

    def fold(self, contexts: Float[Tensor, "B E"], masks: list[Tensor] | None = None) -> Folded:
        """Fix contexts and masks: what remains is a small network of the arm."""
        first, *deeper, last = self.layers
        masks = masks or [contexts.new_ones(1, size) for size in self.input_sizes]
        weight, constant = self.act_on_arm(first.weight[None] * masks[0][:, None], contexts)
        wide = contexts.new_zeros(len(contexts), self.dim)
        wide_constant = contexts.new_zeros(len(contexts))
        if self.wide is not None:
            wide, wide_constant = self.act_on_arm(self.wide.weight[None], contexts)
            wide, wide_constant = wide[:, 0], wide_constant[:, 0] + self.wide.bias
        return Folded(
            first=weight,
            first_bias=constant + first.bias,
            deeper=tuple(
                layer.weight[None] * mask[:, None]
                for layer, mask in zip(deeper, masks[1:-1], strict=True)
            ),
            deeper_biases=tuple(layer.bias for layer in deeper),
            last=(last.weight * masks[-1]).expand(len(contexts), -1),
            wide=wide,
            constant=wide_constant + last.bias,
            leak=self.leak,
        )

    def act_on_arm(
        self, weight: Float[Tensor, "b H F"], contexts: Float[Tensor, "B E"]
    ) -> tuple[Float[Tensor, "B H E"], Float[Tensor, "B H"]]:
        """Split a linear layer over the features into its action on the arm and a constant."""
        by_context, by_arm, *by_product = weight.split(self.dim, dim=-1)
        if by_product:
            by_arm = by_arm + by_product[0] * contexts[:, None]
        if len(weight) == 1:  # the same weights for all contexts: one matrix product
            constant = contexts @ by_context[0].T
        else:
            constant = torch.bmm(by_context, contexts[..., None]).squeeze(-1)
        return by_arm.expand(len(contexts), -1, -1), constant

    def weight_penalty(self) -> Float[Tensor, ""]:
        """Return the squared weights, each layer's divided by the share that dropout keeps."""
        squares = torch.stack([layer.weight.square().sum() for layer in self.layers])
        if self.dropouts:
            squares = squares / (1 - torch.stack([drop.rate for drop in self.dropouts]))
        return squares.sum()

    def entropy_penalty(self) -> Float[Tensor, ""]:
        return torch.stack([drop.entropy_penalty() for drop in self.dropouts]).sum()
