"""Values that travel between parts and to the user; none of them needs torch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Inputs:
    """Rows of raw features, dense, sparse or ids, as an encoder reads them."""

    dense: NDArray[np.float32] | None = None
    sparse: csr_matrix | None = None
    ids: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        part = next(p for p in (self.dense, self.sparse, self.ids) if p is not None)
        return int(part.shape[0])

    def take(self, rows: Any) -> Inputs:
        """Return the rows that a slice or an array of positions names."""
        return Inputs(
            *(None if p is None else p[rows] for p in (self.dense, self.sparse, self.ids))
        )

    @staticmethod
    def stack(parts: Sequence[Inputs]) -> Inputs:
        """Join rows that one encoder read."""
        first = parts[0]
        sparse = None
        if first.sparse is not None:
            from scipy.sparse import vstack

            sparse = vstack([part.sparse for part in parts], format="csr")
        return Inputs(
            dense=None if first.dense is None else np.concatenate([p.dense for p in parts]),
            sparse=sparse,
            ids=None if first.ids is None else np.concatenate([p.ids for p in parts]),
        )


@runtime_checkable
class Features(Protocol):
    """A kind of features: reads raw rows, and complains in the words of the caller."""

    def read(self, raw: Any, *, what: str) -> Inputs:
        """Turn raw rows into checked inputs; `what` names them in errors ("contexts")."""
        ...


@dataclass(frozen=True)
class Interactions:
    """Decisions whose rewards are known: contexts, the features of the arms taken, rewards.

    `weights` say how much each counts; None where each counts once. `rows` are those of the arms
    in their catalogue; None where there is none, or where they are not known.
    """

    contexts: Inputs
    arms: Inputs
    rewards: NDArray[np.float32]
    weights: NDArray[np.float64] | None = None
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The sum of the weights: so many interactions that count once say as much."""
        return float(len(self) if self.weights is None else self.weights.sum())

    @staticmethod
    def stack(parts: Sequence[Interactions]) -> Interactions:
        """Join interactions; those without weights count once. All have rows, or none is known."""
        weights = None
        if any(part.weights is not None for part in parts):
            each = (np.ones(len(p)) if p.weights is None else p.weights for p in parts)
            weights = np.concatenate(list(each))
        rows = [part.rows for part in parts if part.rows is not None]
        return Interactions(
            Inputs.stack([part.contexts for part in parts]),
            Inputs.stack([part.arms for part in parts]),
            np.concatenate([part.rewards for part in parts]),
            weights,
            np.concatenate(rows) if len(rows) == len(parts) else None,
        )

    def take(self, rows: Any) -> Interactions:
        """Return the interactions that a slice or an array of positions names."""
        weights, arm_rows = (None if p is None else p[rows] for p in (self.weights, self.rows))
        contexts, arms = self.contexts.take(rows), self.arms.take(rows)
        return Interactions(contexts, arms, self.rewards[rows], weights, arm_rows)


@dataclass(frozen=True)
class Decision:
    """What `select` answers, one row for each context.

    `arms` are ids (or points of a box), best first; `rows` their positions in the catalogue
    (-1 where fewer arms were eligible than wanted); `scores` how much each was wanted, in
    units of reward (a probability for binary rewards); `seeds` replay the draw; `version`
    counts the updates behind it; `uniform` says that nothing was learned yet and every
    eligible arm was equally likely. `clipped` says of each context whether a number of it was
    cut, as it is far from those seen so far.
    """

    arms: list[Hashable] | list[list[Hashable]] | NDArray[np.float32]
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    seeds: NDArray[np.uint64]
    version: int
    uniform: bool
    evaluations: NDArray[np.int64]
    lookups: NDArray[np.int64]
    clipped: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        if not len(self.clipped):
            object.__setattr__(self, "clipped", np.zeros(len(self.seeds), dtype=bool))

    def __len__(self) -> int:
        return len(self.seeds)


@dataclass(frozen=True)
class Audit:
    """How close a search came to the exhaustive choice under the same draws.

    `quality` is the mean of (chosen - mean) / (best - mean) over the contexts: 1 is the
    exhaustive choice, 0 a random arm. `evaluations` and `lookups` are means per decision.
    """

    quality: float
    qualities: NDArray[np.float32]
    evaluations: float
    lookups: float
    contexts: int
