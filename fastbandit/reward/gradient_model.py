"""GradientReward: a posterior from the network's own gradients (NeuralUCB, Zhou, Li and Gu 2020).

The standard deviation of a reward is sqrt(gᵀ Z⁻¹ g / m), where g is the gradient of the
network (not of the encoders) at a context and an arm, Z = ridge·I + Σ g gᵀ / m over the
history, and m the width. Differences from the paper: the network learns with Concrete Dropout
as a penalty that adapts (posterior and predictions use its mean); Z is worked out anew
from the whole history with the current weights after each update
(`gradients="current"`; "when chosen" is the printed rule); and Z is full while the
network is small, diagonal beyond `full_below` parameters.

Searches find their way by a surrogate of the standard deviation, a small network that learns it
after each update, and re-rank the last few arms by the bound itself.

For a fixed context the gradient is a linear map of something much smaller, the *arm
features*: slopes x (arm, 1), the later layers' gradients, (arm, 1). So Z⁻¹ folds, once per
context, into a small matrix, and one evaluation costs its square instead of the square of
all parameters.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, CompiledModel, Plan
from fastbandit.reward.gradient_bounds import DiagonalBound, LinearDraw, UpperBound, outer, trace_of
from fastbandit.reward.model import NeuralReward, box_muller, no_noise, normals_need
from fastbandit.reward.network import Folded, RewardNetwork
from fastbandit.reward.surrogate import fit_deviations
from fastbandit.score import Score
from fastbandit.types import Inputs, Interactions

_CHUNK = 4096
_SURROGATE = 32
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
        return GradientReward(plan, self, rng=rng)


class GradientReward(NeuralReward):
    """Rewards whose posterior is what the gradients of the history leave open."""

    information: Tensor
    inverse: Tensor
    root: Tensor
    bonus_shift: Tensor
    bonus_scale: Tensor

    def __init__(self, plan: Plan, posterior: GradientPosterior, *, rng: Generator) -> None:
        super().__init__(plan, dropout=True, rng=rng)
        self.ridge, self.gradients = posterior.ridge, posterior.gradients
        sizes = [layer.weight.numel() + layer.bias.numel() for layer in self.network.layers]
        wide = self.network.wide
        self.parts = sizes if wide is None else [*sizes, wide.weight.numel()]
        parameters = sum(self.parts)
        self.is_full = parameters < posterior.full_below
        self.noise_size = normals_need(parameters)
        start = torch.eye(parameters) if self.is_full else torch.ones(parameters)
        self.register_buffer("information", start.double() * self.ridge)  # Z, or its diagonal
        self.register_buffer("inverse", start / self.ridge)
        self.register_buffer("root", start / self.ridge**0.5)  # root @ root.T = inverse
        self.bonus: RewardNetwork | None = None
        if len(self.settings.hidden) == 1:  # it learns the standard deviation
            size, product, leak = self.network.dim, self.network.product, self.network.leak
            self.bonus = RewardNetwork(
                size, (_SURROGATE,), product=product, dropout=False, leak=leak, rng=rng
            )
        self.register_buffer("bonus_shift", torch.zeros(()))
        self.register_buffer("bonus_scale", torch.zeros(()))

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
                f"trained surrogate. Use a network of one hidden layer and search='generator', or "
                f"select with the Bandit."
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
            weights = (self.inverse * (width**2 / self.width)).split(self.parts)
            diagonal = DiagonalBound(folded, self.network, contexts, weights)
            return Score(diagonal, contexts, no_noise(contexts), surrogate)
        means = (self.fold_bonus, self.deviations, self.width)
        bound = UpperBound(folded, self.network, *means, contexts, width)
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
        parts = [outer(trace.slopes[0], inputs), *trace.later]
        if self.network.wide is not None:
            parts.append(inputs)
        return torch.cat(parts, dim=-1)[:, 0]

    def fold_bonus(self, contexts: Float[Tensor, "B E"]) -> Float[Tensor, "B F F"]:
        """Fold the inverse of Z for each context, from both sides."""
        at_once = _FOLDED_AT_ONCE if contexts.device.type == "cpu" else _FOLDED_ON_GPU
        folded = []
        for some in contexts.split(at_once):
            half = self._fold_rows(self.inverse[None], some)  # (B, P, F)
            folded.append(self._fold_rows(half.transpose(1, 2), some))
        return torch.cat(folded)

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
