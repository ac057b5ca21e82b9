"""The roles: what a reward model, an exploration, a search, an arm space and an index must do.

    contexts ──> Exploration( RewardModel ) ──> Score ──> Search( ArmSpace ) ──> Choice

The score is the hinge. It is a function of arms with the contexts and this decision's noise
already fixed inside: exploration makes it, search climbs it, neither sees the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from fastbandit.types import Inputs, Interactions

Seeds = NDArray[np.uint64]


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
class Layered(Protocol):
    """A function of arms that is a small network, its weights there to be read."""

    @property
    def first(self) -> Float[Tensor, "B H D"]: ...

    @property
    def first_bias(self) -> Float[Tensor, "B H"]: ...

    @property
    def deeper(self) -> tuple[Tensor, ...]:
        """The layers between the first and the last."""
        ...

    @property
    def last(self) -> Float[Tensor, "B H"]: ...

    @property
    def wide(self) -> Float[Tensor, "B D"]: ...

    @property
    def constant(self) -> Float[Tensor, " B"]: ...

    @property
    def leak(self) -> float: ...


@runtime_checkable
class DeviceIndex(Protocol):
    """Arms in cells in the memory of a device, with the neighbours of each place."""

    @property
    def order(self) -> Int[Tensor, " n"]:
        """The row of each place."""
        ...

    @property
    def vectors(self) -> Float[Tensor, "n D"]: ...

    @property
    def graph(self) -> Int[Tensor, "n L"]: ...

    @property
    def centres(self) -> Float[Tensor, "C D"]: ...

    @property
    def groups(self) -> Float[Tensor, "G D"]: ...

    @property
    def far(self) -> Int[Tensor, " F"]: ...

    @property
    def partition(self) -> int:
        """The most that a cell holds."""
        ...

    @property
    def near_groups(self) -> int:
        """How many groups of cells a look-up looks into."""
        ...


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
    are embedded; `noise` is this decision's draw (no columns where nothing was drawn), told
    to a generator that must answer "the best arm under this draw". Where an evaluation is
    dear, `guess` is a cheap function that ranks arms nearly alike: a search finds its way by
    it, and settles the last few arms with the score itself. `own` is what an arm has beside
    its point: real arms are ranked by both together (`of`).
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
        """Give the scores of points, and the direction in which each grows fastest."""
        if isinstance(self.function, Sloped):
            return self.function.slope(points)
        with torch.enable_grad():
            points = points.detach().requires_grad_()
            scores = self.function(points)
            (slopes,) = torch.autograd.grad(scores.sum(), points)
        return scores.detach(), slopes

    def by_surrogate(self) -> Score:
        """Give the cheap score to find the way by: its guess, or itself where it has none.

        Arms' own parts that have lists come in at the end: no way leads to them.
        """
        own = None if isinstance(self.own, ListedPart) else self.own
        return replace(self, function=self.surrogate or self.function, surrogate=None, own=own)

    def through(self, place: Callable[[Tensor], Tensor]) -> Score:
        """Give the same score as a function of the points that `place` turns into arms."""
        surrogate = None if self.surrogate is None else _through(self.surrogate, place)
        return replace(self, function=_through(self.function, place), surrogate=surrogate)


def _through(
    function: Callable[[Tensor], Tensor], place: Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    if isinstance(place, Affine) and isinstance(function, Folding):
        return function.through(place)
    return lambda points: function(place(points))


@dataclass(frozen=True)
class Candidates:
    """Arms put forward for each context; a row of -1 marks an empty place."""

    rows: Int[Tensor, "B K"]
    points: Float[Tensor, "B K D"]


@dataclass(frozen=True)
class Choice:
    """The arms taken for each context, best first, and what finding them cost.

    A row of -1 (score -inf) marks a place that no allowed arm could fill.
    """

    rows: Int[Tensor, "B K"]
    points: Float[Tensor, "B K D"]
    scores: Float[Tensor, "B K"]
    evaluations: Int[Tensor, " B"]
    lookups: Int[Tensor, " B"]


class RewardModel(nn.Module, ABC):
    """Predicts rewards from embedded contexts and arms, and knows how unsure it is."""

    noise_size: int
    """How many uniform numbers one posterior draw takes."""

    @property
    @abstractmethod
    def device(self) -> str:
        """Where the weights are."""

    @abstractmethod
    def embed_contexts(self, contexts: Inputs) -> Float[Tensor, "B E"]: ...

    def is_clipped(self, contexts: Inputs) -> NDArray[np.bool_]:
        """Tell for each context whether a number of it is cut, being far from all seen: (B,)."""
        return np.zeros(len(contexts), dtype=bool)

    @abstractmethod
    def embed_arms(self, arms: Inputs) -> Float[Tensor, "N E"]: ...

    @abstractmethod
    def encode_arms(self, values: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        """Embed dense arms that are tensors already, so that slopes can pass through."""

    @abstractmethod
    def mean(self, contexts: Float[Tensor, "B E"]) -> Score:
        """Fix the contexts: the expected reward of arm embeddings."""

    @abstractmethod
    def draw(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, scale: float
    ) -> Score:
        """Fix the contexts and one posterior draw, `scale` times as wide as the posterior."""

    @abstractmethod
    def upper(self, contexts: Float[Tensor, "B E"], *, width: float) -> Score:
        """Fix the contexts: mean + width x standard deviation of arm embeddings."""

    def upper_beside(
        self, contexts: Float[Tensor, "B E"], uniforms: Float[Tensor, "B Z"], *, width: float
    ) -> Score:
        """Fix the contexts: a bound for decisions of which many are made before the next update.

        The number of each says how many of the others it counts as made. Without a model of
        these it is the bound of one decision alone.
        """
        return self.upper(contexts, width=width)

    def own(
        self,
        contexts: Float[Tensor, "B E"],
        *,
        seeds: Seeds | None = None,
        scale: float = 0.0,
        width: float = 0.0,
    ) -> OwnPart | None:
        """Fix the contexts: what each arm earns beside what its embedding says, if anything.

        With seeds it is drawn, `scale` times as wide as its posterior; `width` standard
        deviations are added to it.
        """
        return None

    @abstractmethod
    def loss(
        self,
        contexts: Inputs,
        arms: Inputs,
        rewards: Float[Tensor, " B"],
        *,
        total: float,
        rng: Generator,
    ) -> Float[Tensor, ""]:
        """Give the loss of a minibatch out of `total` observations, penalties included."""

    @abstractmethod
    def observe_arms(self, arms: Inputs) -> None:
        """Learn the scale of the arms' features, and make room for new ids."""

    @abstractmethod
    def start(self, history: Interactions, *, fresh: int) -> None:
        """Get ready to learn a history, of which the last `fresh` interactions are new."""

    @abstractmethod
    def fit_posterior(self, history: Interactions) -> None:
        """Work out the doubt that training leaves."""

    @abstractmethod
    def in_rewards(self, scores: Tensor) -> Tensor:
        """Turn scores into units of reward."""


@runtime_checkable
class Exploration(Protocol):
    """Decides what to want: turns a model into a score."""

    def score(
        self, model: RewardModel, contexts: Float[Tensor, "B E"], *, seeds: Seeds
    ) -> Score: ...

    def quiet(self) -> Exploration:
        """Give the same exploration without its exploring: expected rewards alone."""
        ...


@runtime_checkable
class ArmSpace(Protocol):
    """What may be chosen: points of some dimension, and the real arms among them."""

    @property
    def dim(self) -> int: ...

    @property
    def low(self) -> Float[Tensor, " D"]: ...

    @property
    def high(self) -> Float[Tensor, " D"]: ...

    @property
    def place(self) -> Callable[[Tensor], Tensor]:
        """The map from points to the arm embeddings a model understands."""
        ...

    def nearest(
        self, points: Float[Tensor, "B M D"], count: int, *, eligible: Bool[Tensor, "b N"] | None
    ) -> Candidates:
        """Give up to `count` allowed arms near each point."""
        ...

    def around(
        self,
        points: Float[Tensor, "B M D"],
        partitions: int,
        *,
        far: int = 0,
        eligible: Bool[Tensor, "b N"] | None,
    ) -> Candidates:
        """Give what lies in the few cells nearest to each point: some dozens of arms each.

        So many (at most 64) of the arms farthest from the middle of all come along.
        """
        ...

    def neighbours(self, rows: Int[Tensor, "B K"]) -> Candidates | None:
        """Give the arms beside each arm, or None where arms have no neighbours."""
        ...

    def device_index(self) -> DeviceIndex | None:
        """Give the arms as they lie in a GPU, or None where they do not."""
        ...

    def few(self, eligible: Bool[Tensor, "b N"] | None, limit: int) -> Candidates | None:
        """Give all arms of the contexts that are allowed at most `limit`; None if no such."""
        ...

    def sample(self, count: int, *, rng: Generator) -> Candidates:
        """Give `count` arms at random, the same for all contexts (a batch of one)."""
        ...

    def spanning(self, count: int) -> Candidates:
        """Give up to `count` arms that span all others, as a batch of one."""
        ...

    def all(self) -> Candidates:
        """Give every arm (of a continuum: a fine, even cover), as a batch of one."""
        ...


@runtime_checkable
class Search(Protocol):
    """Finds the arms with the highest score for each context."""

    def best(
        self,
        score: Score,
        arms: ArmSpace,
        *,
        count: int,
        seeds: Seeds,
        eligible: Bool[Tensor, "b N"] | None = None,
    ) -> Choice: ...


@runtime_checkable
class Index(Protocol):
    """Finds the vectors nearest to a point."""

    def search(
        self, points: NDArray[np.float32], count: int, *, eligible: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Give positions, nearest first, (points, count); -1 where there are no more."""
        ...

    def __len__(self) -> int: ...
