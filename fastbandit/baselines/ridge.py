"""Bayesian linear regression of rewards, exact: one model for all arms, or one for each.

Weights have the prior N(0, 1 / ridge), rewards noise of variance 1. Models are never
changed: `learn` returns a new one. With a half-life a reward counts half as much as one that came
so many rewards later, and the prior comes back as rewards fade (Russac, Vernade and Cappé,
"Weighted linear bandits for non-stationary environments", 2019, who widen the bound further).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SettingError
from fastbandit.noise.philox import Stream, normals

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Seeds = NDArray[np.uint64]

_BLOCK = 2**22  # numbers held at once while all arms are scored
_LIMIT = 2 * 2**30  # bytes


@dataclass(frozen=True)
class Prior:
    """What is known before any reward, and how fast rewards fade (None: never)."""

    ridge: float
    half_life: float | None = None

    def faded(self, precision: Floats, moment: Floats, rewards: int) -> tuple[Floats, Floats]:
        """Return what is left of sums once so many more rewards have come."""
        if self.half_life is None:
            return precision, moment
        left = 0.5 ** (rewards / self.half_life)
        return left * precision + (1 - left) * self.ridge * np.eye(moment.shape[-1]), left * moment

    def shares(self, rewards: int) -> Floats:
        """Return the roots of the weights of so many rewards, the newest last."""
        ages = np.arange(rewards - 1, -1, -1)
        return np.ones(rewards) if self.half_life is None else 0.5 ** (ages / self.half_life / 2)


class LinearModel(Protocol):
    """What is known of the rewards of all N arms, given contexts (b, C)."""

    def learn(self, contexts: Floats, rows: Rows, rewards: Floats) -> LinearModel: ...

    def means(self, contexts: Floats) -> Floats:
        """Return expected rewards: (b, N)."""
        ...

    def stds(self, contexts: Floats) -> Floats:
        """Return how unsure each of these is: (b, N)."""
        ...

    def draws(self, contexts: Floats, seeds: Seeds, *, scale: float) -> Floats:
        """Return rewards under one posterior draw for each context: (b, N)."""
        ...

    def blocks(self, contexts: int) -> Iterator[slice]:
        """Split contexts so that scoring all arms for one part takes bounded memory."""
        ...


@dataclass(frozen=True, eq=False)
class SharedRidge:
    """One weight for each product of a context feature and an arm feature: reward = x W a."""

    arms: Floats
    precision: Floats
    moment: Floats
    prior: Prior

    @staticmethod
    def blank(arms: Floats, context_dim: int, prior: Prior) -> SharedRidge:
        size = context_dim * arms.shape[1]
        _check_memory(
            3 * size**2,
            f"a shared model of {context_dim} x {arms.shape[1]} = {size} weights holds "
            f"3 x {size}² numbers",
            "Give fewer features, or use disjoint=True where the arms are few",
        )
        return SharedRidge(arms, prior.ridge * np.eye(size), np.zeros(size), prior)

    def learn(self, contexts: Floats, rows: Rows, rewards: Floats) -> SharedRidge:
        count = len(rows)
        precision, moment = self.prior.faded(self.precision.copy(), self.moment.copy(), count)
        shares = self.prior.shares(count)
        contexts, rewards = contexts * shares[:, None], rewards * shares
        for part in _split(len(rows), len(moment)):
            products = contexts[part, :, None] * self.arms[rows[part], None, :]  # (b, C, D)
            features = products.reshape(len(products), -1)
            precision += features.T @ features
            moment += features.T @ rewards[part]
        return replace(self, precision=precision, moment=moment)

    @cached_property
    def root(self) -> Floats:
        """R with R Rᵀ = the covariance of the weights."""
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.precision)).T)

    @cached_property
    def weights(self) -> Floats:
        """The mean of the weights: (C, D)."""
        return np.asarray(self.root @ (self.root.T @ self.moment)).reshape(-1, self.arms.shape[1])

    @cached_property
    def covariance(self) -> Floats:
        """Covariances of the weights, by products of context features and of arm features."""
        context_dim, arm_dim = self.weights.shape
        four = (self.root @ self.root.T).reshape(context_dim, arm_dim, context_dim, arm_dim)
        return four.transpose(0, 2, 1, 3).reshape(context_dim**2, arm_dim**2)

    def means(self, contexts: Floats) -> Floats:
        return np.asarray(contexts @ self.weights @ self.arms.T)

    def stds(self, contexts: Floats) -> Floats:
        # For a fixed context the variance is a quadratic form in the arm, aᵀ M a: an arm
        # costs D² instead of (C D)².
        arm_dim = self.arms.shape[1]
        forms = (_squares(contexts) @ self.covariance).reshape(-1, arm_dim, arm_dim)  # (b, D, D)
        variances = np.empty((len(contexts), len(self.arms)))
        for part in _split(len(self.arms), len(contexts) * arm_dim):
            arms = self.arms[part]
            variances[:, part] = np.einsum("bnd,nd->bn", arms @ forms, arms)
        return np.sqrt(np.maximum(variances, 0.0))

    def draws(self, contexts: Floats, seeds: Seeds, *, scale: float) -> Floats:
        noise = normals(seeds, len(self.moment), Stream.POSTERIOR).astype(np.float64)
        drift = (scale * noise @ self.root.T).reshape(-1, *self.weights.shape)  # (b, C, D)
        pulls = np.einsum("bc,bcd->bd", contexts, self.weights + drift)
        return np.asarray(pulls @ self.arms.T)

    def blocks(self, contexts: int) -> Iterator[slice]:
        context_dim, arm_dim = self.weights.shape
        return _split(contexts, max(len(self.arms), context_dim**2, arm_dim**2, len(self.moment)))


@dataclass(frozen=True, eq=False)
class DisjointRidge:
    """One weight for each context feature, of each arm on its own: reward = x·w(arm)."""

    precision: Floats
    covariance: Floats
    moment: Floats
    weights: Floats
    prior: Prior

    @staticmethod
    def blank(arms: int, context_dim: int, prior: Prior) -> DisjointRidge:
        _check_memory(
            2 * arms * context_dim**2,
            f"a disjoint model of {arms} arms holds 2 x {arms} x {context_dim}² numbers",
            "Give fewer context features or arms, or use disjoint=False",
        )
        shape = (arms, context_dim, context_dim)
        one = np.eye(context_dim)
        return DisjointRidge(
            precision=np.broadcast_to(prior.ridge * one, shape),
            covariance=np.broadcast_to(one / prior.ridge, shape),
            moment=np.zeros(shape[:2]),
            weights=np.zeros(shape[:2]),
            prior=prior,
        )

    def learn(self, contexts: Floats, rows: Rows, rewards: Floats) -> DisjointRidge:
        touched, number = np.unique(rows, return_inverse=True)
        if self.prior.half_life is not None:
            touched, number = np.arange(len(self.moment)), rows  # what fades, changes
        count, shares = len(rows), self.prior.shares(len(rows))
        contexts, rewards = contexts * shares[:, None], rewards * shares
        precision, moment = self.prior.faded(self.precision[touched], self.moment[touched], count)
        for part in _split(len(rows), contexts.shape[1] ** 2):
            x = contexts[part]
            np.add.at(precision, number[part], x[:, :, None] * x[:, None, :])
            np.add.at(moment, number[part], x * rewards[part, None])
        covariance: Floats = np.linalg.inv(precision).astype(np.float64, copy=False)
        return DisjointRidge(
            precision=_put(self.precision, touched, precision),
            covariance=_put(self.covariance, touched, covariance),
            moment=_put(self.moment, touched, moment),
            weights=_put(self.weights, touched, np.einsum("ncd,nd->nc", covariance, moment)),
            prior=self.prior,
        )

    def means(self, contexts: Floats) -> Floats:
        return np.asarray(contexts @ self.weights.T)

    def stds(self, contexts: Floats) -> Floats:
        variances = _squares(contexts) @ self.covariance.reshape(len(self.covariance), -1).T
        return np.sqrt(np.maximum(variances, 0.0))

    def draws(self, contexts: Floats, seeds: Seeds, *, scale: float) -> Floats:
        # Arms are independent, so drawing each arm's reward is drawing its weights.
        noise = normals(seeds, len(self.weights), Stream.POSTERIOR)
        return self.means(contexts) + scale * self.stds(contexts) * noise

    def blocks(self, contexts: int) -> Iterator[slice]:
        return _split(contexts, max(self.weights.shape[0], self.weights.shape[1] ** 2))


def _split(count: int, width: int) -> Iterator[slice]:
    """Cut `count` things, each `width` numbers wide, into parts of bounded size."""
    size = max(1, _BLOCK // max(1, width))
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _squares(contexts: Floats) -> Floats:
    """Return all products of two features of a context: (b, C²)."""
    return (contexts[:, :, None] * contexts[:, None, :]).reshape(len(contexts), -1)


def _put(array: Floats, rows: Rows, values: Floats) -> Floats:
    copy = array.copy()
    copy[rows] = values
    return copy


def _check_memory(numbers: int, sum_of: str, advice: str) -> None:
    needed = 8 * numbers
    if needed > _LIMIT:
        raise SettingError(
            f"A linear bandit needs to fit into {_LIMIT / 2**30:.0f} GiB: {sum_of} of 8 bytes, "
            f"{needed / 2**30:.1f} GiB. {advice}."
        )
