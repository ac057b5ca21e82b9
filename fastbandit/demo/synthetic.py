"""Synthetic environments of arms and contexts, in which the best possible reward is known.

The functions of the FastBandit paper, on unit vectors x (context) and a (arm), u = x·a:

    h1   (x ⊙ cos x)·a + 0.25 x·a    the default reading of the paper's first function
    h1b  u cos u + 0.25 u            the other reading, as in the authors' code
    h2   10 u²
    h3   cos 3u
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import check_number, known_name
from fastbandit.errors import InputError, SettingError
from fastbandit.features.kinds import Dense
from fastbandit.noise.philox import Stream, decision_seeds, normals
from fastbandit.types import Features

Floats = NDArray[np.float64]

FUNCTIONS = ("h1", "h1b", "h2", "h3")
FAR = 2**62  # a position in the seed's life that no bandit with the same seed will reach

_BLOCK = 2**20


class Synthetic:
    """Arms and contexts spread evenly over the unit sphere, and a reward for every pair.

    A context and the noise of its reward depend on the seed and the number of the round
    alone: policies meet the same environment, whatever they choose and however they batch.
    """

    def __init__(
        self,
        function: str = "h1",
        dim: int = 4,
        arms: int = 10_000,
        *,
        noise: float = 1.0,
        seed: int = 0,
    ) -> None:
        known_name("function", function, FUNCTIONS)
        if dim < 1 or arms < 1:
            raise SettingError(
                f"A synthetic environment needs at least one dimension and one arm: got dim={dim} "
                f"and arms={arms}. Raise them to 1 or more."
            )
        check_number("noise", noise)
        self.function, self.dim, self.noise, self.seed = function, dim, noise, seed
        self.context: Features = Dense(dim)
        roots = decision_seeds(seed, FAR, 3).tolist()
        self._arms_seed, self._contexts_seed, self._noise_seed = roots
        self.arms = _unit_vectors(decision_seeds(self._arms_seed, 0, arms), dim)
        self.arms.flags.writeable = False

    @property
    def size(self) -> int:
        return len(self.arms)

    def contexts(self, first: int, count: int) -> NDArray[np.float32]:
        """Return the contexts of rounds `first` to `first + count - 1`: (count, d)."""
        return _unit_vectors(decision_seeds(self._contexts_seed, first, count), self.dim)

    def means(self, contexts: Any, rows: Any) -> Floats:
        """Return the expected reward of each context with its arm (n,) or arms (n, k)."""
        rows = np.asarray(rows, dtype=np.int64)
        wrong = rows[(rows < 0) | (rows >= len(self.arms))]
        if wrong.size:
            raise InputError(
                f"An arm's row needs to be from 0 to {len(self.arms) - 1}: got {wrong[0]}. Leave "
                f"out the empty rows of a decision."
            )
        arms = self.arms[rows].astype(np.float64)  # (n, d) or (n, k, d)
        return self._curved(np.einsum("nd,n...d->n...", self._mapped(contexts), arms))

    def observed(self, first: int, chosen: Any) -> Floats:
        """Return the rewards of rounds `first` and on; a round's noise is the same for any arm."""
        return self.noisy(first, self.means(self.contexts(first, len(chosen)), chosen))

    def noisy(self, first: int, means: Floats) -> Floats:
        """Add the noise of rounds `first` and on to what they are expected to earn."""
        seeds = decision_seeds(self._noise_seed, first, len(means))
        noise = self.noise * normals(seeds, 1, Stream.TRAINING)[:, 0].astype(np.float64)
        return means + noise.reshape(-1, *[1] * (means.ndim - 1))

    def best(self, contexts: Any) -> tuple[NDArray[np.int64], Floats]:
        """Find the best arm of each context: rows (n,) and expected rewards (n,); O(n N)."""
        rows = np.zeros(len(contexts), dtype=np.int64)
        means = np.full(len(contexts), -np.inf)
        for start, block in self.all_means(contexts):
            top = block.argmax(axis=1)
            value = np.take_along_axis(block, top[:, None], axis=1)[:, 0]
            rows = np.where(value > means, start + top, rows)
            means = np.maximum(means, value)
        return rows, means

    def all_means(self, contexts: Any) -> Iterator[tuple[int, Floats]]:
        """Yield the means of all arms in blocks of some: (first row, (n, some))."""
        mapped = self._mapped(contexts)
        size = max(1, _BLOCK // max(1, len(mapped)))
        for start in range(0, len(self.arms), size):
            yield start, self._curved(mapped @ self.arms[start : start + size].T.astype(np.float64))

    def _mapped(self, contexts: Any) -> Floats:
        x = np.asarray(contexts, dtype=np.float64)
        return x * (np.cos(x) + 0.25) if self.function == "h1" else x

    def _curved(self, u: Floats) -> Floats:
        if self.function == "h1b":
            return u * np.cos(u) + 0.25 * u
        if self.function == "h2":
            return 10.0 * u**2
        return np.cos(3.0 * u) if self.function == "h3" else u


def _unit_vectors(seeds: NDArray[np.uint64], dim: int) -> NDArray[np.float32]:
    vectors = normals(seeds, dim, Stream.TRAINING).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)
