"""Vowpal Wabbit as a policy: exploration over arms with features, learning from each reward once.

An arm is its id and its features, a context its vector, and `--interactions` crosses the two, as in
the library's tutorials. A reward r is the cost -r. Settings are the library's defaults and the
numbers of its examples, but for two where these do much worse: RegCB is the optimistic one with a
mellowness of .001, and cover leaves out uniform draws with a psi of .1, as in its authors' own
comparison (Bietti, Agarwal and Langford, "A contextual bandit bake-off", 2018). Features are hashed
into 2²² slots, not 2¹⁸: thousands of arms times thousands of words would collide.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.bakeoff.history import Floats, History, Rows
from lab.benchmarks.peer_libraries import drawn
from lab.experiments.context_scaling import Scaling
from lab.experiments.environment import Environment

_BITS = 22
_DIGITS = ".5g"

EXPLORATIONS = {
    "epsilon": "--epsilon 0.05",
    "SquareCB": "--squarecb",
    "RegCB": "--regcb --regcbopt --mellowness 0.001 --cb_min_cost -1 --cb_max_cost 0",
    "bag": "--bag 5",
    "cover": "--cover 3 --nounif --psi 0.1",
}
"""The options of each exploration."""


class VowpalWabbit:
    """An exploration of Vowpal Wabbit; arms are parsed once, contexts as they come.

    `exploration` is a name or the options themselves. Where arms have features, a flag for each
    (`has_ids`) takes much of what is learned to itself: without, features are learned sooner.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        exploration: str,
        seed: int,
        crosses: tuple[str, ...] = ("ua",),
        has_ids: bool = True,
    ) -> None:
        crossed = " ".join(f"--interactions {cross}" for cross in crosses)
        options = (
            f"--cb_explore_adf {EXPLORATIONS.get(exploration, exploration)} {crossed} -b {_BITS} "
            f"--quiet --random_seed {seed + 1}"  # 0 stands for no seed
        )
        self._workspace = import_module("vowpalwabbit").Workspace(options)
        self._lines = _arm_lines(environment, has_ids=has_ids)
        self._arms = [self._workspace.parse([line])[0] for line in self._lines]
        self._history = History(environment.context)
        self._rng = np.random.default_rng(seed)
        self._chosen: tuple[Rows, Floats] | None = None

    def select(self, contexts: Any, /) -> Rows:
        """Return arms drawn by the probabilities that the exploration gives each."""
        rows, probabilities = [], []
        for head in self._heads(self._history.show(contexts)):
            given = np.array(self._workspace.predict([head, *self._arms]), dtype=np.float64)
            row = drawn(given, float(self._rng.random()))
            rows.append(row)
            probabilities.append(given[row] / given.sum())
        self._chosen = (np.array(rows), np.array(probabilities))
        return self._chosen[0]

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        """Learn each reward once, with the probability that its arm had."""
        rows = np.asarray(arms, dtype=np.int64)
        probabilities = self._probabilities_of(rows)
        self._history.add(contexts, rows, rewards)
        heads = self._heads(self._history.show(contexts))
        for head, row, reward, probability in zip(heads, rows, rewards, probabilities, strict=True):
            label = f"0:{-float(reward):g}:{probability:.6g} {self._lines[row]}"
            examples = [head, *self._arms]
            examples[1 + row] = self._workspace.parse([label])[0]
            self._workspace.learn(examples)

    def seconds_of_one(self, contexts: Any) -> float:
        """Return how long the processor predicts for the first of contexts, before any update."""
        fresh = self._history.kind.read(contexts, what="contexts")
        head = self._heads(Scaling.of(self._history.kind, fresh).vectors(fresh)[:1])[0]
        self._workspace.predict([head, *self._arms])  # the first is slower than others
        started = time.process_time()
        self._workspace.predict([head, *self._arms])
        return time.process_time() - started

    def _probabilities_of(self, rows: Rows) -> Floats:
        """Return the probabilities of arms that were chosen here; of others, that of each arm."""
        if self._chosen is not None and np.array_equal(self._chosen[0], rows):
            return self._chosen[1]
        return np.full(len(rows), 1.0 / len(self._lines))

    def _heads(self, vectors: Any) -> list[Any]:
        return [self._workspace.parse([f"shared |u {text}"])[0] for text in _worded(vectors)]


def _arm_lines(environment: Environment, *, has_ids: bool) -> list[str]:
    size = environment.size or 0
    features = [""] * size
    if environment.arms is not None:
        features = _worded(np.asarray(environment.arms))
    return [
        f"|a {f'id{row} ' if has_ids else ''}{text}".rstrip() for row, text in enumerate(features)
    ]


def _worded(vectors: Any) -> list[str]:
    """Format rows of numbers, those that are zero left out."""
    from scipy.sparse import csr_matrix

    rows = csr_matrix(vectors)
    ends: Sequence[int] = rows.indptr.tolist()
    return [
        _weighted(rows.indices[first:last], rows.data[first:last]) for first, last in pairwise(ends)
    ]


def _weighted(columns: NDArray[Any], numbers: NDArray[Any]) -> str:
    return " ".join(
        f"f{column}:{number:{_DIGITS}}"
        for column, number in zip(columns.tolist(), numbers.tolist(), strict=True)
    )
