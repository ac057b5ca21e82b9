"""The roles: what a reward model, an exploration, a search, an arm space and an index must do.

    contexts ──> Exploration( RewardModel ) ──> Score ──> Search( ArmSpace ) ──> Choice

The score is the hinge. It is a function of arms with the contexts and this decision's noise
already fixed inside: exploration makes it, search climbs it, neither sees the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from fastbandit.errors import SettingError
from fastbandit.optim.process_group import SINGLE, ProcessGroup
from fastbandit.score import Candidates, Choice, Eligible, OwnPart, Score, Seeds
from fastbandit.types import Features, Inputs, Interactions


class RewardModel(nn.Module, ABC):
    """Predicts rewards from embedded contexts and arms, and knows how unsure it is."""

    noise_size: int = 0
    """How many uniform numbers one posterior draw takes."""

    @property
    def device(self) -> str:
        """Where the weights are."""
        return str(next(chain(self.parameters(), self.buffers())).device)

    # -- what it says

    @abstractmethod
    def embed_contexts(self, contexts: Inputs) -> Float[Tensor, "B E"]: ...

    @abstractmethod
    def embed_arms(self, arms: Inputs) -> Float[Tensor, "N E"]: ...

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

    def in_rewards(self, scores: Tensor) -> Tensor:
        """Return scores in units of reward."""
        return scores

    def is_clipped(self, contexts: Inputs) -> NDArray[np.bool_]:
        """Return for each context whether a number of it is cut, being far from all seen: (B,)."""
        return np.zeros(len(contexts), dtype=bool)

    def encode_arms(self, values: Float[Tensor, "*s D"]) -> Float[Tensor, "*s E"]:
        """Embed dense arms that are tensors already, so that slopes can pass through."""
        raise SettingError(
            f"Arms of a box need a model that embeds points: {type(self).__name__} has no method "
            f"encode_arms. Write one, or give a catalogue of arms."
        )

    def compiled(self, asks: str) -> CompiledModel:
        """Return what compiled code needs to score arms by the "mean", a "draw" or "upper" bound.

        Raises where that cannot be: the bandit then decides by torch.
        """
        raise SettingError(
            f"This reward model cannot be frozen: {type(self).__name__} has no method compiled, "
            f"which returns a CompiledModel. Write one, or select with the Bandit."
        )

    # -- how it learns

    def loss(
        self,
        contexts: Inputs,
        arms: Inputs,
        rewards: Float[Tensor, " B"],
        *,
        total: float,
        rng: Generator,
    ) -> Float[Tensor, ""]:
        """Return the loss of a minibatch out of `total` observations, penalties included.

        A model without parameters, which learns in closed form, is never asked for it.
        """
        raise SettingError(
            f"A reward model with parameters needs a loss: {type(self).__name__} has no method "
            f"loss. Write one, or learn in fit_posterior."
        )

    def observe_arms(self, arms: Inputs) -> None:
        """Learn the scale of the arms' features, and make room for new ids."""

    def rehearse(self, history: Interactions, learn: Learn) -> None:
        """Choose between two ways to predict, where a model has two, by learning with a copy."""

    def start(self, history: Interactions, *, fresh: int) -> None:
        """Prepare to learn a history, of which the last `fresh` interactions are new."""

    def fit_posterior(self, history: Interactions) -> None:
        """Work out the posterior that training leaves."""

    def fit_surrogate(self, arms: ArmSpace, contexts: Inputs, *, rng: Generator) -> None:
        """Learn a cheap score to search by, where the score itself is dear."""


Learn = Callable[[RewardModel, Interactions], None]
"""Lets a model learn a history, from start to posterior."""


@runtime_checkable
class Observes(Protocol):
    """A reward model that learns from single rewards at once, exactly."""

    def private(self) -> RewardModel:
        """Return a copy that may be changed where it stands."""
        ...

    def needs_history(self, fresh: Interactions) -> bool:
        """Return whether `observe` has to see all interactions to learn these."""
        ...

    def observe(self, history: Interactions, fresh: Interactions) -> None: ...


@dataclass(frozen=True)
class CompiledModel:
    """What compiled code needs of a reward model: a network, or weights of each arm.

    `draws_from` says what scores come from: the "mean", "dropout" masks, a "last-layer" (its
    centre, and a spread: one more column for each normal number drawn), "heads" of a last layer
    (one column each), an upper "bound" (a surrogate network to search by, its bonus, and the root
    of the inverse covariance to re-rank by) or "arm-effects". `own` are constants of arms beside
    the network: means, deviations, and a stamp that tells draws apart.
    """

    draws_from: str
    network: nn.Module | None = None
    context_encoder: nn.Module | None = None
    arm_encoder: nn.Module | None = None
    last: tuple[Tensor, Tensor, Tensor] | None = None
    """The last weights, the wide ones and the constant, in place of those of the network."""
    centre: Float[Tensor, " Y"] | None = None
    spread: Float[Tensor, "Y Z"] | None = None
    surrogate: nn.Module | None = None
    bonus_scale: float = 0.0
    bonus_shift: float = 0.0
    root: Tensor | None = None
    reward_shift: float = 0.0
    reward_scale: float = 1.0
    effects: object | None = None
    own: tuple[NDArray[np.float32], NDArray[np.float32], int] | None = None


@runtime_checkable
class Posterior(Protocol):
    """Declares how uncertainty is modelled, and builds the reward model that has it."""

    def build(self, plan: Plan, *, rng: Generator) -> RewardModel: ...


@runtime_checkable
class Plan(Protocol):
    """What a policy is built for, and of what parts: all that a part may ask about the others."""

    @property
    def context(self) -> Features: ...

    @property
    def arm(self) -> Features: ...

    @property
    def reward(self) -> str: ...

    @property
    def network(self) -> Any: ...

    @property
    def exploration(self) -> Exploration: ...

    @property
    def search(self) -> Search: ...


@runtime_checkable
class Exploration(Protocol):
    """Decides what to want: turns a model into a score."""

    def score(
        self, model: RewardModel, contexts: Float[Tensor, "B E"], *, seeds: Seeds
    ) -> Score: ...

    def quiet(self) -> Exploration:
        """Return the same exploration without its exploring: expected rewards alone."""
        ...


def asks(exploration: Exploration) -> str:
    """Return what an exploration asks of a posterior: its "mean", a "draw" or an "upper" bound."""
    return str(getattr(exploration, "asks", ""))


@runtime_checkable
class ArmSpace(Protocol):
    """What may be chosen: points of some dimension, and the real arms among them."""

    @property
    def dim(self) -> int: ...

    @property
    def size(self) -> int | None:
        """How many arms can be chosen; None where they fill a continuum."""
        ...

    @property
    def low(self) -> Float[Tensor, " D"]: ...

    @property
    def high(self) -> Float[Tensor, " D"]: ...

    @property
    def to_embedding(self) -> Callable[[Tensor], Tensor]:
        """The map from points to the arm embeddings a model understands."""
        ...

    def nearest(
        self, points: Float[Tensor, "B M D"], count: int, *, eligible: Eligible
    ) -> Candidates:
        """Return up to `count` eligible arms near each point."""
        ...

    def around(
        self, points: Float[Tensor, "B M D"], partitions: int, *, far: int = 0, eligible: Eligible
    ) -> Candidates:
        """Return what lies in the few partitions nearest to each point: some dozens of arms each.

        So many (at most 64) of the arms farthest from the middle of all come along.
        """
        ...

    def neighbours(self, rows: Int[Tensor, "B K"]) -> Candidates | None:
        """Return the arms beside each arm, or None where arms have no neighbours."""
        ...

    def device_index(self) -> object | None:
        """Return the arms as they lie in a GPU (a `DeviceIndex`), or None where they do not."""
        ...

    def few(self, eligible: Eligible, limit: int) -> Candidates | None:
        """Return all arms of the contexts that may choose at most `limit`; None if no such."""
        ...

    def sample(self, count: int, *, rng: Generator) -> Candidates:
        """Return `count` arms at random, the same for all contexts (a batch of one)."""
        ...

    def spanning(self, count: int) -> Candidates:
        """Return up to `count` arms that span all others, as a batch of one."""
        ...

    def all(self) -> Candidates:
        """Return every arm (of a continuum: a fine, even cover), as a batch of one."""
        ...


@runtime_checkable
class Search(Protocol):
    """Finds the arms with the highest score for each context."""

    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice: ...


@dataclass(frozen=True)
class SearchFit:
    """What a search that learns is given after an update: the score, the arms, and how to train."""

    model: RewardModel
    exploration: Exploration
    arms: ArmSpace
    contexts: Inputs
    settings: Any
    rng: Generator
    done: Callable[[int], None] = lambda iterations: None
    group: ProcessGroup = SINGLE


@runtime_checkable
class LearnsToSearch(Protocol):
    """A declared search that is fitted to the score in each update.

    `fit` returns the fitted search, which knows what it was `declared` as. Its `state` is what a
    snapshot saves beside the declaration: tensors and JSON values; `restored` is the way back.
    """

    def fit(self, task: SearchFit, *, before: Search) -> Search: ...

    def restored(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> Search: ...


@runtime_checkable
class FittedSearch(Protocol):
    """A search with what it learned."""

    @property
    def declared(self) -> Search: ...

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]: ...


def declared(search: Search) -> Search:
    """Return the declaration of a search, without what was fitted."""
    return search.declared if isinstance(search, FittedSearch) else search


def is_scan(search: Search) -> bool:
    """Return whether a search, as it is now, scores all arms: it needs no index."""
    return bool(getattr(search, "is_scan", False))


def scans(search: Search, size: int | None) -> bool:
    """Return whether a search will score all of so many arms (None: however many) once fitted."""
    asked = getattr(declared(search), "scans", None)
    return asked is not None and bool(asked(size))


@runtime_checkable
class Index(Protocol):
    """Finds the vectors nearest to a point."""

    def search(
        self, points: NDArray[np.float32], count: int, *, eligible: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return positions, nearest first, (points, count); -1 where there are no more."""
        ...

    def __len__(self) -> int: ...
