"""What weights say of an estimate: whether to trust it, in numbers and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from fastbandit.evaluation.rounds import Floats

_FEW = 100.0
_SOME = 1_000.0
_NOISY = 0.2


@dataclass(frozen=True)
class Diagnostics:
    """How far the rounds of a log speak for a policy.

    `effective_size` is (Σ w)² / Σ w²: so many rounds of the policy's own would say as much.
    `match_share` are the rounds whose arm the policy takes at all. `mean_weight` is near 1 where
    the propensities are right and the log has all arms that the policy takes; `weight_error` is
    its standard error. `cut_rounds` had weights above the clip, which took `cut_weight` from the
    mean weight.
    """

    rounds: int
    effective_size: float
    largest_weight: float
    match_share: float
    mean_weight: float
    weight_error: float
    cut_rounds: int = 0
    cut_weight: float = 0.0

    @property
    def is_trusted(self) -> bool:
        """Whether enough rounds speak for the policy, and their weights are as they should be."""
        return not self.is_few and (bool(self.cut_rounds) or not self.is_off)

    @property
    def is_few(self) -> bool:
        """Whether so few rounds speak for the policy that nothing can be said."""
        return self.effective_size < _FEW

    @property
    def is_off(self) -> bool:
        """Whether the mean weight is too far from 1 to be noise."""
        return abs(self.mean_weight - 1.0) > max(4.0 * self.weight_error, 0.01)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers mean, a sentence each."""
        size = self.effective_size
        shown = f"{size:.1f}" if 0.0 < size < 10.0 else f"{size:,.0f}"
        trust = "take the intervals seriously" if size < _SOME else "enough to go by"
        verdict = "do not trust this" if self.is_few else trust
        match = (
            f"the policy takes the logged arm at all in {self.match_share:.1%} of the rounds; "
            f"largest weight {self.largest_weight:,.4g}"
        )
        effective = f"effective sample size {shown} of {self.rounds:,}: {verdict}"
        return effective, match, self._on_the_mean()

    def _on_the_mean(self) -> str:
        mean = f"mean weight {self.mean_weight:.3f} ± {self.weight_error:.3f}"
        if self.cut_rounds:
            return f"{mean} after clipping; it should be near 1 without"
        if not self.is_off and self.weight_error > _NOISY:
            return f"{mean}: too noisy to tell whether it is near 1, as it should be"
        if not self.is_off:
            return f"{mean}, near 1 as it should be"
        why = (
            "the policy takes arms that the log hardly shows"
            if self.mean_weight < 1.0
            else "the propensities are lower than the arms' true shares"
        )
        return f"{mean}, but it should be near 1: {why}, or the propensities are wrong"


def diagnose(weights: Floats, *, clip: float | None = None) -> Diagnostics:
    """Return how far weights (not clipped yet) can be trusted, and what clipping them does."""
    used = weights if clip is None else np.minimum(weights, clip)
    total, squares = float(used.sum()), float((used**2).sum())
    return Diagnostics(
        rounds=len(used),
        effective_size=total * total / squares if squares > 0.0 else 0.0,
        largest_weight=float(used.max()),
        match_share=float((used > 0.0).mean()),
        mean_weight=float(used.mean()),
        weight_error=float(used.std()) / sqrt(len(used)),
        cut_rounds=int(np.count_nonzero(used < weights)),
        cut_weight=float((weights - used).mean()),
    )


def clip_note(found: Diagnostics, clip: float, rewards: Floats) -> str:
    """Say how far clipping biases IPS: by E[(w - clip)⁺ r], which the rewards bound."""
    low, high = (found.cut_weight * float(end) for end in (rewards.min(), rewards.max()))
    return (
        f"weights above {clip:g} were clipped in {found.cut_rounds:,} of {found.rounds:,} rounds: "
        f"with rewards from {rewards.min():g} to {rewards.max():g}, IPS is too low by "
        f"{low:.4g} to {high:.4g}"
    )


def cluster_warning(found: Diagnostics) -> str:
    """Warn where the weights of clusters do not average to 1; say nothing where they do."""
    if not found.is_off:
        return ""
    return (
        f"do not trust MIPS: the mean weight of clusters is {found.mean_weight:.3f} ± "
        f"{found.weight_error:.3f} and should be near 1; give it the logging policy, or make fewer "
        f"clusters"
    )
