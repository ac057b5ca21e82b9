"""What a policy is played against: rounds of contexts, arms, and the reward of any arm.

A round is known by its number alone. Its context and the noise of its reward do not depend on
what was chosen before, so all policies meet the same environment, however they batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbandit.demo.synthetic import FAR as FAR
from fastbandit.demo.synthetic import Floats as Floats
from fastbandit.errors import InputError, SettingError
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import Stream, decision_seeds, normals, uniforms
from fastbandit.types import Features, Inputs

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Rows = NDArray[np.int64]


class Environment(Protocol):
    """Rounds of contexts, and the expected reward of every arm in each.

    `arms` are features as `Bandit` takes them, a `Box` for a continuum, or None where each
    arm is known by its row alone; with `embed_ids` arms have features and an embedding of
    their own. What is chosen is named by rows (n,), or by points (n, d) of a box.
    """

    @property
    def name(self) -> str: ...

    @property
    def context(self) -> Features: ...

    @property
    def arms(self) -> Any: ...

    @property
    def embed_ids(self) -> bool: ...

    @property
    def reward(self) -> RewardKind: ...

    @property
    def seed(self) -> int: ...

    @property
    def size(self) -> int | None:
        """The number of arms; None for a continuum."""
        ...

    @property
    def rounds(self) -> int | None:
        """The number of rounds there are; None where there is no end."""
        ...

    def contexts(self, first: int, count: int) -> Any:
        """Return the contexts of rounds `first` to `first + count - 1`, as `context` reads them."""
        ...

    def expected(self, first: int, chosen: Any) -> Floats:
        """Return the expected rewards of what was chosen in rounds `first` and on: (n,)."""
        ...

    def observed(self, first: int, chosen: Any) -> Floats:
        """Return the rewards that a policy sees for it, noise included: (n,)."""
        ...

    def ceiling(self, first: int, count: int) -> Floats:
        """Return the expected reward of the best arm in each round: (n,)."""
        ...

    def best_arm(self, rounds: int) -> Any:
        """Return the one arm (a row or a point) that would earn most in the first `rounds`."""
        ...


@dataclass(frozen=True, eq=False)
class Tabled:
    """Instances in an order of the seed's, and a table of what each arm is worth to each.

    `instances` are the contexts of all instances. `expected_rewards` has a row for each
    instance and a column for each arm, sparse where most are zero; with binary rewards these
    are probabilities. `visits` names the instance of each round before shuffling (None: each
    once). `noise` is the standard deviation of real rewards about what is expected; binary
    ones have their own.
    """

    name: str
    context: Features
    instances: Inputs
    expected_rewards: csr_matrix | NDArray[np.float32]
    arms: Any = None
    ids: Sequence[str] | None = None
    embed_ids: bool = False
    reward: RewardKind = "binary"
    seed: int = 0
    visits: Rows | None = None
    noise: float = 0.0
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.expected_rewards.shape[0] != len(self.instances):
            raise InputError(
                f"Each instance needs one row of expected rewards: got {len(self.instances)} "
                f"instances and rewards of shape {self.expected_rewards.shape}."
            )
        if not 0.0 <= self.noise < np.inf:
            raise SettingError(
                f"The noise needs to be a standard deviation of at least 0: got {self.noise}. Use "
                f"0 for rewards without noise."
            )

    @property
    def size(self) -> int:
        return int(self.expected_rewards.shape[1])

    @property
    def rounds(self) -> int:
        return len(self._order)

    @cached_property
    def _order(self) -> Rows:
        visits = np.arange(len(self.instances)) if self.visits is None else self.visits
        root = int(decision_seeds(self.seed, FAR + 3, 1)[0])
        draws = uniforms(decision_seeds(root, 0, len(visits)), 1, Stream.TRAINING)[:, 0]
        return np.asarray(visits[np.argsort(draws, kind="stable")])

    def contexts(self, first: int, count: int) -> Any:
        return as_raw(self.instances.take(self._of_rounds(first, count)))

    def expected(self, first: int, chosen: Any) -> Floats:
        rows = self._check_rows(chosen)
        instances = self._of_rounds(first, len(rows))
        return np.asarray(self.expected_rewards[instances, rows], dtype=np.float64).reshape(-1)

    def observed(self, first: int, chosen: Any) -> Floats:
        means = self.expected(first, chosen)
        root = int(decision_seeds(self.seed, FAR + 2, 1)[0])
        seeds = decision_seeds(root, first, len(means))
        if self.reward == "binary":
            draws = uniforms(seeds, 1, Stream.TRAINING)[:, 0]
            return (draws < means).astype(np.float64)
        return means + self.noise * normals(seeds, 1, Stream.TRAINING)[:, 0].astype(np.float64)

    def ceiling(self, first: int, count: int) -> Floats:
        part = self.expected_rewards[self._of_rounds(first, count)]
        best = part.max(axis=1)
        return np.asarray(best.toarray() if hasattr(best, "toarray") else best, float).reshape(-1)

    def best_arm(self, rounds: int) -> int:
        total = self.expected_rewards[self._of_rounds(0, rounds)].sum(axis=0)
        return int(np.asarray(total).argmax())

    def _check_rows(self, chosen: Any) -> Rows:
        rows: Rows = np.asarray(chosen, dtype=np.int64)
        wrong = rows[(rows < 0) | (rows >= self.size)]
        if wrong.size:
            raise InputError(
                f"An arm's row needs to be from 0 to {self.size - 1}: got {wrong[0]}. Leave out "
                f"the empty rows of a decision."
            )
        return rows

    def _of_rounds(self, first: int, count: int) -> Rows:
        if first + count > self.rounds:
            raise SettingError(
                f"The dataset {self.name} has {self.rounds:,} rounds: got round "
                f"{first + count - 1:,}. Play fewer rounds."
            )
        return self._order[first : first + count]


def as_raw(inputs: Inputs) -> Any:
    """Return inputs in the form a bandit is handed: features, ids, or both."""
    features = inputs.dense if inputs.sparse is None else inputs.sparse
    if inputs.ids is None:
        return features
    return inputs.ids if features is None else (features, inputs.ids)
