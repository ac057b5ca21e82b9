"""Contexts as vectors, scaled by the contexts seen so far: for linear policies and for peers.

Numbers are standardised and clipped; columns of zeros and ones are only centred. Words are weighed
by how rare they are, and have length 1; or they stay as they are. Ids are flags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.reward.context_features import CLIP, robust_scale
from fastbandit.types import Features, Inputs

Vectors = Any
"""Rows of numbers: an array (n, d) of float64, or a SciPy matrix where most are zero."""


@dataclass(frozen=True)
class Scaling:
    """How contexts are scaled, as the ones seen so far say; `ids` is the number of ids."""

    shift: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None
    rarity: NDArray[np.float64] | None = None
    ids: int = 0

    @staticmethod
    def of(kind: Features, seen: Inputs, *, has_plain_words: bool = False) -> Scaling:
        """Fit to contexts of one kind; rewards are not needed."""
        has_words = seen.sparse is not None and not has_plain_words
        counted: Any = getattr(kind, "ids", kind)
        shift, scale = (None, None) if seen.dense is None else standards(flat(seen.dense))
        return Scaling(
            shift,
            scale,
            _rarity(seen.sparse) if has_words else None,
            0 if seen.ids is None else int(counted.count),
        )

    def vectors(self, inputs: Inputs) -> Vectors:
        """Return contexts as vectors: dense for numbers, sparse for words and ids."""
        from scipy.sparse import csr_matrix, hstack

        parts = []
        if inputs.dense is not None and self.shift is not None and self.scale is not None:
            steps = standardised(flat(inputs.dense), self.shift, self.scale)
            parts.append(steps)
        if inputs.sparse is not None:
            parts.append(self._words(inputs.sparse))
        if inputs.ids is not None:
            count = len(inputs.ids)
            flags = (np.ones(count), inputs.ids, np.arange(count + 1))
            parts.append(csr_matrix(flags, shape=(count, self.ids)))
        if len(parts) == 1:
            return parts[0]
        return hstack([csr_matrix(part) for part in parts], format="csr")

    def _words(self, words: Any) -> Any:
        if self.rarity is None:
            return words
        return of_length_one(words.multiply(self.rarity).tocsr())


def standards(numbers: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shift and the scale of each column; flags and constants keep their scale."""
    shift, scale = robust_scale(numbers.astype(np.float64))
    is_flag = ((numbers == 0) | (numbers == 1)).all(axis=0)
    return shift, np.where(is_flag, 1.0, scale)


def standardised(
    numbers: NDArray[Any], shift: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return numbers in steps of their scale from their shift, none of them far away."""
    return np.clip((numbers - shift) / scale, -CLIP, CLIP)


def with_one(vectors: Vectors) -> Vectors:
    """Add a column of ones, for a constant."""
    from scipy.sparse import hstack, issparse

    ones = np.ones((vectors.shape[0], 1))
    if issparse(vectors):
        return hstack([vectors, ones], format="csr")
    return np.concatenate([vectors, ones], axis=1)


def flat(dense: NDArray[Any]) -> NDArray[Any]:
    """Return rows as vectors: images, too."""
    return dense.reshape(len(dense), -1)


def _rarity(words: Any) -> NDArray[np.float64]:
    """Return the weight of each word: the logarithm of one over the share of rows that have it."""
    rows = words.shape[0]
    share = np.bincount(words.indices[words.data != 0], minlength=words.shape[1]) / rows
    return np.maximum(-np.log(share + 0.5 / rows), 0.0)


def of_length_one(words: Any) -> Any:
    """Return sparse rows of length 1; rows without a number stay without."""
    from scipy.sparse import diags

    long = lengths(words)
    return (diags(1.0 / np.where(long > 0, long, 1.0)) @ words).tocsr()


def lengths(vectors: Vectors) -> NDArray[np.float64]:
    """Return the length of each row."""
    squares = vectors.multiply(vectors) if hasattr(vectors, "multiply") else vectors * vectors
    return np.sqrt(np.asarray(squares.sum(axis=1), dtype=np.float64).reshape(-1))
