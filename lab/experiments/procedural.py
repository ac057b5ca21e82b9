"""A catalogue of up to 10⁸ arms that is never held whole, with the best arm known exactly.

Arms are points of a lattice in [-1, 1]^d: the digits of an arm's row, in a number system of
`levels` digits, name its position on each axis. The reward adds up over the axes,

    Σ_j w_j(x) (1 - s² + cos(3πs) / 4) / √d   with   s = a_j - t_j(x),

and has several local maxima along each, so the best of all arms is found axis by axis in
O(d levels), though no policy knows so.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, SettingError
from fastbandit.features.kinds import Dense
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import Stream, decision_seeds, normals, uniforms
from lab.experiments.environment import FAR, Floats, Rows

_MOST_ARMS = 10**8
_MOST_LEVELS = 2**20
_BLOCK = 2**17


class Procedural:
    """Arms that are worked out from their rows, and a reward for every context and arm.

    On each axis a permutation of the seed's says which digit stands where, so that rows carry
    no order. `arms` makes the whole matrix, of at most `hold` arms.
    """

    def __init__(
        self,
        arms: int = 1_000_000,
        dim: int = 4,
        *,
        noise: float = 1.0,
        seed: int = 0,
        hold: int = 20_000_000,
    ) -> None:
        _check_settings(arms, dim, noise)
        self.size, self.dim, self.noise, self.seed, self.hold = arms, dim, noise, seed, hold
        self.name = "procedural"
        self.context = Dense(dim)
        self.embed_ids = False
        self.reward: RewardKind = "real"
        self.levels = _levels(arms, dim)
        order_seed, rotation_seed, self._contexts_seed, self._noise_seed = decision_seeds(
            seed, FAR + 10, 4
        ).tolist()
        self._positions = _shuffled_positions(order_seed, dim, self.levels)  # (d, levels)
        self._rotation_matrix = _rotation(rotation_seed, dim)  # (d, d)

    @property
    def rounds(self) -> None:
        """There is no end of rounds."""

    # -- the arms

    @cached_property
    def arms(self) -> NDArray[np.float32]:
        """The features of all arms, where `hold` allows so many: (N, d)."""
        if self.size > self.hold:
            raise SettingError(
                f"At most {self.hold:,} arms are held in memory at once: got {self.size:,}. Take "
                f"blocks of them from block(start, count), or raise hold."
            )
        every = self.block(0, self.size)
        every.flags.writeable = False
        return every

    def vectors(self, rows: Any) -> NDArray[np.float32]:
        """Work out the features of any rows, of any shape: (..., d)."""
        digits = self._digits(self._check_rows(rows))
        return self._positions[np.arange(self.dim), digits]

    def block(self, start: int, count: int) -> NDArray[np.float32]:
        """Work out the features of rows `start` to `start + count - 1`: (count, d)."""
        vectors = np.empty((count, self.dim), dtype=np.float32)
        for first in range(0, count, _BLOCK):
            part = np.arange(start + first, start + min(first + _BLOCK, count))
            vectors[first : first + len(part)] = self.vectors(part)
        return vectors

    # -- the rewards

    def contexts(self, first: int, count: int) -> NDArray[np.float32]:
        """Return the contexts of rounds `first` to `first + count - 1`, in [-1, 1]^d."""
        seeds = decision_seeds(self._contexts_seed, first, count)
        return 2.0 * uniforms(seeds, self.dim, Stream.TRAINING) - 1.0

    def means(self, contexts: Any, rows: Any) -> Floats:
        """Return the expected reward of each context with its arm (n,) or arms (n, k)."""
        arms = self.vectors(rows).astype(np.float64)  # (n, d) or (n, k, d)
        x = np.asarray(contexts, dtype=np.float64)
        wide = x.reshape(len(x), *[1] * (arms.ndim - 2), self.dim)
        return np.asarray(self._terms(wide, arms).sum(axis=-1))

    def expected(self, first: int, chosen: Any) -> Floats:
        """Return the expected rewards of the rows chosen in rounds `first` and on."""
        return self.means(self.contexts(first, len(chosen)), chosen)

    def observed(self, first: int, chosen: Any) -> Floats:
        """Return the rewards of rounds `first` and on; a round's noise is the same for any arm."""
        means = self.expected(first, chosen)
        seeds = decision_seeds(self._noise_seed, first, len(means))
        noise = self.noise * normals(seeds, 1, Stream.TRAINING)[:, 0].astype(np.float64)
        return means + noise.reshape(-1, *[1] * (means.ndim - 1))

    # -- the best of them

    def best(self, first: int, count: int) -> Rows:
        """Find the best arm in each of the rounds `first` and on: (n,); O(n d levels)."""
        return self._best(first, count)[0]

    def ceiling(self, first: int, count: int) -> Floats:
        """Return the expected reward of the best arm in each round: (n,); O(n d levels)."""
        return self._best(first, count)[1]

    def best_arm(self, rounds: int) -> int:
        """Find the one arm that would earn most in the first `rounds`; O(rounds d levels)."""
        totals = np.zeros((1, self.dim, self.levels))
        for start, count in self._spans(0, rounds):
            totals += self._by_digit(start, count).sum(axis=0, keepdims=True)
        return int(self._highest(totals)[0][0])

    def _best(self, first: int, count: int) -> tuple[Rows, Floats]:
        rows, means = np.empty(count, dtype=np.int64), np.empty(count)
        for start, some in self._spans(first, count):
            part = slice(start - first, start - first + some)
            rows[part], means[part] = self._highest(self._by_digit(start, some))
        return rows, means

    def _spans(self, first: int, count: int) -> list[tuple[int, int]]:
        size = max(1, _BLOCK // (self.dim * self.levels))
        return [
            (start, min(size, first + count - start)) for start in range(first, first + count, size)
        ]

    def _by_digit(self, first: int, count: int) -> Floats:
        """Return what each digit of each axis adds to the reward of each round: (n, d, levels)."""
        x = self.contexts(first, count).astype(np.float64)[:, None, :]  # (n, 1, d)
        return self._terms(x, self._positions.T.astype(np.float64)).swapaxes(1, 2)

    def _highest(self, terms: Floats) -> tuple[Rows, Floats]:
        """Find the rows below N whose terms add up to most, and their sums.

        Rows below N are those that share the first digits of N, have a smaller one on the next
        axis, and any digits after it: one box of the lattice for each axis.
        """
        bound = self._digits(np.array([self.size]))[0]
        if self.size == self.levels**self.dim:
            return self._highest_in_box(terms, fixed=bound[:0], below=self.levels)
        rows = np.zeros(len(terms), dtype=np.int64)
        sums = np.full(len(terms), -np.inf)
        for axis in range(self.dim):
            if bound[axis] == 0:
                continue
            found, total = self._highest_in_box(terms, fixed=bound[:axis], below=int(bound[axis]))
            rows = np.where(total > sums, found, rows)
            sums = np.maximum(total, sums)
        return rows, sums

    def _highest_in_box(self, terms: Floats, *, fixed: Rows, below: int) -> tuple[Rows, Floats]:
        axis = len(fixed)
        digits = terms.argmax(axis=2)
        digits[:, :axis] = fixed
        digits[:, axis] = terms[:, axis, :below].argmax(axis=1)
        sums = np.take_along_axis(terms, digits[:, :, None], axis=2)[:, :, 0].sum(axis=1)
        return digits @ self._weights, sums

    def _terms(self, contexts: Floats, arms: Floats) -> Floats:
        """Return what each axis adds to the reward, for contexts and arms that broadcast."""
        rotated = contexts @ self._rotation_matrix
        away = arms - 0.8 * np.sin(2.0 * rotated)
        shape = 1.0 - away**2 + 0.25 * np.cos(3.0 * np.pi * away)
        return np.asarray((1.0 + 0.5 * np.cos(3.0 * rotated)) * shape / np.sqrt(self.dim))

    @cached_property
    def _weights(self) -> Rows:
        return self.levels ** np.arange(self.dim - 1, -1, -1, dtype=np.int64)

    def _digits(self, rows: Rows) -> Rows:
        return rows[..., None] // self._weights % self.levels

    def _check_rows(self, rows: Any) -> Rows:
        checked: Rows = np.asarray(rows, dtype=np.int64)
        wrong = checked[(checked < 0) | (checked >= self.size)]
        if wrong.size:
            raise InputError(
                f"An arm's row needs to be from 0 to {self.size - 1}: got {wrong[0]}. Leave out "
                f"the empty rows of a decision."
            )
        return checked


def _levels(arms: int, dim: int) -> int:
    """Return the fewest levels of an axis that make room for so many arms."""
    levels = max(1, round(arms ** (1.0 / dim)) - 1)
    while levels**dim < arms:
        levels += 1
    return levels


def _shuffled_positions(seed: int, dim: int, levels: int) -> NDArray[np.float32]:
    """Return the position of each digit on each axis, evenly spread and in random order."""
    positions = np.linspace(-1.0, 1.0, levels, dtype=np.float32) if levels > 1 else np.zeros(1)
    draws = uniforms(decision_seeds(seed, 0, dim), levels, Stream.TRAINING)
    return positions[np.argsort(draws, axis=1, kind="stable")].astype(np.float32)


def _rotation(seed: int, dim: int) -> Floats:
    square = normals(decision_seeds(seed, 0, dim), dim, Stream.TRAINING).astype(np.float64)
    return np.asarray(np.linalg.qr(square)[0])


def _check_settings(arms: int, dim: int, noise: float) -> None:
    if not 1 <= arms <= _MOST_ARMS or dim < 1:
        raise SettingError(
            f"A procedural catalogue needs 1 to {_MOST_ARMS:,} arms and at least one dimension: "
            f"got arms={arms} and dim={dim}. Choose numbers in that range."
        )
    if _levels(arms, dim) > _MOST_LEVELS:
        raise SettingError(
            f"An axis of a procedural catalogue holds at most {_MOST_LEVELS:,} levels: got "
            f"{_levels(arms, dim):,} for {arms:,} arms. Raise dim."
        )
    if not 0.0 <= noise < np.inf:
        raise SettingError(
            f"The noise needs to be a standard deviation of at least 0: got {noise}. Use 0 for "
            f"rewards without noise."
        )
