"""Each arm's own part of the reward: a Gaussian linear model with exact posteriors.

    reward = z·(shared + own of the arm) + noise,   z = (1, features of the context)

Shared weights have a flat prior on the constant, arms' own weights Gaussian ones whose widths
are fitted (empirical Bayes, one step of EM at a time) with one pseudo-observation, so that they
never collapse while arms have been seen a few times only. The order of interactions changes
nothing beyond rounding.

With many more arms than interactions, independent draws of arms that were never chosen would
swamp all else; so only a few of them take part (Bayati, Hamidi, Johari and Khosravi,
"Unreasonable effectiveness of greedy algorithms in multi-armed bandit with many arms", 2020:
about the square root of the interactions are worth trying).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fastbandit.noise.philox import philox
from fastbandit.types import Floats, Rows

WEIGHING = 1_024
"""So many arms at most, those chosen most often, weigh the context; others have a constant."""
_PSEUDO = 1.0  # observations of the prior widths
_LEAST_NOISE = 3e-3  # the least variance of a reward, in squared units
_FEWEST_NEW = 8
_BELOW = 1e-3  # units of reward: arms that take no part yet stand so far below the others
_ORDER = 21  # the stream that orders arms that were never chosen


@dataclass(frozen=True)
class Priors:
    """Standard deviations before anything was seen, for features of length 1.

    Of an arm's constant, of its other weights, and of the shared weights. `unit` is what rewards
    are measured in: 1 where they are 0 or 1, else about their deviation.
    """

    constant: float = 0.1
    slope: float = 0.8
    shared: float = 0.3
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class Seen:
    """Interactions as the linear models see them: inputs (n, K), rows of arms, rewards, weights."""

    z: Floats
    rows: Rows
    rewards: Floats
    weights: Floats

    def by_arm(self) -> tuple[Rows, list[Rows]]:
        """Return the rows of arms that were chosen, and the interactions of each."""
        order = np.argsort(self.rows, kind="stable")
        chosen, firsts = np.unique(self.rows[order], return_index=True)
        return chosen, np.split(order, firsts[1:])


@dataclass(frozen=True, eq=False)
class ArmEffects:
    """The posterior of shared weights (K,) and of each arm's own: means and deviations (N, K).

    `widths` are the fitted standard deviations of an arm's constant and of its other weights,
    `used` those that this posterior was worked out with, one step before. `noise` is the variance
    of a reward. An arm that comes later has the prior's.
    """

    shared: Floats
    means: Floats
    deviations: Floats
    widths: tuple[float, float]
    used: tuple[float, float]
    noise: float

    @staticmethod
    def fit(
        seen: Seen, arms: int, *, priors: Priors, before: tuple[float, float] | None = None
    ) -> ArmEffects:
        """Return the posterior of so many arms, and widths one step (of EM) from those before."""
        unit, size = priors.unit, seen.z.shape[1]
        mean = float(np.average(seen.rewards, weights=seen.weights))
        spread = float(np.average(np.square(seen.rewards - mean), weights=seen.weights))
        noise = max(spread, _LEAST_NOISE * unit**2)
        first = (priors.constant * unit, priors.slope * unit)
        widths = first if before is None else before
        chosen, theirs = seen.by_arm()
        often = np.argsort([-seen.weights[mine].sum() for mine in theirs], kind="stable")
        weighs = np.zeros(len(theirs), dtype=bool)
        weighs[often[:WEIGHING]] = True
        # An arm's sums, its covariance, and what is left of both for the shared weights once its
        # own are integrated out. Rewards are measured from their mean.
        loose = np.r_[1e-9, np.full(size - 1, 1.0 / (priors.shared * unit) ** 2)]
        precision, moment = np.diag(loose), np.zeros(size)
        sums: list[tuple[Floats, Floats, Floats]] = []
        for mine, is_whole in zip(theirs, weighs, strict=True):
            z, weighed = seen.z[mine], seen.z[mine] * seen.weights[mine, None]
            products = weighed.T @ z / noise
            moments = weighed.T @ (seen.rewards[mine] - mean) / noise
            own = size if is_whole else 1
            covariance = _covariance(products[:own, :own], widths)
            taken = products[:, :own] @ covariance
            precision += products - taken @ products[:own]
            moment += moments - taken @ moments[:own]
            sums.append((products, moments, covariance))
        shared = np.linalg.solve(precision, moment)
        means, deviations = np.zeros((arms, size)), np.zeros((arms, size))
        for row, (products, moments, covariance) in zip(chosen, sums, strict=True):
            own = len(covariance)
            means[row, :own] = covariance @ (moments - products @ shared)[:own]
            deviations[row, :own] = np.sqrt(np.diagonal(covariance))
        squares = np.square(means[chosen]) + np.square(deviations[chosen])
        fitted = _fitted_widths(squares[weighs], first)
        tried, others, order = _never_chosen(chosen, arms, len(seen.rows))
        deviations[tried] = _prior(fitted, size)
        means[others, 0] = -_BELOW * unit * (1.0 + order)  # no two alike: each comes to be tried
        shared[0] += mean
        return ArmEffects(shared, means, deviations, fitted, widths, noise)

    def covariance(self, row: int, z: Floats, weights: Floats) -> Floats:
        """Return the covariance of an arm's own weights, after what it has seen: z (n, K)."""
        if not len(z):
            return np.diag(np.square(self.prior))
        own = len(self.shared) if row >= len(self.means) or self.deviations[row, 1:].any() else 1
        products = (z * weights[:, None]).T @ z / self.noise
        return _covariance(products[:own, :own], self.used)

    def observe(self, row: int, z: Floats, reward: float, covariance: Floats) -> None:
        """Learn one reward of one arm, exactly, where it stands; `covariance` is changed too."""
        own = len(covariance)
        gain = covariance @ z[:own]
        variance = self.noise + z[:own] @ gain
        left = reward - z @ (self.shared + self.means[row])
        self.means[row, :own] += gain * (left / variance)
        covariance -= np.outer(gain, gain / variance)
        self.deviations[row, :own] = np.sqrt(np.diagonal(covariance))

    def private(self, arms: int) -> ArmEffects:
        """Return a copy that may be changed where it stands, with room for so many arms."""
        means, deviations = self.of(np.arange(max(arms, len(self.means))))
        return replace(self, means=means, deviations=deviations)

    @property
    def prior(self) -> Floats:
        """The standard deviations of the weights of an arm that comes later: (K,)."""
        return _prior(self.widths, len(self.shared))

    def of(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return means and deviations of arms' own weights, the prior's where they came later."""
        is_known = (rows < len(self.means))[:, None]
        if not len(self.means):
            return np.zeros((len(rows), len(self.shared))), np.tile(self.prior, (len(rows), 1))
        near = np.where(is_known[:, 0], rows, 0)
        means = np.where(is_known, self.means[near], 0.0)
        return means, np.where(is_known, self.deviations[near], self.prior)

    def rewards(self, z: Floats, rows: Rows) -> tuple[Floats, Floats]:
        """Return the expected rewards of arms for contexts, and their deviations: (B, arms)."""
        means, deviations = self.of(rows)
        return z @ (self.shared + means).T, np.sqrt((z * z) @ np.square(deviations).T)


def _covariance(products: Floats, widths: tuple[float, float]) -> Floats:
    """Return the covariance of an arm's weights, from the products of what it has seen."""
    precision = products + np.diag(1.0 / np.square(_prior(widths, len(products))))
    return np.asarray(np.linalg.inv(precision), dtype=np.float64)


def _prior(widths: tuple[float, float], size: int) -> Floats:
    return np.r_[widths[0], np.full(size - 1, widths[1])]


def _fitted_widths(squares: Floats, first: tuple[float, float]) -> tuple[float, float]:
    """Return the root mean squares of arms' weights, with one arm that is as the prior says."""
    arms = len(squares) + _PSEUDO
    constant = (squares[:, 0].sum() + _PSEUDO * first[0] ** 2) / arms
    columns = max(squares.shape[1] - 1, 1)
    slope = (squares[:, 1:].sum() / columns + _PSEUDO * first[1] ** 2) / arms
    return math.sqrt(constant), math.sqrt(slope)


def _never_chosen(chosen: Rows, arms: int, interactions: int) -> tuple[Rows, Rows, Floats]:
    """Return the arms never chosen that take part, the others, and the order (0 to 1) of those."""
    is_new = np.ones(arms, dtype=bool)
    is_new[chosen] = False
    new = np.flatnonzero(is_new)
    root, blocks = np.zeros(1, dtype=np.uint64), new.astype(np.uint64)
    words = philox(root, blocks, _ORDER)[0, :, 0]
    order = np.argsort(words, kind="stable")
    count = max(_FEWEST_NEW, math.isqrt(interactions))
    later = order[count:]
    return np.sort(new[order[:count]]), new[later], words[later] / 2.0**32
