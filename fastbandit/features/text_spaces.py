"""Spaces of texts: the directions in which words go together, as bytes that a schema holds.

Latent semantic analysis (Deerwester et al., 1990) of words in `BUCKETS`, weighted by how rare they
are: the principal directions of texts of length 1.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from zlib import compress, decompress

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SettingError
from fastbandit.features.hashing import BUCKETS, bytes_of, list_tokens
from fastbandit.types import Floats

FEWEST = 100
"""Fewer texts with words tell nothing of what goes together."""
_MOST = 2_000_000  # characters that are looked at, of texts evenly spaced
_ITERATIONS, _SPARE, _SEED = 6, 8, 17
_HIGHEST = 127


def fit_space(texts: Sequence[str], weights: Floats, dim: int) -> str:
    """Return the space of texts, words weighing so much; an empty one where texts are few."""
    step = 1 + sum(map(len, texts)) // _MOST
    found = _weighed_words(texts[::step], weights)
    if found.count < max(FEWEST, dim):
        return ""
    basis = np.linalg.qr(np.random.default_rng(_SEED).standard_normal((BUCKETS, dim + _SPARE)))[0]
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(found.to_buckets(found.to_texts(basis)))[0]
    seen = found.to_texts(basis)
    _, axes = np.linalg.eigh(seen.T @ seen)
    directions = basis @ axes[:, ::-1][:, :dim]
    is_seen = np.bincount(found.buckets, minlength=BUCKETS) > 0
    usual = float(np.abs(directions[is_seen]).mean())
    new = np.flatnonzero(~is_seen)  # words that come later tell texts apart, as hashed ones do
    directions[new] = 0.0
    directions[new, new % dim] = np.where(new // dim % 2, usual, -usual)
    return _written(np.rint(directions * (_HIGHEST / np.abs(directions).max())).astype(np.int8))


def space_array(written: str, dim: int) -> NDArray[np.int8]:
    """Return where the words of each bucket point, (buckets, dim); no rows for an empty space."""
    if not written:
        return np.zeros((0, dim), np.int8)
    try:
        found = np.frombuffer(decompress(b64decode(written, validate=True)), np.int8)
        return found.reshape(BUCKETS, dim)
    except Exception as error:
        raise SettingError(
            f"The space of a text needs {BUCKETS} x {dim} bytes, packed as a schema writes them: "
            f"got {written[:20]!r}… ({error}). Infer the schema anew, or leave the space out."
        ) from error


def _written(directions: NDArray[np.int8]) -> str:
    return b64encode(compress(directions.tobytes(), 9)).decode("ascii")


class _Words:
    """The words of texts as a sparse matrix of texts and buckets, each text of length 1."""

    def __init__(self, rows: NDArray[np.int64], buckets: NDArray[np.int64], values: Floats) -> None:
        self.rows, self.buckets, self.values = rows, buckets, values
        self.count = int(rows[-1]) + 1 if len(rows) else 0
        self._by_bucket = np.argsort(buckets, kind="stable")

    def to_texts(self, basis: Floats) -> Floats:
        """Multiply the matrix with (buckets, k): (texts, k)."""
        return _summed(basis[self.buckets] * self.values[:, None], self.rows, self.count)

    def to_buckets(self, seen: Floats) -> Floats:
        """Multiply the transpose with (texts, k): (buckets, k)."""
        order = self._by_bucket
        each = seen[self.rows[order]] * self.values[order, None]
        return _summed(each, self.buckets[order], BUCKETS)


def _weighed_words(texts: Sequence[str], weights: Floats) -> _Words:
    data = bytes_of(texts)
    rows, codes = np.empty((2, len(data) // 2 + 1), dtype=np.int64)
    size = list_tokens(data, rows, codes)
    named, rows = np.unique(rows[:size], return_inverse=True)  # texts that have words
    keys, places, times = np.unique(
        rows * BUCKETS + codes[:size] % BUCKETS, return_index=True, return_counts=True
    )
    rows, buckets, values = keys // BUCKETS, keys % BUCKETS, weights[codes[places]] * times
    lengths = np.sqrt(np.bincount(rows, weights=values**2, minlength=len(named)))
    return _Words(rows, buckets, values / np.maximum(lengths, 1e-9)[rows])


def _summed(each: Floats, groups: NDArray[np.int64], count: int) -> Floats:
    """Return the sums of rows whose groups stand in order: (count, columns)."""
    found = np.zeros((count, each.shape[1]))
    if len(each):
        firsts = np.flatnonzero(np.r_[True, np.diff(groups) > 0])
        found[groups[firsts]] = np.add.reduceat(each, firsts, axis=0)
    return found
