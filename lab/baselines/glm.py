"""Generalised linear policies that learn online: GLOC, GLOC-TS and QGLOC.

Jun, Bhargava, Nowak and Willett, "Scalable generalized linear bandits: online computation and
hashing" (2017). An online Newton step predicts each reward before it is seen; ridge regression
on these predictions gives the centre and the shape of a confidence set. Features are
context ⊗ arm; the link is logistic for binary rewards, the identity for real ones.

We differ in four things. The theory's radius √β̄ is far too wide to be of use, so `width` and
`scale` stand in its place. Newton steps are not projected onto a ball. Thompson sampling draws
once for each context of a batch. Arms are found through inverted lists, not through hashing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.requests import Request, take_best
from fastbandit.baselines.exploration import LinearExploration, UpperConfidence
from fastbandit.baselines.linear import LinearBandit
from fastbandit.baselines.ridge import Floats, LinearModel, Rows, Seeds, SharedRidge
from fastbandit.declaration import check_number
from fastbandit.noise.philox import Stream, normals
from fastbandit.types import Decision, Inputs
from lab.baselines.inner_product import (
    InnerProductIndex,
    check_index_memory,
    is_worth_an_index,
)

_CANDIDATES = 32
_BLOCK = 2**22  # numbers held at once while candidates are scored
_LOGISTIC_CURVATURE = 0.2  # the slope of the logistic function at 1


@dataclass(frozen=True, eq=False)
class OnlineNewton:
    """Ridge regression on the predictions of an online learner, whose `newton` weights it has."""

    ridge: SharedRidge
    newton: Floats
    is_binary: bool
    curvature: float

    def learn(self, contexts: Floats, rows: Rows, rewards: Floats) -> OnlineNewton:
        """Take one Newton step for each reward, in order: O(P²) each for P weights."""
        covariance, newton = self.ridge.root @ self.ridge.root.T, self.newton.copy()
        predictions = np.empty(len(rows))
        for number, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
            products = np.outer(contexts[number], self.ridge.arms[row]).reshape(-1)
            predictions[number] = products @ newton
            pull = covariance @ products
            gain = pull / (1.0 + products @ pull)
            covariance -= np.outer(gain, pull)
            miss = reward - self.in_rewards(predictions[number])
            newton += gain * (miss / self.curvature)
        return replace(self, ridge=self.ridge.learn(contexts, rows, predictions), newton=newton)

    def in_rewards(self, values: Any) -> Any:
        """Apply the link: log odds become probabilities, real rewards stay as they are."""
        return 0.5 * (1.0 + np.tanh(0.5 * values)) if self.is_binary else values

    def means(self, contexts: Floats) -> Floats:
        return self.ridge.means(contexts)

    def stds(self, contexts: Floats) -> Floats:
        return self.ridge.stds(contexts)

    def draws(self, contexts: Floats, seeds: Seeds, *, scale: float) -> Floats:
        return self.ridge.draws(contexts, seeds, scale=scale)

    def blocks(self, contexts: int) -> Iterator[slice]:
        return self.ridge.blocks(contexts)

    def pulls(self, contexts: Floats, seeds: Seeds, *, scale: float) -> Floats:
        """Return what each context asks of an arm, under a draw of its own: (b, D)."""
        means = contexts @ self.ridge.weights
        if scale == 0.0:
            return np.asarray(means)
        noise = normals(seeds, len(self.newton), Stream.POSTERIOR).astype(np.float64)
        drift = (scale * noise @ self.ridge.root.T).reshape(-1, *self.ridge.weights.shape)
        return np.asarray(means + np.einsum("bc,bcd->bd", contexts, drift))

    def forms(self, contexts: Floats) -> Floats:
        """Return M with aᵀ M a = the variance of arm a for each context: (b, D, D)."""
        arm_dim = self.ridge.arms.shape[1]
        squares = (contexts[:, :, None] * contexts[:, None, :]).reshape(len(contexts), -1)
        return (squares @ self.ridge.covariance).reshape(-1, arm_dim, arm_dim)

    @cached_property
    def narrowest(self) -> float:
        """The standard deviation of a product of length 1 in the direction best known."""
        return float(1.0 / np.sqrt(np.linalg.eigvalsh(self.ridge.precision)[-1]))


@dataclass(kw_only=True, eq=False, repr=False)
class GeneralizedLinearBandit(LinearBandit):
    """A linear bandit behind a link, whose model learns reward by reward.

    `curvature` is the least slope of the link that Newton steps count on (None: 1 for real
    rewards, 0.2 for binary ones); a smaller one makes longer steps.
    """

    disjoint: bool = field(default=False, init=False)
    half_life: float | None = field(default=None, init=False)
    curvature: float | None = None
    _model: OnlineNewton = field(init=False)

    def _new_model(self, features: Inputs | None, context_dim: int) -> OnlineNewton:
        shared, is_binary = self._shared(features, context_dim), self._table.reward == "binary"
        curvature = self.curvature
        if curvature is None:
            curvature = _LOGISTIC_CURVATURE if is_binary else 1.0
        check_number("curvature", curvature, above_zero=True)
        return OnlineNewton(shared, np.zeros_like(shared.moment), is_binary, curvature)

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        decision = super()._decide(request, explore=explore)
        return decision if decision.uniform else self._in_rewards(decision)

    def _in_rewards(self, decision: Decision) -> Decision:
        scores = self._model.in_rewards(decision.scores.astype(np.float64))
        scores = np.where(decision.rows < 0, -np.inf, scores)
        return replace(decision, scores=scores.astype(np.float32))


@dataclass(kw_only=True, eq=False, repr=False)
class GLOC(GeneralizedLinearBandit):
    """Optimism: the arm with the highest mean + `width` x standard deviation, of all arms.

    `width` is in units of the linear part, before the link.
    """

    width: float = 1.0

    @property
    def exploration(self) -> LinearExploration:
        """Bounds above the means."""
        return UpperConfidence(self.width)


@dataclass(kw_only=True, eq=False, repr=False)
class SearchedBandit(GeneralizedLinearBandit):
    """A bandit whose score is an inner product of a query and an arm, so an index finds arms.

    From 4,096 arms on an index of the expanded arms finds 32 candidates (or k, if more), which
    are scored exactly: `evaluations` counts these, `lookups` the query. Fewer arms, or all of
    them where faiss is missing, are scanned.
    """

    @abstractmethod
    def _queries(self, contexts: Floats, seeds: Seeds, *, explore: bool) -> Floats:
        """Return what each context looks for among the expanded arms: (b, Q)."""

    @abstractmethod
    def _expand(self, arms: Floats) -> Floats:
        """Return the vectors that queries are multiplied with: (..., D) to (..., Q)."""

    @property
    def exploration(self) -> LinearExploration:
        """Inner products of queries and all arms."""
        return _ByQuery(self)

    @property
    def _arms(self) -> Floats:
        return self._model.ridge.arms

    @cached_property
    def _expanded(self) -> Floats:
        return self._expand(self._arms)

    @cached_property
    def _index(self) -> InnerProductIndex:
        return InnerProductIndex(self._expand(self._arms))

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        if self._version == 0 or not is_worth_an_index(len(self._arms)):
            return super()._decide(request, explore=explore)
        batch, contexts = len(request.seeds), self._to_vectors(request.contexts)
        rows = np.empty((batch, request.k), dtype=np.int64)
        best = np.empty((batch, request.k))
        evaluations = np.zeros(batch, dtype=np.int64)
        wanted = max(_CANDIDATES, request.k)
        for part in self._parts(batch, wanted):
            queries = self._queries(contexts[part], request.seeds[part], explore=explore)
            found = self._find(queries, wanted, eligible=_part_of(request.eligible, part))
            rows[part], best[part] = self._rank(queries, found, count=request.k)
            evaluations[part] = (found >= 0).sum(axis=1)
        decision = self._table.decide(request, rows, best, version=self._version)
        lookups = np.ones(batch, dtype=np.int64)
        return self._in_rewards(replace(decision, evaluations=evaluations, lookups=lookups))

    def _find(self, queries: Floats, wanted: int, *, eligible: NDArray[np.bool_] | None) -> Rows:
        if eligible is None or len(eligible) == 1:
            mask = None if eligible is None else eligible[0]
            return self._index.search(queries, wanted, eligible=mask)
        each = [
            self._index.search(queries[number : number + 1], wanted, eligible=mask)
            for number, mask in enumerate(eligible)
        ]
        return np.concatenate(each)

    def _rank(self, queries: Floats, found: Rows, *, count: int) -> tuple[Rows, Floats]:
        expanded = self._expand(self._arms[found])  # (b, K, Q)
        scores = np.einsum("bq,bkq->bk", queries, expanded)
        columns, best = take_best(scores, found >= 0, count=count)
        return np.where(columns < 0, -1, np.take_along_axis(found, columns, axis=1)), best

    def _parts(self, batch: int, wanted: int) -> Iterator[slice]:
        width = wanted * self._expand(self._arms[:1]).shape[1]
        size = max(1, _BLOCK // max(width, self._model.ridge.weights.size))
        return (slice(start, min(start + size, batch)) for start in range(0, batch, size))


@dataclass(frozen=True, eq=False)
class _ByQuery:
    """Scores all arms by the queries of a bandit."""

    bandit: SearchedBandit

    def score(self, model: LinearModel, contexts: Floats, seeds: Seeds) -> Floats:
        queries = self.bandit._queries(contexts, seeds, explore=True)
        return np.asarray(queries @ self.bandit._expanded.T)


@dataclass(kw_only=True, eq=False, repr=False)
class GLOCTS(SearchedBandit):
    """Thompson sampling: the best arm under one draw of the weights for each context.

    For a fixed context and draw the score is linear in the arm, so one index of the arms
    serves all contexts. `scale` stands for √β̄.
    """

    scale: float = 1.0

    def _prepare(self, features: Inputs | None) -> None:
        check_number("scale", self.scale)
        super()._prepare(features)

    def _queries(self, contexts: Floats, seeds: Seeds, *, explore: bool) -> Floats:
        return self._model.pulls(contexts, seeds, scale=self.scale if explore else 0.0)

    def _expand(self, arms: Floats) -> Floats:
        return arms


@dataclass(kw_only=True, eq=False, repr=False)
class QGLOC(SearchedBandit):
    """Optimism that an index can search: the highest mean + c x variance.

    The variance is quadratic in the arm, so the score is an inner product with the arm and
    the products of its features: D + D (D + 1) / 2 numbers. The factor c = `width` / m, with m
    the standard deviation of an average interaction in the direction best known: as the posterior
    narrows c grows, and the bonus is at least about `width` deviations.
    """

    width: float = 0.5

    def _prepare(self, features: Inputs | None) -> None:
        check_number("width", self.width)
        super()._prepare(features)
        count, dim = self._arms.shape
        check_index_memory(
            count, dim + dim * (dim + 1) // 2, advice="Give fewer features, or use GLOCTS"
        )
        self._arm_length = float(np.sqrt(np.square(self._arms).sum(axis=1).mean()))
        self._products = np.triu_indices(dim)
        self._product_scale = np.where(self._products[0] == self._products[1], 1.0, np.sqrt(2.0))

    def _queries(self, contexts: Floats, seeds: Seeds, *, explore: bool) -> Floats:
        pulls = self._model.pulls(contexts, seeds, scale=0.0)
        least = np.linalg.norm(contexts, axis=1) * self._arm_length * self._model.narrowest
        factors = self.width / np.maximum(least, 1e-12) * explore
        products = self._model.forms(contexts)[:, *self._products] * self._product_scale
        return np.concatenate([pulls, factors[:, None] * products], axis=1)

    def _expand(self, arms: Floats) -> Floats:
        products = arms[..., self._products[0]] * arms[..., self._products[1]] * self._product_scale
        return np.concatenate([arms, products], axis=-1)


def _part_of(eligible: NDArray[np.bool_] | None, part: slice) -> NDArray[np.bool_] | None:
    return eligible if eligible is None or len(eligible) == 1 else eligible[part]
