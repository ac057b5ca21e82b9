"""Estimators of what a policy would have earned: each a formula over columns of a log.

Notation: round i has context x, arm a, reward r and propensity p; the policy would have taken
that arm with probability π(a|x). Its weight is w = π(a|x) / p. A model of the reward says
q(x, a); Q(x) = Σ_b π(b|x) q(x, b) is what it expects of the policy. All formulas are those of
Saito et al., "Open Bandit Dataset and Pipeline" (2021), where they list them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbandit.evaluation.rounds import Floats

ESTIMATORS = ("replay", "ips", "snips", "dm", "dr", "switch", "mips")
MODELLED = ("dm", "dr", "switch")


@dataclass(frozen=True, eq=False)
class Terms:
    """What each round adds to an estimate: Σ tops / Σ bottoms, or the mean of tops alone.

    `weights` are there where they are others than those of single arms.
    """

    tops: Floats
    bottoms: Floats | None = None
    weights: Floats | None = None

    @property
    def value(self) -> float:
        """The estimate; NaN where no round says anything."""
        if self.bottoms is None:
            return float(self.tops.mean())
        below = float(self.bottoms.sum())
        return float(self.tops.sum()) / below if below > 0.0 else float("nan")

    @property
    def influence(self) -> Floats:
        """How each round moves the estimate: terms whose mean is the estimate.

        By the delta method, V + (top - V bottom) / mean(bottom) for a ratio V.
        """
        if self.bottoms is None:
            return self.tops
        value, below = self.value, float(self.bottoms.mean())
        return value + (self.tops - value * self.bottoms) / below


def importance_weights(
    target: Floats, propensities: Floats, *, clip: float | None = None
) -> Floats:
    """Give w = π(a|x) / p, and at most `clip` where that is told."""
    weights = target / propensities
    return weights if clip is None else np.minimum(weights, clip)


def replay(rewards: Floats, target: Floats) -> Terms:
    """Σ π r / Σ π: the mean reward of the rounds in which the policy takes the logged arm.

    Li, Chu, Langford and Wang, "Unbiased offline evaluation of contextual-bandit-based news
    article recommendation algorithms" (2011). Needs a log in which every arm was equally
    likely. A policy that draws counts in a round as often as it would have matched.
    """
    return Terms(target * rewards, target)


def ips(rewards: Floats, weights: Floats) -> Terms:
    """mean(w r): unbiased where the log had every arm that the policy takes.

    Horvitz and Thompson (1952); Strehl, Langford, Li and Kakade, "Learning from logged implicit
    exploration data" (2010).
    """
    return Terms(weights * rewards)


def snips(rewards: Floats, weights: Floats) -> Terms:
    """Σ w r / Σ w: a little biased, far less noisy, and never beyond the rewards seen.

    Swaminathan and Joachims, "The self-normalized estimator for counterfactual learning" (2015).
    """
    return Terms(weights * rewards, weights)


def direct_method(expected: Floats) -> Terms:
    """mean(Q): as right as the model of the reward is.

    Beygelzimer and Langford, "The offset tree for learning with partial labels" (2009).
    """
    return Terms(expected)


def doubly_robust(rewards: Floats, weights: Floats, *, expected: Floats, logged: Floats) -> Terms:
    """mean(Q + w (r - q)): right where the propensities or the model are; `logged` is q.

    Dudík, Langford and Li, "Doubly robust policy evaluation and learning" (2011).
    """
    return Terms(expected + weights * (rewards - logged))


def switch_doubly_robust(
    rewards: Floats, weights: Floats, *, expected: Floats, logged: Floats, threshold: float
) -> Terms:
    """mean(Q + w 1[w <= threshold] (r - q)): the model alone where weights are large.

    Wang, Agarwal and Dudík, "Optimal and adaptive off-policy evaluation in contextual bandits"
    (2017).
    """
    kept = np.where(weights <= threshold, weights, 0.0)
    return Terms(expected + kept * (rewards - logged))


def marginalised_ips(rewards: Floats, target: Floats, logging: Floats) -> Terms:
    """mean(w r) with w = π(e|x) / π₀(e|x), where e is the cluster of the arm's embedding.

    Saito and Joachims, "Off-policy evaluation for large action spaces via embeddings" (2022).
    Unbiased where an arm's reward depends on its cluster alone.
    """
    weights = target / logging
    return Terms(weights * rewards, weights=weights)


def stacked(terms: list[Terms]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Put the tops and bottoms of several estimates side by side: (n, E) each."""
    tops = np.column_stack([one.tops for one in terms])
    ones = np.ones(len(tops))
    return tops, np.column_stack([ones if t.bottoms is None else t.bottoms for t in terms])
