"""KernelUCB: upper confidence by kernel regression on contexts and arms.

Valko, Korda, Munos, Flaounas and Cristianini, "Finite-time analysis of kernelised contextual
bandits" (2013). The kernel is Gaussian in the context times Gaussian in the arm.

We differ in two things. The theory's factor of the bonus is `width` here. Printed, a decision
costs the square of the number of rewards; here all rewards are seen through at most `points`
interactions (Nyström): these are stored in the order they come while those before say little of
them, until there are so many, and the variance that the others leave is counted in full (as
Calandriello, Carratino, Lazaric, Valko and Rosasco do, 2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fastbandit.baselines.exploration import LinearExploration, UpperConfidence
from fastbandit.baselines.linear import LinearBandit
from fastbandit.baselines.ridge import Floats, Rows
from fastbandit.declaration import check_number
from fastbandit.errors import SettingError
from fastbandit.features.kinds import is_size
from fastbandit.types import Inputs

_NOVEL = 0.05  # of its variance is left by those stored: an interaction is worth storing
_BLOCK = 2**22  # numbers held at once while all arms are scored
_JITTER = 1e-8


@dataclass(frozen=True, eq=False)
class Seen:
    """Contexts (n, C), the rows chosen for them, and the rewards."""

    contexts: Floats
    rows: Rows
    rewards: Floats

    @staticmethod
    def nothing(context_dim: int) -> Seen:
        return Seen(np.empty((0, context_dim)), np.empty(0, dtype=np.int64), np.empty(0))

    def joined(self, other: Seen) -> Seen:
        return Seen(
            np.concatenate([self.contexts, other.contexts]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.rewards, other.rewards]),
        )


@dataclass(frozen=True, eq=False)
class KernelModel:
    """Kernel regression through the interactions `stored`, with sums over all rewards.

    While fewer than `most` are stored, `waiting` holds all rewards, to be seen again through
    those yet to come. `root` is the Cholesky factor of the kernel of those stored.
    """

    arms: Floats
    ridge: float
    length: float
    most: int
    stored: Seen
    waiting: Seen
    unit: float = 0.0
    root: Floats = field(default_factory=lambda: np.empty((0, 0)))
    gram: Floats = field(default_factory=lambda: np.empty((0, 0)))
    moment: Floats = field(default_factory=lambda: np.empty(0))

    def learn(self, contexts: Floats, rows: Rows, rewards: Floats) -> KernelModel:
        fresh = Seen(contexts, rows, rewards)
        model = replace(self, unit=self.unit or _spread_of(contexts))
        is_growing = len(model.stored.rows) < model.most
        if not is_growing:
            return model._absorbed(fresh)
        model = model._grown(fresh)
        waiting = model.waiting.joined(fresh)
        count = len(model.stored.rows)
        model = replace(model, gram=np.zeros((count, count)), moment=np.zeros(count))
        model = model._absorbed(waiting)
        is_full = count >= model.most
        return replace(model, waiting=Seen.nothing(contexts.shape[1]) if is_full else waiting)

    def _grown(self, fresh: Seen) -> KernelModel:
        """Store the fresh interactions of which those before leave much variance."""
        from scipy.linalg import solve_triangular

        model = self
        for number in range(len(fresh.rows)):
            one = slice(number, number + 1)
            tried = Seen(fresh.contexts[one], fresh.rows[one], fresh.rewards[one])
            alike = model._kernel(tried.contexts, self.arms[tried.rows])[0, 0]  # (m,)
            half = solve_triangular(model.root, alike, lower=True) if len(alike) else alike
            left = 1.0 - half @ half
            if left > _NOVEL and len(alike) < model.most:
                root = np.pad(model.root, ((0, 1), (0, 1)))
                root[-1] = np.append(half, np.sqrt(left + _JITTER))
                model = replace(model, stored=model.stored.joined(tried), root=root)
        return model

    def _absorbed(self, seen: Seen) -> KernelModel:
        gram, moment = self.gram.copy(), self.moment.copy()
        size = max(1, _BLOCK // max(1, len(moment)))
        for first in range(0, len(seen.rows), size):
            part = slice(first, first + size)
            near = self._near_arms(self.arms[seen.rows[part]])
            halves = (self._near_contexts(seen.contexts[part]) * near) @ self.inverse_root.T
            gram += halves.T @ halves
            moment += halves.T @ seen.rewards[part]
        return replace(self, gram=gram, moment=moment)

    # -- the kernel

    def _near_contexts(self, contexts: Floats) -> Floats:
        """Return the kernel of contexts with the stored ones: (b, m)."""
        return _gaussian(contexts, self.stored.contexts, self.length * self.unit)

    def _near_arms(self, arms: Floats) -> Floats:
        return _gaussian(arms, self.arms[self.stored.rows], self.length * self.arm_unit)

    def _kernel(self, contexts: Floats, arms: Floats) -> Floats:
        """Return the kernel of contexts and arms with the stored interactions: (b, n, m)."""
        return self._near_contexts(contexts)[:, None] * self._near_arms(arms)

    @cached_property
    def arm_unit(self) -> float:
        return _spread_of(self.arms)

    @cached_property
    def inverse_root(self) -> Floats:
        from scipy.linalg import solve_triangular

        count = len(self.root)
        return np.asarray(solve_triangular(self.root, np.eye(count), lower=True))

    @cached_property
    def precision_inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self.gram + self.ridge * np.eye(len(self.gram))))

    # -- the posterior

    def means(self, contexts: Floats) -> Floats:
        pulls = self._near_contexts(contexts) * (
            self.inverse_root.T @ (self.precision_inverse @ self.moment)
        )
        parts = [pulls @ self._near_arms(self.arms[part]).T for part in self._parts()]
        return np.concatenate(parts, axis=1)

    def stds(self, contexts: Floats) -> Floats:
        known = np.eye(len(self.gram)) - self.ridge * self.precision_inverse
        form = self.inverse_root.T @ known @ self.inverse_root
        variances = np.empty((len(contexts), len(self.arms)))
        for part in self._parts():
            near = self._near_arms(self.arms[part])
            for number, weights in enumerate(self._near_contexts(contexts)):
                alike = near * weights
                variances[number, part] = 1.0 - np.einsum("nm,nm->n", alike @ form, alike)
        return np.sqrt(np.maximum(variances, 0.0))

    def _parts(self) -> Iterator[slice]:
        size = max(1, _BLOCK // max(1, len(self.moment)))
        return (slice(start, start + size) for start in range(0, len(self.arms), size))

    def blocks(self, contexts: int) -> Iterator[slice]:
        size = max(1, _BLOCK // len(self.arms))
        return (slice(start, start + size) for start in range(0, contexts, size))


@dataclass(kw_only=True, eq=False, repr=False)
class KernelUCB(LinearBandit):
    """The arm with the highest mean + `width` x standard deviation, by kernel regression.

    `length` is how far the kernel reaches, in units of the spread of arms, and of contexts as
    first seen. At most `points` interactions are stored; a decision costs their square an arm.
    """

    disjoint: bool = field(default=False, init=False)
    intercept: bool = field(default=False, init=False)
    half_life: float | None = field(default=None, init=False)
    width: float = 1.0
    length: float = 1.0
    points: int = 200
    _model: KernelModel = field(init=False)  # type: ignore[assignment]  # it gives no draws

    @property
    def exploration(self) -> LinearExploration:
        """Bounds above the means."""
        return UpperConfidence(self.width)

    def _new_model(  # type: ignore[override]
        self, features: Inputs | None, context_dim: int
    ) -> KernelModel:
        check_number("length", self.length, above_zero=True)
        if not is_size(self.points):
            raise SettingError(
                f"A kernel needs at least 1 point: got points={self.points!r}. Try 200."
            )
        arms, nothing = self._arm_vectors(features), Seen.nothing(context_dim)
        return KernelModel(arms, self.ridge, self.length, int(self.points), nothing, nothing)


def _gaussian(one: Floats, two: Floats, length: float) -> Floats:
    squares = np.square(one).sum(1)[:, None] + np.square(two).sum(1) - 2.0 * one @ two.T
    return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0) / length**2))


def _spread_of(vectors: Floats) -> float:
    """Return the root of the summed variances of all columns, 1 where nothing varies."""
    spread = float(np.sqrt(vectors.var(axis=0).sum()))
    return spread if spread > 0.0 else 1.0
