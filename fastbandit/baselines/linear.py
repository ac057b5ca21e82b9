"""Linear policies: a linear model x an exploration, such as LinearTS and LinUCB.

Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs" (2013); Li,
Chu, Langford and Schapire, "A contextual-bandit approach to personalized news article
recommendation" (2010). The shared form regresses on context ⊗ arm features, the disjoint
form on the context, once for each arm. Both score every arm.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from fastbandit.arms.requests import Feedback, Request, take_best
from fastbandit.baselines.baseline import Baseline
from fastbandit.baselines.exploration import (
    Greedy,
    LinearExploration,
    ThompsonSampling,
    UpperConfidence,
)
from fastbandit.baselines.ridge import DisjointRidge, Floats, LinearModel, Prior, Seeds, SharedRidge
from fastbandit.declaration import check_number
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, Image, Sparse
from fastbandit.types import Decision, Features, Inputs


@dataclass(kw_only=True, eq=False, repr=False)
class LinearBandit(Baseline):
    """A linear model of rewards x an exploration, over all arms.

    `intercept` adds a constant to both kinds of features. A disjoint bandit takes arms without
    features, by `ids` alone. Where rewards drift, one counts half as much as another `half_life`
    rewards later.
    """

    disjoint: bool = False
    intercept: bool = False
    ridge: float = 1.0
    half_life: float | None = None
    _model: LinearModel = field(init=False)

    @property
    @abstractmethod
    def exploration(self) -> LinearExploration:
        """How scores are made of the model."""

    def _new_model(self, features: Inputs | None, context_dim: int) -> LinearModel:
        if not self.disjoint:
            return self._shared(features, context_dim)
        prior = Prior(self.ridge, self.half_life)
        return DisjointRidge.blank(len(self._table.ids), context_dim, prior)

    def _shared(self, features: Inputs | None, context_dim: int) -> SharedRidge:
        prior = Prior(self.ridge, self.half_life)
        return SharedRidge.blank(self._arm_vectors(features), context_dim, prior)

    def _arm_vectors(self, features: Inputs | None) -> Floats:
        if features is None:
            raise SettingError(
                "A shared linear bandit needs features of its arms: got ids alone. Give arms=, or "
                "use disjoint=True."
            )
        return self._to_vectors(features)

    def _prepare(self, features: Inputs | None) -> None:
        super()._prepare(features)
        self._exploration = self.exploration
        check_number("ridge", self.ridge, above_zero=True)
        if self.half_life is not None:
            check_number("half_life", self.half_life, above_zero=True)
        context_dim = _count_features(self._table.context) + self.intercept
        self._model = self._new_model(features, context_dim)

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        """Choose the k eligible arms with the highest scores (means, without exploration)."""
        if self._version == 0:
            return self._table.decide_uniformly(request, version=0)
        batch, arms = len(request.seeds), len(self._table.ids)
        rows = np.empty((batch, request.k), dtype=np.int64)
        best = np.empty((batch, request.k))
        vectors, eligible = self._to_vectors(request.contexts), request.eligible
        for part in self._model.blocks(batch):
            scores = self._score(vectors[part], request.seeds[part], explore=explore)
            mask = eligible if eligible is None or len(eligible) == 1 else eligible[part]
            rows[part], best[part] = take_best(scores, mask, count=request.k)
        return self._table.decide(request, rows, best, version=self._version, evaluations=arms)

    def _score(self, contexts: Floats, seeds: Seeds, *, explore: bool) -> Floats:
        exploration = self._exploration if explore else Greedy()
        return exploration.score(self._model, contexts, seeds)

    def _learn(self, feedback: Feedback) -> None:
        """Learn from rewards; costs the cube of the number of weights at the next select."""
        super()._learn(feedback)
        vectors = self._to_vectors(feedback.contexts)
        self._model = self._model.learn(vectors, feedback.rows, feedback.rewards.astype(np.float64))

    def _to_vectors(self, inputs: Inputs) -> Floats:
        rows = inputs.dense if inputs.sparse is None else inputs.sparse.toarray()
        wide = np.asarray(rows, dtype=np.float64)
        vectors = wide.reshape(len(wide), math.prod(wide.shape[1:]))  # images too
        return np.pad(vectors, ((0, 0), (0, int(self.intercept))), constant_values=1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearTS(LinearBandit):
    """Thompson sampling: the best arm under one draw of the weights for each context.

    `scale` widens (or narrows) the posterior that is drawn from.
    """

    scale: float = 1.0

    @property
    def exploration(self) -> LinearExploration:
        return ThompsonSampling(self.scale)


@dataclass(kw_only=True, eq=False, repr=False)
class LinUCB(LinearBandit):
    """Upper confidence: the arm with the highest mean + `width` x standard deviation."""

    width: float = 1.0

    @property
    def exploration(self) -> LinearExploration:
        return UpperConfidence(self.width)


def _count_features(kind: Features | None) -> int:
    if isinstance(kind, Dense | Sparse):
        return int(kind.dim)
    if isinstance(kind, Image):
        return kind.height * kind.width
    raise SettingError(
        f"A linear bandit needs contexts of numbers: got {kind!r}. Use Dense, Sparse or Image, "
        f"with ids as one column each."
    )
