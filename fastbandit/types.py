"""Values that travel between parts and to the user; none of them needs torch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_SHOWN = 8  # rows of a decision

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
    in their catalogue; None where there is none, or where they are not known. Where rewards are a
    combination of `outcomes`, those are here by name, NaN where one did not come; a reward is NaN
    where an outcome that it needs is.
    """

    contexts: Inputs
    arms: Inputs
    rewards: NDArray[np.float32]
    weights: NDArray[np.float64] | None = None
    rows: NDArray[np.int64] | None = None
    outcomes: Mapping[str, NDArray[np.float32]] | None = None

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def known(self) -> Interactions:
        """Those whose reward is known."""
        return self if self.outcomes is None else self.take(~np.isnan(self.rewards))

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
            _stacked_outcomes(parts),
        )

    def take(self, rows: Any) -> Interactions:
        """Return the interactions that a slice or an array of positions names."""
        weights, arm_rows = (None if p is None else p[rows] for p in (self.weights, self.rows))
        contexts, arms = self.contexts.take(rows), self.arms.take(rows)
        outcomes = None
        if self.outcomes is not None:
            outcomes = {name: values[rows] for name, values in self.outcomes.items()}
        return Interactions(contexts, arms, self.rewards[rows], weights, arm_rows, outcomes)


def _stacked_outcomes(parts: Sequence[Interactions]) -> dict[str, NDArray[np.float32]] | None:
    """Join outcomes by name; NaN stands where a part has none of a name."""
    if all(part.outcomes is None for part in parts):
        return None
    each = [part.outcomes or {} for part in parts]
    missing = [np.full(len(part), np.nan, dtype=np.float32) for part in parts]
    return {
        name: np.concatenate([of.get(name, none) for of, none in zip(each, missing, strict=True)])
        for name in dict.fromkeys(name for of in each for name in of)
    }


def html_table(title: str, rows: Iterable[Sequence[object]], headings: Sequence[str] = ()) -> str:
    """Return a small table for a notebook; all text of it is escaped."""
    head = "".join(f"<th>{escape(one)}</th>" for one in headings)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    )


@dataclass(frozen=True, repr=False)
class Decision:
    """What `select` answers, one row for each context.

    `arms` are ids (or points of a box), best first; `rows` their positions in the catalogue
    (-1 where fewer arms were eligible than wanted); `scores` how much each was wanted, in
    units of reward (a probability for binary rewards); `seeds` replay the draw; `version`
    counts the updates behind it; `uniform` says that nothing was learned yet and every
    eligible arm was equally likely. `clipped` says of each context whether a number of it was
    cut, as it is far from those seen so far; `dropped`, how many of its eligible ids no arm has, or
    none has any more.
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
    dropped: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        for name, kind in (("clipped", bool), ("dropped", np.int64)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.zeros(len(self.seeds), dtype=kind))

    def __len__(self) -> int:
        return len(self.seeds)

    def __repr__(self) -> str:
        arms: Any = self.arms
        first = ", ".join(str(one) for one in arms[:_SHOWN])
        more = ", …" if len(self) > _SHOWN else ""
        return f"Decision({self._title()}: arms [{first}{more}])"

    def _repr_html_(self) -> str:
        arms: Any = self.arms
        rows = [
            (number, arms[number], ", ".join(f"{one:.4g}" for one in self.scores[number]))
            for number in range(min(_SHOWN, len(self)))
        ]
        rest = [("…", "", "")] * (len(self) > _SHOWN)
        return html_table(
            f"Decision: {self._title()}", [*rows, *rest], ("context", "arms", "scores")
        )

    def _title(self) -> str:
        how = "any arm, as nothing is learned yet" if self.uniform else f"version {self.version}"
        dropped = f", {int(self.dropped.sum())} stale ids dropped" if self.dropped.any() else ""
        contexts = "1 context" if len(self) == 1 else f"{len(self):,} contexts"
        return f"{contexts}, {how}{dropped}"


class Chosen(NamedTuple):
    """One decision: the arm, how much it was wanted (in units of reward), and what it cost.

    `clipped` says that a number of the context was clipped, as it is far from those seen so far;
    `dropped`, how many eligible ids no arm has, or none has any more.
    """

    arm: Any
    row: int
    score: float
    seed: int
    version: int
    evaluations: int
    lookups: int
    clipped: bool = False
    dropped: int = 0


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {value}" for name, value in self._facts())
        return f"Audit({said})"

    def _repr_html_(self) -> str:
        return html_table("Audit", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        lowest = f"{self.qualities.min():.4f}" if len(self.qualities) else "–"
        return [
            ("quality", f"{self.quality:.4f}"),
            ("lowest", lowest),
            ("contexts", f"{self.contexts:,}"),
            ("evaluations", f"{self.evaluations:.1f}"),
            ("look-ups", f"{self.lookups:.1f}"),
        ]
