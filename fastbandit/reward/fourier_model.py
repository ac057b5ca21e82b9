"""FourierReward: an exact Gaussian posterior over random Fourier features of context and arm.

Rahimi and Recht, "Random features for large-scale kernel machines" (2007): sines and cosines
of random frequencies, weighed linearly, are a Gaussian process whose kernel they sample, here
Matérn 5/2 (`fastbandit.reward.matern`). The posterior of their weights has a closed form:
nothing is trained in steps. One draw of them is a smooth function of the arm, which a search
can climb.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from fastbandit.declaration import part, setting
from fastbandit.errors import SettingError
from fastbandit.features.kinds import FeaturesAndIds, Ids, Point
from fastbandit.interfaces import Plan, RewardModel
from fastbandit.reward.context_features import ContextFeatures
from fastbandit.reward.matern import Kernel, Seen, fit_kernel, frequencies
from fastbandit.reward.model import box_muller, mean_and_std, no_noise, normals_need
from fastbandit.reward.picks import look, pick
from fastbandit.score import Score
from fastbandit.types import Features, Inputs, Interactions

_DIRECTIONS = 16  # of contexts, at most
_PICKS = 128  # other decisions of a batch that are kept apart
_TYPICAL = 4  # contexts that the others decide for
_CHUNK = 8192
_TINY = 1e-9
_FORMER = {"context_frequencies": "context_waves", "arm_frequencies": "arm_waves"}


@part("posterior", name="fourier")
class FourierPosterior:
    """An exact posterior over random Fourier features, for the points of a box.

    There are so many `features`; lengths of the kernel are fitted anew when the history is `grow`
    times as long.
    """

    features: int = 512
    grow: float = setting(default=1.25, above=0)

    def build(self, plan: Plan, *, rng: Generator) -> FourierReward:
        if not isinstance(plan.arm, Point):
            raise SettingError(
                f"Random Fourier features need arms that fill a box: got arms of kind "
                f"{type(plan.arm).__name__}. Leave out posterior=, or give arms=Box(low, high)."
            )
        return FourierReward(plan.context, plan.arm, posterior=self, rng=rng)


@dataclass(frozen=True, eq=False)
class FourierSum:
    """A weighted sum of Fourier features over the points of a box, for fixed contexts."""

    frequencies: Float[Tensor, "F D"]
    cosines: Float[Tensor, "B F"]
    sines: Float[Tensor, "B F"]
    constant: Float[Tensor, "B 1"]

    def __call__(self, arms: Float[Tensor, "b K D"]) -> Float[Tensor, "B K"]:
        angles = arms @ self.frequencies.T  # (b, K, F)
        both = torch.cat([torch.cos(angles), torch.sin(angles)], dim=2)
        weights = torch.cat([self.cosines, self.sines], dim=1)
        if len(arms) == 1:
            return weights @ both[0].T + self.constant
        return (both @ weights[:, :, None]).squeeze(2) + self.constant


class FourierReward(RewardModel):
    """Rewards as a weighted sum of random Fourier features, whose weights have a posterior.

    The kernel is fitted anew when the history is `grow` times as long. Rewards of 0 and 1 are
    treated as any numbers.
    """

    context_shift: Tensor
    context_scale: Tensor
    context_basis: Tensor
    lowest: Tensor
    sides: Tensor
    context_frequencies: Tensor
    arm_frequencies: Tensor
    sizes: Tensor
    centre: Tensor
    spread: Tensor
    kernel: Tensor
    reward_shift: Tensor
    reward_scale: Tensor
    fitted_at: Tensor
    fresh: Tensor
    typical: Tensor

    def __init__(
        self, context: Features, arm: Point, *, posterior: FourierPosterior, rng: Generator
    ) -> None:
        super().__init__()
        # A cosine and a sine of each frequency.
        self.grow, self.frequency_count = posterior.grow, -(-posterior.features // 2)
        self.has_ids = isinstance(context, Ids | FeaturesAndIds)
        self.root = int(torch.randint(2**62, (1,), generator=rng))
        size = 2 * self.frequency_count + 1
        self.noise_size = normals_need(size)
        lowest = torch.tensor(arm.low)
        nothing, count = torch.zeros(0, dtype=torch.float64), torch.zeros((), dtype=torch.int64)
        first = {
            "context_shift": nothing,
            "context_scale": nothing,
            "context_basis": nothing[None],
            "lowest": lowest,
            "sides": torch.tensor(arm.high) - lowest,
            "context_frequencies": torch.zeros(self.frequency_count, 0),
            "arm_frequencies": torch.zeros(self.frequency_count, arm.dim),
            "sizes": torch.ones(size),
            "centre": torch.zeros(size),
            "spread": torch.zeros(0, 0),
            "kernel": nothing,
            "reward_shift": torch.zeros(()),
            "reward_scale": torch.ones(()),
            "fitted_at": count,
            "fresh": count,
            "typical": torch.zeros(1, 0),
        }
        for name, tensor in first.items():
            self.register_buffer(name, tensor.clone())
        self._by_others: Tensor | None = None  # by the picks of others: worked out when needed

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take over the saved shapes, which depend on what was seen."""
        for new, old in _FORMER.items():
            if f"{prefix}{old}" in state:
                state[f"{prefix}{new}"] = state.pop(f"{prefix}{old}")
        for name, mine in self.named_buffers():
            saved = state.get(f"{prefix}{name}")
            if saved is not None and saved.shape != mine.shape:
                setattr(self, name, torch.zeros_like(saved, device=mine.device))
        super()._load_from_state_dict(state, prefix, *rest)
        self._by_others = None

    # -- seeing

    def embed_contexts(self, contexts: Inputs) -> Float[Tensor, "B E"]:
        assert int(self.fitted_at), "contexts are seen after an update"
        features = self._features()(contexts).astype(np.float32)
        return torch.from_numpy(features).to(self.centre.device)

    def _features(self) -> ContextFeatures:
        return ContextFeatures(
            self.context_shift.cpu().numpy(),
            self.context_scale.cpu().numpy(),
            self.context_basis.cpu().numpy(),
            length=1.0,
            has_ids=self.has_ids,
        )

    def embed_arms(self, arms: Inputs) -> Float[Tensor, "N E"]:
        return self.encode_arms(torch.tensor(arms.dense, device=self.centre.device))

    def encode_arms(self, values: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        return (values - self.lowest) / self.sides  # from 0 to 1 along each side

    def fourier_features(self, contexts: Tensor, arms: Tensor) -> Tensor:
        """Return what weights act on: Fourier features and a constant, scaled by the kernel."""
        angles = contexts @ self.context_frequencies.to(contexts).T
        angles = angles + arms @ self.arm_frequencies.to(arms).T
        parts = [torch.cos(angles), torch.sin(angles), torch.ones_like(angles[..., :1])]
        return torch.cat(parts, dim=-1) * self.sizes.to(angles)

    # -- scoring

    def mean(self, contexts: Float[Tensor, "B E"]) -> Score:
        return Score(self._fold(contexts, self.centre[None]), contexts, no_noise(contexts))

    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        noise = scale * box_muller(uniforms, len(self.centre))
        folded = self._fold(contexts, self.centre + noise @ self.spread.T)
        return Score(folded, contexts, noise)

    def _fold(self, contexts: Float[Tensor, "B E"], weights: Float[Tensor, "b W"]) -> FourierSum:
        """Turn features over both into features over the arm alone, by the contexts' angles."""
        cosines, sines, constant = (weights * self.sizes).split(
            [self.frequency_count, self.frequency_count, 1], dim=1
        )
        angles = contexts @ self.context_frequencies.T
        cos, sin = torch.cos(angles), torch.sin(angles)
        return FourierSum(
            self.arm_frequencies,
            cosines * cos + sines * sin,
            sines * cos - cosines * sin,
            constant.expand(len(contexts), -1),
        )

    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        bound = self._bound(contexts, self.centre[None], width, others=None)
        return Score(bound, contexts, no_noise(contexts))

    def upper_beside(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, width: float
    ) -> Score:
        """Imagine the rewards of so many others as the first number says, then take the bound.

        Imagined rewards lie `width` times as far from their means as the posterior says.
        """
        others = self._seen_by_others()
        counted = torch.floor(uniforms[:, :1] * (others.shape[1] + 1))  # (B, 1)
        is_counted = torch.arange(others.shape[1], device=others.device) < counted
        surprises = width * box_muller(uniforms[:, 1:], others.shape[1]) * is_counted  # (B, J)
        weights = self.centre + surprises @ others.T @ self.spread.T
        bound = self._bound(contexts, weights, width, others=(others, is_counted))
        return Score(bound, contexts, surprises)

    def _bound(
        self,
        contexts: Float[Tensor, "B E"],
        weights: Float[Tensor, "b W"],
        width: float,
        *,
        others: tuple[Tensor, Tensor] | None,
    ) -> Callable[[Tensor], Tensor]:
        """Return the bound about the mean that weights give, less what others will have shown."""
        folded = self._fold(contexts, weights)
        different, which = torch.unique(contexts, dim=0, return_inverse=True)

        def bound(arms: Float[Tensor, "b K D"]) -> Float[Tensor, "B K"]:
            is_shared = len(arms) == 1  # then equal contexts have equal deviations
            seen, rows = (different, which) if is_shared else (contexts, slice(None))
            halves = self.fourier_features(seen[:, None], arms) @ self.spread
            variance = halves.square().sum(-1)[rows]
            if others is not None:
                known = (halves @ others[0]).square()[rows]  # (B, K, J)
                variance = variance - (known @ others[1].to(known)[:, :, None]).squeeze(2)
            return folded(arms) + width * variance.clamp_min(_TINY).sqrt()

        return bound

    def _seen_by_others(self) -> Float[Tensor, "W J"]:
        """Return what the other decisions before the next update would tell, if like the last."""
        if self._by_others is None:
            fresh = int(self.fresh)
            count = min(fresh - 1, _PICKS, len(self.centre))
            means, halves = look(self._halves, len(self.sides))
            noise = float(self.kernel[1].exp()) * (count + 1) / fresh
            self._by_others = pick(means, halves, count=count, noise=noise)
        return self._by_others

    def _halves(self, points: Float[Tensor, "n D"]) -> tuple[Tensor, Tensor]:
        features = self.fourier_features(self.typical, points.to(self.centre)[:, None])
        features = features.flatten(0, 1)
        return features @ self.centre, features @ self.spread

    # -- learning

    def start(self, history: Interactions, *, fresh: int) -> None:
        self.fresh.fill_(max(1, fresh))
        mean, std = mean_and_std(history)
        self.reward_shift.fill_(mean)
        self.reward_scale.fill_(std if std > _TINY else 1.0)

    @torch.no_grad()
    def fit_posterior(self, history: Interactions) -> None:
        """Work out the posterior; fit the kernel first where the history has grown enough."""
        before = int(self.fitted_at)
        is_due = not before or not before <= len(history) < self.grow * before
        if is_due:
            features = ContextFeatures.fit(history.contexts, most=_DIRECTIONS)
            for name in ("shift", "scale", "basis"):
                array = torch.from_numpy(np.ascontiguousarray(getattr(features, name)))
                setattr(self, f"context_{name}", array.to(self.centre.device))
        weights = np.ones(len(history)) if history.weights is None else history.weights
        rewards = torch.from_numpy(history.rewards.astype(np.float64)) - float(self.reward_shift)
        seen = Seen(
            torch.from_numpy(self._features()(history.contexts)),
            self.embed_arms(history.arms).double().cpu(),
            rewards / float(self.reward_scale),
            torch.from_numpy(weights).clamp_min(_TINY),
        )
        if is_due:
            self._take(fit_kernel(seen, before=Kernel.of(self.kernel.cpu()) if before else None))
            self.fitted_at.fill_(len(history))
        self._solve(seen)
        late = self.embed_contexts(history.contexts.take(slice(-_TYPICAL, None)))
        self.typical, self._by_others = torch.unique(late, dim=0), None

    def _take(self, kernel: Kernel) -> None:
        """Scale the frequencies, always the same ones, by the lengths of a kernel."""
        device, sizes = self.centre.device, [len(self.sides), self._features().count]
        rng = torch.Generator().manual_seed(self.root)
        arms, contexts = frequencies(self.frequency_count, sum(sizes), rng=rng).split(sizes, dim=1)
        self.arm_frequencies = (arms / kernel.lengths).float().to(device)
        self.context_frequencies = (contexts / kernel.context_length).float().to(device)
        self.sizes[:-1] = (kernel.variance / self.frequency_count) ** 0.5
        self.kernel = kernel.numbers().to(device)

    def _solve(self, seen: Seen) -> None:
        """Work out the mean and the covariance of the weights, from the root of the precision."""
        size, noise = len(self.centre), float(self.kernel[1].exp())
        precision = torch.eye(size, dtype=torch.float64)
        moment = torch.zeros(size, dtype=torch.float64)
        for first in range(0, len(seen.rewards), _CHUNK):
            rows = slice(first, first + _CHUNK)
            features = self.fourier_features(seen.contexts[rows], seen.points[rows])
            weights = seen.weights[rows] / noise
            precision += features.T @ (features * weights[:, None])
            moment += features.T @ (weights * seen.rewards[rows])
        root = torch.linalg.cholesky(precision)
        self.centre.copy_(torch.cholesky_solve(moment[:, None], root).squeeze(1))
        inverse = torch.linalg.solve_triangular(root, torch.eye(size).to(root), upper=False)
        self.spread = inverse.T.contiguous().to(self.centre)  # spread @ spread.T = covariance

    def in_rewards(self, scores: Tensor) -> Tensor:
        return scores * self.reward_scale + self.reward_shift
