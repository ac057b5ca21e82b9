"""What a linear policy is shown of an environment: a few numbers for each context and arm.

A linear model over context ⊗ arm holds the square of (context features × arm features)
numbers, so bags of words, images and ids are first projected onto a few fixed random
directions (Johnson and Lindenstrauss), known before the first round. Features are scaled first, by
the contexts learned from so far, and have length about 1: ridge penalties and draws assume that.
Arms without features get a model of their own each where they are few, and a random vector each
where they are many.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SettingError
from fastbandit.features.kinds import Dense, FeaturesAndIds, Ids, Image, Sparse
from fastbandit.reward.context_features import CLIP
from fastbandit.types import Decision, Features, Inputs
from lab.experiments.context_scaling import Scaling, lengths, of_length_one
from lab.experiments.environment import Environment
from lab.experiments.run import Agent

CONTEXT_COLUMNS = 64
ID_COLUMNS = 8
_FEW_ARMS = 512
_SEED = 20
_GROWN = 1.25  # scales are renewed once so many times as many contexts were seen

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Scales:
    """How numbers are standardised, where they are centred, and how long vectors are on average."""

    numbers: Scaling
    centre: float | NDArray[np.float64] = 0.0
    length: float = 1.0

    @staticmethod
    def of(kind: Features, seen: Inputs, *, is_centred: bool) -> Scales:
        """Fit to contexts of one kind, without their ids."""
        scales = Scales(Scaling.of(kind, seen, has_plain_words=True))
        shift, scale = scales.numbers.shift, scales.numbers.scale
        if shift is not None and scale is not None and not is_centred:
            scales = replace(scales, centre=np.clip(shift / scale, -CLIP, CLIP))
        length = float(lengths(scales.vectors(seen)).mean())
        return replace(scales, length=length or 1.0)

    def vectors(self, inputs: Inputs) -> Any:
        """Return features as vectors of length about 1, words (sparse) exactly so."""
        wide = self.numbers.vectors(inputs)
        return (
            of_length_one(wide)
            if not isinstance(wide, np.ndarray)
            else (wide + self.centre) / self.length
        )


@dataclass(eq=False)
class LinearView:
    """Contexts as vectors of numbers: `columns` of them for any kind of features.

    Numbers are centred (`is_centred`) only for a policy that has a constant beside them.
    """

    kind: Features
    features: Vectors | None
    ids: Vectors | None
    columns: int
    is_centred: bool = True
    scales: Scales | None = None
    _seen: list[Inputs] = field(default_factory=list)
    _scaled_at: int = 0

    @staticmethod
    def of(kind: Features, *, is_centred: bool = True) -> LinearView:
        """Choose the projections for a kind of features; the same ones every time."""
        rng = np.random.default_rng(_SEED)
        plain, ids = _parts(kind)
        width = 0 if plain is None else _width(plain)
        features = None if width <= CONTEXT_COLUMNS else _directions(rng, width, CONTEXT_COLUMNS)
        table = None if ids is None else _directions(rng, ids.count, ID_COLUMNS)
        columns = min(width, CONTEXT_COLUMNS) + (ID_COLUMNS if ids is not None else 0)
        return LinearView(kind, features, table, columns, is_centred)

    def see(self, contexts: Any) -> None:
        """Take more contexts, and renew the scales where those seen have grown enough."""
        fresh = _without_ids(self.kind.read(contexts, what="contexts"))
        if fresh is None or not len(fresh):
            return
        self._seen.append(fresh)
        count = sum(map(len, self._seen))
        if count >= _GROWN * self._scaled_at:
            seen = Inputs.stack(self._seen)
            self.scales = self._scales_of(seen)
            self._seen, self._scaled_at = [seen], count

    def show(self, contexts: Any) -> Vectors:
        """Return the vectors (n, columns) of raw contexts, in the scales of those seen so far.

        Before any were seen, these scale each other.
        """
        inputs = self.kind.read(contexts, what="contexts")
        parts = [
            part for part in (self._project(inputs), self._look_up(inputs)) if part is not None
        ]
        return np.concatenate(parts, axis=1)

    def _project(self, inputs: Inputs) -> Vectors | None:
        plain = _without_ids(inputs)
        if plain is None:
            return None
        wide = (self.scales or self._scales_of(plain)).vectors(plain)
        if self.features is not None:
            wide = wide @ self.features
        return np.asarray(
            wide if isinstance(wide, np.ndarray) else wide.toarray(), dtype=np.float32
        )

    def _scales_of(self, seen: Inputs) -> Scales:
        return Scales.of(self.kind, seen, is_centred=self.is_centred)

    def _look_up(self, inputs: Inputs) -> Vectors | None:
        return None if self.ids is None or inputs.ids is None else self.ids[inputs.ids]


@dataclass(frozen=True, eq=False)
class Projected:
    """A linear policy that sees contexts through a `LinearView`, which learns their scales."""

    agent: Agent
    view: LinearView

    def select(self, contexts: Any, /) -> Decision:
        return self.agent.select(self.view.show(contexts))

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        self.view.see(contexts)
        self.agent.update(contexts=self.view.show(contexts), arms=arms, rewards=rewards)


def linear_arms(environment: Environment) -> tuple[Any, bool]:
    """Return the arms as a linear policy takes them, and whether each needs its own model."""
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


def _without_ids(inputs: Inputs) -> Inputs | None:
    """Return the features of contexts alone; None where there are only ids."""
    if inputs.dense is None and inputs.sparse is None:
        return None
    return Inputs(dense=inputs.dense, sparse=inputs.sparse)


def _width(kind: Dense | Sparse | Image) -> int:
    return kind.height * kind.width if isinstance(kind, Image) else kind.dim


def _directions(rng: np.random.Generator, count: int, columns: int) -> Vectors:
    return (rng.standard_normal((count, columns)) / np.sqrt(columns)).astype(np.float32)
