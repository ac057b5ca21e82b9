"""What a linear policy is shown of an environment: a few numbers for each context and arm.

A linear model over context ⊗ arm holds the square of (context features × arm features)
numbers, so bags of words, images and ids are first projected onto a few fixed random
directions (Johnson and Lindenstrauss), known before the first round. Arms without features
get a model of their own each where they are few, and a random vector each where they are many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SettingError
from fastbandit.features import Dense, Features, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.types import Decision, Inputs
from lab.experiments.environment import Environment
from lab.experiments.run import Player

CONTEXT_COLUMNS = 64
ID_COLUMNS = 8
_FEW_ARMS = 512
_SEED = 20

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LinearView:
    """Contexts as vectors of numbers: `columns` of them for any kind of features."""

    kind: Features
    features: Vectors | None
    ids: Vectors | None
    columns: int

    @staticmethod
    def of(kind: Features) -> LinearView:
        """Choose the projections for a kind of features; the same ones every time."""
        rng = np.random.default_rng(_SEED)
        plain, ids = _parts(kind)
        width = 0 if plain is None else _width(plain)
        features = None if width <= CONTEXT_COLUMNS else _directions(rng, width, CONTEXT_COLUMNS)
        table = None if ids is None else _directions(rng, ids.count, ID_COLUMNS)
        columns = min(width, CONTEXT_COLUMNS) + (ID_COLUMNS if ids is not None else 0)
        return LinearView(kind, features, table, columns)

    def show(self, contexts: Any) -> Vectors:
        """Give the vectors (n, columns) of raw contexts."""
        inputs = self.kind.read(contexts, what="contexts")
        parts = [
            part for part in (self._project(inputs), self._look_up(inputs)) if part is not None
        ]
        return np.concatenate(parts, axis=1)

    def _project(self, inputs: Inputs) -> Vectors | None:
        if inputs.sparse is not None:
            wide = inputs.sparse
        elif inputs.dense is not None:
            wide = inputs.dense.reshape(len(inputs), -1)
        else:
            return None
        if self.features is None:
            return np.asarray(wide.toarray() if hasattr(wide, "toarray") else wide)
        return np.asarray(wide @ self.features, dtype=np.float32)

    def _look_up(self, inputs: Inputs) -> Vectors | None:
        return None if self.ids is None or inputs.ids is None else self.ids[inputs.ids]


@dataclass(frozen=True, eq=False)
class Projected:
    """A linear policy that sees contexts through a `LinearView`."""

    player: Player
    view: LinearView

    def select(self, contexts: Any, /) -> Decision:
        return self.player.select(self.view.show(contexts))

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        self.player.update(contexts=self.view.show(contexts), arms=arms, rewards=rewards)


def linear_arms(environment: Environment) -> tuple[Any, bool]:
    """Give the arms as a linear policy takes them, and whether each needs its own model."""
    size = environment.size or 0
    if environment.arms is not None:
        return environment.arms, False
    if size <= _FEW_ARMS:
        return None, True
    return _directions(np.random.default_rng(_SEED + 1), size, ID_COLUMNS), False


def _parts(kind: Features) -> tuple[Dense | Sparse | Image | None, Ids | None]:
    if isinstance(kind, FeaturesAndIds):
        return kind.features, kind.ids
    if isinstance(kind, Ids):
        return None, kind
    if isinstance(kind, Dense | Sparse | Image):
        return kind, None
    raise SettingError(
        f"A linear policy needs contexts of a known kind: got {kind!r}. Use Dense, Sparse, Image, "
        f"Ids or FeaturesAndIds."
    )


def _width(kind: Dense | Sparse | Image) -> int:
    return kind.height * kind.width if isinstance(kind, Image) else kind.dim


def _directions(rng: np.random.Generator, count: int, columns: int) -> Vectors:
    return (rng.standard_normal((count, columns)) / np.sqrt(columns)).astype(np.float32)
