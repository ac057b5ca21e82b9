"""GLM-UCB: upper confidence behind a link, about the weights of maximum likelihood.

Filippi, Cappé, Garivier and Szepesvári, "Parametric bandits: the generalized linear case"
(2010). Features are context ⊗ arm; the link is logistic for binary rewards, the
identity for real ones, where the policy is LinUCB. The bonus is added after the link.

We differ in three things. The theory's factor of the bonus is far too wide, so `width` stands
in its place. Likelihoods are held by a ridge from the first reward on. Weights are not projected
onto a ball.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from fastbandit.baselines.exploration import LinearExploration, UpperConfidence
from fastbandit.baselines.linear import LinearBandit
from fastbandit.baselines.ridge import Floats, Rows, SharedRidge
from fastbandit.types import Inputs

_NEWTON_STEPS = 25
_STILL = 1e-6
_BLOCK = 2**22  # numbers held at once


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A generalised linear model of all rewards so far, which it has stored."""

    ridge: SharedRidge
    weights: Floats
    is_binary: bool
    contexts: Floats
    rows: Rows
    rewards: Floats

    @staticmethod
    def blank(ridge: SharedRidge, *, is_binary: bool) -> Likelihood:
        """Return a model that has seen nothing."""
        shape = ridge.weights.shape
        nothing = np.empty(0, dtype=np.int64)
        return Likelihood(
            ridge, np.zeros(shape), is_binary, np.empty((0, shape[0])), nothing, np.empty(0)
        )

    def learn(self, contexts: Floats, rows: Rows, rewards: Floats) -> Likelihood:
        """Fit all rewards anew, from the last weights: O(n P²) a Newton step."""
        ridge = self.ridge.learn(contexts, rows, rewards)
        grown = replace(
            self,
            ridge=ridge,
            contexts=np.concatenate([self.contexts, contexts]),
            rows=np.concatenate([self.rows, rows]),
            rewards=np.concatenate([self.rewards, rewards]),
        )
        return replace(grown, weights=grown._climb() if self.is_binary else ridge.weights)

    def in_rewards(self, values: Floats) -> Floats:
        """Apply the link: log odds become probabilities, real rewards stay as they are."""
        return 0.5 * (1.0 + np.tanh(0.5 * values)) if self.is_binary else values

    def means(self, contexts: Floats) -> Floats:
        return self.in_rewards(contexts @ self.weights @ self.ridge.arms.T)

    def stds(self, contexts: Floats) -> Floats:
        """Return the length of each product by the inverse of their sum of squares."""
        return self.ridge.stds(contexts)

    def blocks(self, contexts: int) -> Iterator[slice]:
        return self.ridge.blocks(contexts)

    def _climb(self) -> Floats:
        """Take Newton steps to the penalised maximum, each halved until it gains."""
        weights, height = self.weights.reshape(-1), self._height(self.weights.reshape(-1))
        for _ in range(_NEWTON_STEPS):
            step = self._step(weights)
            while (gained := self._height(weights + step)) < height and np.abs(step).max() > _STILL:
                step = step / 2.0
            weights, height = weights + step, gained
            if np.abs(step).max() <= _STILL:
                break
        return np.asarray(weights).reshape(self.weights.shape)

    def _height(self, weights: Floats) -> float:
        """Return the log-likelihood of all rewards, less the penalty."""
        penalty = 0.5 * self.ridge.prior.ridge * weights @ weights
        values = self._values(weights)
        return float((self.rewards * values - np.logaddexp(0.0, values)).sum() - penalty)

    def _step(self, weights: Floats) -> Floats:
        probabilities = self.in_rewards(self._values(weights))
        slope = -self.ridge.prior.ridge * weights
        curve = self.ridge.prior.ridge * np.eye(len(weights))
        for part in self._parts():
            products = self._products(part)
            slope = slope + products.T @ (self.rewards[part] - probabilities[part])
            curve += products.T @ (
                products * (probabilities[part] * (1.0 - probabilities[part]))[:, None]
            )
        return np.linalg.solve(curve, slope).astype(np.float64, copy=False)

    def _values(self, weights: Floats) -> Floats:
        pulls = self.contexts @ weights.reshape(self.weights.shape)
        return np.asarray(np.einsum("nd,nd->n", pulls, self.ridge.arms[self.rows]))

    def _products(self, part: slice) -> Floats:
        products = self.contexts[part, :, None] * self.ridge.arms[self.rows[part], None, :]
        return products.reshape(len(products), -1)

    def _parts(self) -> Iterator[slice]:
        size = max(1, _BLOCK // self.weights.size)
        return (slice(start, start + size) for start in range(0, len(self.rows), size))


@dataclass(kw_only=True, eq=False, repr=False)
class GLMUCB(LinearBandit):
    """The arm with the highest link(mean) + `width` x standard deviation, of all arms.

    `width` is in units of reward. All rewards are stored, and fitted anew in each update.
    """

    disjoint: bool = field(default=False, init=False)
    half_life: float | None = field(default=None, init=False)
    width: float = 1.0
    _model: Likelihood = field(init=False)  # type: ignore[assignment]  # it gives no draws

    @property
    def exploration(self) -> LinearExploration:
        """Bounds above the means."""
        return UpperConfidence(self.width)

    def _new_model(  # type: ignore[override]
        self, features: Inputs | None, context_dim: int
    ) -> Likelihood:
        shared = self._shared(features, context_dim)
        return Likelihood.blank(shared, is_binary=self._table.reward == "binary")
