"""The score, the hinge between exploration and search, and the arms that it ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

Seeds = NDArray[np.uint64]
Eligible: TypeAlias = Bool[Tensor, "b N"] | None
"""Which arms contexts may choose, by row: one mask for all contexts, or one for each; None: all."""


@dataclass(frozen=True)
class Affine:
    """A map from points to arm embeddings: centre + points @ axes."""

    centre: Float[Tensor, " E"]
    axes: Float[Tensor, "D E"]

    def __call__(self, points: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        return self.centre + points @ self.axes


@runtime_checkable
class Folding(Protocol):
    """A function of arm embeddings that can take an affine map into itself, to cost less."""

    def __call__(self, arms: Tensor) -> Tensor: ...

    def through(self, affine: Affine) -> Callable[[Tensor], Tensor]: ...


@runtime_checkable
class Sloped(Protocol):
    """A function of arms that knows its own slope, without automatic differentiation."""

    def slope(self, arms: Tensor) -> tuple[Tensor, Tensor]: ...


@runtime_checkable
class OwnPart(Protocol):
    """What arms score beside what their points say, for contexts and a draw that are fixed."""

    def __call__(self, rows: Int[Tensor, "b K"]) -> Float[Tensor, "B K"]: ...


@runtime_checkable
class ListedPart(OwnPart, Protocol):
    """An own part whose best arms are known beforehand, whatever the context."""

    def best(self) -> tuple[Int[Tensor, "B L"], Float[Tensor, "B L"]]:
        """Return the rows of the best arms by this part alone, best first, and their parts."""
        ...


@dataclass(frozen=True)
class Score:
    """How much we want each arm now: a function of arms, and what it was fixed to.

    Called with points (B, K, D), or (1, K, D) where all contexts share the arms. `contexts`
    are embedded; `noise` is this decision's draw (no columns where nothing was drawn), an input
    of a generator that must answer "the best arm under this draw". Where an evaluation is dear,
    `surrogate` is a cheap function that ranks arms nearly alike: a search finds its way by it, and
    re-ranks the last few arms by the score itself. `own` is what an arm has beside its point: real
    arms are ranked by both together (`of`).
    """

    function: Callable[[Tensor], Tensor]
    contexts: Float[Tensor, "B E"]
    noise: Float[Tensor, "B Z"]
    surrogate: Callable[[Tensor], Tensor] | None = None
    own: OwnPart | None = None

    def __call__(self, points: Float[Tensor, "b K D"]) -> Float[Tensor, "B K"]:
        return self.function(points)

    def of(self, candidates: Candidates) -> Float[Tensor, "B K"]:
        """Return the scores of real arms: that of the point, and the arm's own part."""
        scores = self.function(candidates.points)
        return scores if self.own is None else scores + self.own(candidates.rows)

    def slope(
        self, points: Float[Tensor, "B K D"]
    ) -> tuple[Float[Tensor, "B K"], Float[Tensor, "B K D"]]:
        """Return the scores of points, and the direction in which each grows fastest."""
        if isinstance(self.function, Sloped):
            return self.function.slope(points)
        with torch.enable_grad():
            points = points.detach().requires_grad_()
            scores = self.function(points)
            (slopes,) = torch.autograd.grad(scores.sum(), points)
        return scores.detach(), slopes

    def by_surrogate(self) -> Score:
        """Return the cheap score to find the way by: its surrogate, or itself where it has none.

        Arms' own parts that have lists come in at the end: no way leads to them.
        """
        own = None if isinstance(self.own, ListedPart) else self.own
        return replace(self, function=self.surrogate or self.function, surrogate=None, own=own)

    def through(self, embed: Callable[[Tensor], Tensor]) -> Score:
        """Return the same score as a function of the points that `embed` turns into arms."""
        surrogate = None if self.surrogate is None else _through(self.surrogate, embed)
        return replace(self, function=_through(self.function, embed), surrogate=surrogate)


def _through(
    function: Callable[[Tensor], Tensor], embed: Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    if isinstance(embed, Affine) and isinstance(function, Folding):
        return function.through(embed)
    return lambda points: function(embed(points))


@dataclass(frozen=True)
class Candidates:
    """Arms put forward for each context; a row of -1 marks an empty slot."""

    rows: Int[Tensor, "B K"]
    points: Float[Tensor, "B K D"]


@dataclass(frozen=True)
class Choice:
    """The arms taken for each context, best first, and what finding them cost.

    A row of -1 (score -inf) marks a slot that no eligible arm could fill.
    """

    rows: Int[Tensor, "B K"]
    points: Float[Tensor, "B K D"]
    scores: Float[Tensor, "B K"]
    evaluations: Int[Tensor, " B"]
    lookups: Int[Tensor, " B"]
