"""GLM-UCB: upper confidence behind a link, about the weights of maximum likelihood.

Filippi, Cappé, Garivier and Szepesvári, "Parametric bandits: the generalized linear case"
(2010). Features of a pair are context ⊗ arm; the link is logistic for binary rewards, the
identity for real ones, where the policy is LinUCB. The bonus is added after the link.

We differ in three things. The theory's factor of the bonus is far too wide, so `width` stands
in its place. Likelihoods are held by a ridge from the first reward on. Weights are not projected
onto a ball.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from fastbandit.baselines.linear import LinearBandit
from fastbandit.baselines.ridge import Floats, Rows, Seeds, SharedRidge
from fastbandit.declaration import check_number
from fastbandit.features.rewards import RewardKind
from fastbandit.types import Features

_NEWTON_STEPS = 25
_STILL = 1e-6
_BLOCK = 2**22  # numbers held at once


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A generalised linear model of all rewards so far, which it keeps."""

    ridge: SharedRidge
    weights: Floats
    is_binary: bool
    contexts: Floats
    rows: Rows
    rewards: Floats

    @staticmethod
    def blank(ridge: SharedRidge, *, is_binary: bool) -> Likelihood:
        """Give a model that has seen nothing."""
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
        """Give the length of each pair by the inverse of all pairs' sum of squares."""
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
        """Give the log-likelihood of all rewards, less the penalty."""
        penalty = 0.5 * self.ridge.prior.ridge * weights @ weights
        values = self._values(weights)
        return float((self.rewards * values - np.logaddexp(0.0, values)).sum() - penalty)

    def _step(self, weights: Floats) -> Floats:
        chances = self.in_rewards(self._values(weights))
        slope = -self.ridge.prior.ridge * weights
        curve = self.ridge.prior.ridge * np.eye(len(weights))
        for part in self._parts():
            pairs = self._pairs(part)
            slope = slope + pairs.T @ (self.rewards[part] - chances[part])
            curve += pairs.T @ (pairs * (chances[part] * (1.0 - chances[part]))[:, None])
        return np.linalg.solve(curve, slope).astype(np.float64, copy=False)

    def _values(self, weights: Floats) -> Floats:
        pulls = self.contexts @ weights.reshape(self.weights.shape)
        return np.asarray(np.einsum("nd,nd->n", pulls, self.ridge.arms[self.rows]))

    def _pairs(self, part: slice) -> Floats:
        pairs = self.contexts[part, :, None] * self.ridge.arms[self.rows[part], None, :]
        return pairs.reshape(len(pairs), -1)

    def _parts(self) -> Iterator[slice]:
        size = max(1, _BLOCK // self.weights.size)
        return (slice(start, start + size) for start in range(0, len(self.rows), size))


class GLMUCB(LinearBandit):
    """The arm with the highest link(mean) + `width` x standard deviation, of all arms.

    `width` is in units of reward. All rewards are kept, and fitted anew in each update.
    """

    _model: Likelihood  # type: ignore[assignment]  # it gives no draws

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        context: int | Features,
        reward: RewardKind = "real",
        seed: int = 0,
        intercept: bool = False,
        ridge: float = 1.0,
        width: float = 1.0,
    ) -> None:
        check_number("width", width)
        super().__init__(
            arms=arms,
            ids=ids,
            context=context,
            reward=reward,
            seed=seed,
            disjoint=False,
            intercept=intercept,
            ridge=ridge,
        )
        self._width = width
        shared = cast(SharedRidge, self._model)
        self._model = Likelihood.blank(shared, is_binary=reward == "binary")

    def _score(self, contexts: Floats, seeds: Seeds) -> Floats:
        return self._model.means(contexts) + self._width * self._model.stds(contexts)
