"""Disjoint linear policies in plain NumPy: a ridge regression for each arm, known by its id alone.

Thompson sampling after Agrawal and Goyal (2013), upper confidence after Li, Chu, Langford and
Schapire (2010). The posterior of an arm is exact, in as many numbers as its rounds or its columns,
whichever are fewer; all are fitted anew at each update, because the scaling of contexts is new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.types import Features
from lab.bakeoff.history import Floats, History, Rows
from lab.experiments.context_scaling import Vectors, with_one

_TIES = 1e-9  # untried arms are level: each is as likely as the next


@dataclass(frozen=True)
class ArmPosterior:
    """What is known of the weights of one arm: their mean, and a root of their precision.

    With more columns than rounds, `rounds` are its contexts, and the root is that of the rounds'
    products; else `rounds` is None, and the root is that of the columns' products.
    """

    mean: Floats
    root: Floats
    rounds: Vectors | None

    @staticmethod
    def of(vectors: Vectors, rewards: Floats, *, ridge: float) -> ArmPosterior:
        """Regress rewards on contexts."""
        from scipy.linalg import cho_solve

        rounds, columns = vectors.shape
        if rounds < columns:
            root = _root(vectors @ vectors.T, ridge)
            mean = vectors.T @ cho_solve((root, True), rewards)
            return ArmPosterior(np.asarray(mean), root, vectors)
        root = _root(vectors.T @ vectors, ridge)
        mean = cho_solve((root, True), np.asarray(vectors.T @ rewards))
        return ArmPosterior(np.asarray(mean), root, None)

    def variances(self, vectors: Vectors, squares: Floats, *, ridge: float) -> Floats:
        """Return the variance of the mean reward of contexts, whose squared lengths are known."""
        from scipy.linalg import solve_triangular

        seen = vectors if self.rounds is None else vectors @ self.rounds.T
        half = solve_triangular(self.root, _dense(seen).T, lower=True, check_finite=False)
        explained = np.einsum("nb,nb->b", half, half)
        return explained if self.rounds is None else np.maximum(squares - explained, 0.0) / ridge


def _root(products: Any, ridge: float) -> Floats:
    from scipy.linalg import cholesky

    whole = _dense(products)
    return np.asarray(cholesky(whole + ridge * np.eye(len(whole)), lower=True, check_finite=False))


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


@dataclass
class Disjoint:
    """A ridge regression for each arm, with draws of their posteriors or bounds above them.

    The best arm is the one with the highest mean plus `width` deviations, each times a number
    drawn for this context and arm (`is_drawn`), or times 1.
    """

    arms: int
    kind: Features
    seed: int
    width: float
    is_drawn: bool
    ridge: float = 1.0
    posteriors: dict[int, ArmPosterior] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._history = History(self.kind)

    def select(self, contexts: Any, /) -> Rows:
        """Return the best arm of each context, under this moment's draw."""
        vectors = with_one(self._history.show(contexts))
        means, deviations = self.beliefs(vectors)
        noise: NDArray[np.float64] | float = 1.0
        if self.is_drawn:
            noise = self._rng.standard_normal(means.shape)
        ties = _TIES * self._rng.random(means.shape)
        return np.asarray((means + self.width * noise * deviations + ties).argmax(axis=1))

    def beliefs(self, vectors: Vectors) -> tuple[Floats, Floats]:
        """Return the mean and the deviation of the reward of each context and arm: (b, N)."""
        weights = np.zeros((self.arms, vectors.shape[1]))
        squares = _dense(vectors) ** 2 @ np.ones(vectors.shape[1])
        variances = np.repeat(squares[:, None] / self.ridge, self.arms, axis=1)
        for arm, posterior in self.posteriors.items():
            weights[arm] = posterior.mean
            variances[:, arm] = posterior.variances(vectors, squares, ridge=self.ridge)
        return np.asarray(vectors @ weights.T), np.sqrt(variances)

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn from rewards, and from the scale of the contexts they came with."""
        self._history.add(contexts, arms, rewards)
        vectors, rows = with_one(self._history.vectors()), self._history.rows
        order = np.argsort(rows, kind="stable")
        tried, starts = np.unique(rows[order], return_index=True)
        for arm, mine in zip(tried.tolist(), np.split(order, starts[1:]), strict=True):
            observed = self._history.rewards[mine]
            self.posteriors[arm] = ArmPosterior.of(vectors[mine], observed, ridge=self.ridge)
