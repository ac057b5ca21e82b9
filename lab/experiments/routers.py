"""Routers that score every model for each prompt; a budget weighs the scores against costs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Protocol

import numpy as np

from fastbandit import ArmEffectsPosterior, Bandit, Schema, ThompsonSampling, UpperConfidence
from fastbandit.features.text_columns import Text
from lab.experiments.routing_data import NAMES, Floats, Rows

Contexts = dict[str, list[object]]


class Router(Protocol):
    """Scores models, and learns from ratings."""

    def scores(self, contexts: Contexts) -> Floats:
        """Return a score for each context and model, -inf for a model that it does not know."""

    def learn(self, contexts: Contexts, rows: Rows, ratings: Floats) -> None:
        """Learn what answers of models, by their rows, were worth."""

    def add(self, row: int) -> None:
        """Let one more model be chosen."""

    def restart(self) -> None:
        """Go on as after a restart of the process."""


def schema_of(sample: Contexts) -> Schema:
    """Return what prompts mean, for all routers alike: a prompt is 128 numbers of its words."""
    return Schema.infer(sample, kinds={"prompt": Text("prompt", dim=128)})


class BanditRouter:
    """A bandit that learns quality; arms are known by their names.

    `units` are of a network over contexts, `scale` is that of a draw, `width` that of a bound
    instead; None: as by default.
    """

    def __init__(
        self,
        sample: Contexts,
        *,
        models: int,
        seed: int,
        units: int | None = None,
        scale: float | None = None,
        width: float | None = None,
    ) -> None:
        drawn = "ts" if scale is None else ThompsonSampling(scale=scale)
        self.bandit = Bandit(
            ids=NAMES[:models],
            context=schema_of(sample),
            reward="real",
            posterior="auto" if units is None else ArmEffectsPosterior(units=units),
            exploration=drawn if width is None else UpperConfidence(width=width),
            seed=seed,
            progress=False,
        )

    def scores(self, contexts: Contexts) -> Floats:
        """Return a draw of each model's quality; before anything is learned, any order."""
        decision = self.bandit.select(contexts, k=len(self.bandit))
        scores = decision.scores.astype(np.float64)
        if decision.uniform:  # all scores are 0, and the order is random
            scores = np.linspace(1, 0, scores.shape[1])[None].repeat(len(scores), axis=0)
        found = np.full((len(scores), len(NAMES)), -np.inf)
        np.put_along_axis(found, decision.rows, scores, axis=1)
        return found

    def learn(self, contexts: Contexts, rows: Rows, ratings: Floats) -> None:
        names = [NAMES[row] for row in rows]
        self.bandit.update(contexts=contexts, arms=names, rewards=ratings)

    def add(self, row: int) -> None:
        self.bandit.add_arms(ids=[NAMES[row]])

    def restart(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.bandit.save(Path(folder) / "bandit")
            self.bandit = Bandit.load(Path(folder) / "bandit", progress=False)


class LinearRouter:
    """Ridge regressions, one a model, on the features that the bandit's schema makes of prompts.

    Scores are means plus `width` deviations (LinUCB, Li et al. 2010, disjoint); with probability
    `epsilon` a context's scores are drawn anew instead (epsilon-greedy).
    """

    def __init__(
        self,
        sample: Contexts,
        *,
        models: int,
        seed: int,
        width: float = 0.0,
        epsilon: float = 0.0,
        ridge: float = 1.0,
    ) -> None:
        self._schema, self._rng = schema_of(sample), np.random.default_rng([seed, 4])
        self._width, self._epsilon, self._known = width, epsilon, models
        dim = self._features(_first_of(sample)).shape[1]
        self._gram = np.stack([ridge * np.eye(dim)] * len(NAMES))
        self._sums = np.zeros((len(NAMES), dim))

    def scores(self, contexts: Contexts) -> Floats:
        x = self._features(contexts)
        inverse = np.linalg.inv(self._gram)
        means = x @ np.einsum("mij,mj->mi", inverse, self._sums).T
        means += self._width * np.sqrt(np.einsum("bi,mij,bj->bm", x, inverse, x))
        drawn = self._rng.random((len(x), 1)) < self._epsilon
        # far apart, so that the budget's weight does not choose instead
        found = np.where(drawn, 1e6 * self._rng.random(means.shape), means)
        found[:, self._known :] = -np.inf
        return np.asarray(found)

    def learn(self, contexts: Contexts, rows: Rows, ratings: Floats) -> None:
        x = self._features(contexts)
        np.add.at(self._gram, rows, x[:, :, None] * x[:, None, :])
        np.add.at(self._sums, rows, x * ratings[:, None])

    def add(self, row: int) -> None:
        self._known = row + 1

    def restart(self) -> None:
        """Do nothing: it is saved nowhere."""

    def _features(self, contexts: Contexts) -> Floats:
        encoded = self._schema.encode(contexts, what="contexts").astype(np.float64)
        return np.hstack([encoded, np.ones((len(encoded), 1))])


class FixedRouter:
    """Scores that were known before: of an oracle, of one model, or random ones."""

    def __init__(self, scores: Floats) -> None:
        self._scores, self._first = scores, 0

    def scores(self, contexts: Contexts) -> Floats:
        count = len(next(iter(contexts.values())))
        self._first += count
        return self._scores[self._first - count : self._first]

    def learn(self, contexts: Contexts, rows: Rows, ratings: Floats) -> None:
        """Learn nothing."""

    def add(self, row: int) -> None:
        """Do nothing: scores say when a model is there."""

    def restart(self) -> None:
        """Do nothing: it is saved nowhere."""


def _first_of(contexts: Contexts) -> Contexts:
    return {name: values[:1] for name, values in contexts.items()}
