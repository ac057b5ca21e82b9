"""Two towers with an exploration, as a policy: arms are found by dot products alone.

Greedy takes the best arm. Epsilon-greedy takes any other with a fixed probability. Draws are of a
Bayesian linear last layer over the products of both embeddings, one weight a coordinate: a drawn
weight multiplies the context's embedding, so that the index finds the best arm under the draw
(Jun et al., "Scalable generalized linear bandits", 2017, do so with linear features).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.bakeoff.history import History, Rows
from lab.equal_latency.retrieval import DotProducts
from lab.equal_latency.towers import Fit, Floats, Seen, Towers, fit_towers
from lab.experiments.context_scaling import standardised, standards
from lab.experiments.environment import Environment

EXPLORATIONS = ("greedy", "epsilon", "draws")
EPSILON, SCALE, RIDGE = 0.05, 1.0, 1.0


@dataclass(frozen=True, eq=False)
class LastLayer:
    """What is known of the weights of the last layer: their mean, and a root of the covariance."""

    mean: NDArray[np.float64]
    root: NDArray[np.float64]

    @staticmethod
    def of(
        products: NDArray[np.float64], rewards: NDArray[np.float64], *, is_binary: bool
    ) -> LastLayer:
        """Step from weights of 1, those of the towers, to what rewards say of products (n, width).

        Exact for real rewards; for those of 0 and 1 one step of Newton's method.
        """
        scores = products.sum(axis=1)
        if is_binary:
            likely = 1.0 / (1.0 + np.exp(-scores))
            weights, pulls = likely * (1.0 - likely), rewards - likely
        else:
            left = rewards - scores - (rewards - scores).mean()
            weights = np.full(len(left), 1.0 / max(float(left.var()), 1e-6))
            pulls = weights * left
        width = products.shape[1]
        precision = products.T @ (products * weights[:, None]) + RIDGE * np.eye(width)
        root = np.linalg.inv(np.linalg.cholesky(precision)).T
        return LastLayer(np.ones(width) + root @ (root.T @ (products.T @ pulls)), root)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw weights, once for each context: (count, width)."""
        noise = rng.standard_normal((count, len(self.mean)))
        return (self.mean + SCALE * noise @ self.root.T).astype(np.float32)


@dataclass(eq=False)
class TwoTowers:
    """Towers that are trained anew at each update, and an index of the arms they embed."""

    environment: Environment
    seed: int
    exploration: str
    retrieval: str
    settings: Fit = field(default_factory=Fit)

    def __post_init__(self) -> None:
        self._history = History(self.environment.context)
        self._arms = _arm_vectors(self.environment)
        self._rng = np.random.default_rng(self.seed)
        self._towers: Towers | None = None
        self._index: DotProducts | None = None
        self._last: LastLayer | None = None

    @property
    def bytes_per_arm(self) -> float:
        """The bytes of the index, for each arm."""
        assert self._index is not None
        return self._index.bytes_per_arm

    def select(self, contexts: Any, /) -> Rows:
        """Return an arm for each context."""
        return self._found(_dense(self._history.show(contexts)))

    def select_one(self, context: Any, /) -> int:
        """Return an arm for one context of plain numbers, which need not be read as a table."""
        scaling = self._history.scaling
        assert scaling.shift is not None
        assert scaling.scale is not None
        shown = standardised(context[None], scaling.shift, scaling.scale)
        return int(self._found(shown.astype(np.float32))[0])

    def _found(self, vectors: Floats) -> Rows:
        assert self._towers is not None
        assert self._index is not None
        queries = self._towers.embed_contexts(vectors)
        if self._last is not None:
            queries = queries * self._last.draw(len(queries), self._rng)
        rows = self._index.best(queries)
        if self.exploration == "epsilon":
            is_any = self._rng.random(len(rows)) < EPSILON
            rows = np.where(is_any, self._rng.integers(len(self._arms), size=len(rows)), rows)
        return rows

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn all interactions, embed all arms, and build the index anew."""
        history = self._history
        history.add(contexts, arms, rewards)
        vectors, is_binary = _dense(history.vectors()), self.environment.reward == "binary"
        self._towers = fit_towers(
            Seen(vectors, self._arms, history.rows, history.rewards),
            self.settings,
            is_binary=is_binary,
            has_own=self.environment.embed_ids,
            seed=self.seed,
        )
        embedded = self._towers.embed_arms(self._arms)
        self._index = DotProducts(embedded, kind=self.retrieval)
        if self.exploration == "draws":
            products = self._towers.embed_contexts(vectors) * embedded[history.rows]
            self._last = LastLayer.of(
                products.astype(np.float64), history.rewards, is_binary=is_binary
            )


def _dense(vectors: Any) -> Floats:
    return np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, np.float32)


def _arm_vectors(environment: Environment) -> Floats:
    """Return the arms' features, standardised."""
    vectors = np.asarray(environment.arms, dtype=np.float32)
    return standardised(vectors, *standards(vectors)).astype(np.float32)
