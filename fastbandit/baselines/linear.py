"""Linear policies: Thompson sampling (LinearTS) and upper confidence (LinUCB).

Agrawal and Goyal, "Thompson sampling for contextual bandits with linear payoffs" (2013); Li,
Chu, Langford and Schapire, "A contextual-bandit approach to personalized news article
recommendation" (2010). The shared form regresses on context ⊗ arm features, the disjoint
form on the context, once for each arm. Both score every arm.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from fastbandit.arms.requests import ArmTable, Request, read_arms, read_context, take_best
from fastbandit.baselines.ridge import DisjointRidge, Floats, Ridge, Seeds, SharedRidge
from fastbandit.declaration import check_number
from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, Image, Sparse
from fastbandit.features.rewards import RewardKind
from fastbandit.types import Decision, Features, Inputs


class LinearBandit(ABC):
    """A linear model of rewards, with a score of all arms for each context."""

    def __init__(
        self,
        *,
        arms: Any,
        ids: Iterable[Any] | None,
        context: int | Features,
        reward: RewardKind,
        seed: int,
        disjoint: bool,
        intercept: bool,
        ridge: float,
        half_life: float | None = None,
    ) -> None:
        check_number("ridge", ridge, above_zero=True)
        if half_life is not None:
            check_number("half_life", half_life, above_zero=True)
        table, features = read_arms(arms, ids)
        kind = read_context(context)
        self._table = ArmTable(table, kind, reward, seed)
        self._intercept = intercept
        context_dim = _count_features(kind) + intercept
        self._model: Ridge
        if disjoint:
            self._model = DisjointRidge.blank(
                len(table), context_dim=context_dim, ridge=ridge, half_life=half_life
            )
        else:
            vectors = self._to_vectors(_check_features(features))
            self._model = self._blank(
                vectors, context_dim=context_dim, ridge=ridge, half_life=half_life
            )
        self._decided = 0
        self._version = 0

    def _blank(
        self, vectors: Floats, *, context_dim: int, ridge: float, half_life: float | None
    ) -> Ridge:
        """Give a model of arms with features that has seen nothing."""
        return SharedRidge.blank(vectors, context_dim=context_dim, ridge=ridge, half_life=half_life)

    @abstractmethod
    def _score(self, contexts: Floats, seeds: Seeds) -> Floats:
        """Tell how much each arm is wanted now: (b, N)."""

    def select(
        self, contexts: Any, *, k: int = 1, eligible: Any = None, explore: bool = True
    ) -> Decision:
        """Choose the k allowed arms with the highest scores (means, without exploration)."""
        request = self._table.read_request(contexts, k=k, eligible=eligible, first=self._decided)
        if self._version == 0:
            decision = self._table.decide_uniformly(request, version=0)
        else:
            decision = self._decide(request, explore=explore)
        self._decided += len(decision)
        return decision

    def update(self, *, contexts: Any, arms: Iterable[Any], rewards: Any) -> None:
        """Learn from rewards; costs the cube of the number of weights at the next select."""
        feedback = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        if len(feedback.rows):
            vectors = self._to_vectors(feedback.contexts)
            rewards = feedback.rewards.astype(np.float64)
            self._model = self._model.learn(vectors, feedback.rows, rewards)
            self._version += 1

    def _decide(self, request: Request, *, explore: bool) -> Decision:
        batch, arms = len(request.seeds), len(self._table.ids)
        rows = np.empty((batch, request.k), dtype=np.int64)
        best = np.empty((batch, request.k))
        vectors, eligible = self._to_vectors(request.contexts), request.eligible
        for part in self._model.blocks(batch):
            x = vectors[part]
            scores = self._score(x, request.seeds[part]) if explore else self._model.means(x)
            mask = eligible if eligible is None or len(eligible) == 1 else eligible[part]
            rows[part], best[part] = take_best(scores, mask, count=request.k)
        return self._table.decide(request, rows, best, version=self._version, evaluations=arms)

    def _to_vectors(self, inputs: Inputs) -> Floats:
        rows = inputs.dense if inputs.sparse is None else inputs.sparse.toarray()
        wide = np.asarray(rows, dtype=np.float64)
        vectors = wide.reshape(len(wide), math.prod(wide.shape[1:]))  # images too
        return np.pad(vectors, ((0, 0), (0, int(self._intercept))), constant_values=1.0)


class LinearTS(LinearBandit):
    """Thompson sampling: the best arm under one draw of the weights for each context.

    `scale` widens (or narrows) the posterior that is drawn from. `intercept` adds a constant
    to both kinds of features. A disjoint bandit takes arms without features, by `ids` alone.
    Where rewards drift, one counts half as much as another `half_life` rewards later.
    """

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        context: int | Features,
        reward: RewardKind = "real",
        seed: int = 0,
        disjoint: bool = False,
        intercept: bool = False,
        ridge: float = 1.0,
        scale: float = 1.0,
        half_life: float | None = None,
    ) -> None:
        check_number("scale", scale)
        super().__init__(
            arms=arms,
            ids=ids,
            context=context,
            reward=reward,
            seed=seed,
            disjoint=disjoint,
            intercept=intercept,
            ridge=ridge,
            half_life=half_life,
        )
        self._scale = scale

    def _score(self, contexts: Floats, seeds: Seeds) -> Floats:
        return self._model.draws(contexts, seeds, scale=self._scale)


class LinUCB(LinearBandit):
    """Upper confidence: the arm with the highest mean + `width` x standard deviation.

    `intercept` adds a constant to both kinds of features. A disjoint bandit takes arms
    without features, by `ids` alone. `half_life` as for LinearTS.
    """

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        context: int | Features,
        reward: RewardKind = "real",
        seed: int = 0,
        disjoint: bool = False,
        intercept: bool = False,
        ridge: float = 1.0,
        width: float = 1.0,
        half_life: float | None = None,
    ) -> None:
        check_number("width", width)
        super().__init__(
            arms=arms,
            ids=ids,
            context=context,
            reward=reward,
            seed=seed,
            disjoint=disjoint,
            intercept=intercept,
            ridge=ridge,
            half_life=half_life,
        )
        self._width = width

    def _score(self, contexts: Floats, seeds: Seeds) -> Floats:
        return self._model.means(contexts) + self._width * self._model.stds(contexts)


def _count_features(kind: Features) -> int:
    if isinstance(kind, Dense | Sparse):
        return int(kind.dim)
    if isinstance(kind, Image):
        return kind.height * kind.width
    raise SettingError(
        f"A linear bandit needs contexts of numbers: got {kind!r}. Use Dense, Sparse or Image, "
        f"with ids as one column each."
    )


def _check_features(features: Inputs | None) -> Inputs:
    if features is None:
        raise SettingError(
            "A shared linear bandit needs features of its arms: got ids alone. Give arms=, or "
            "use disjoint=True."
        )
    return features
