"""Spaces of texts: where words lie that go together, as bytes that a schema holds.

Correspondence analysis (Benzécri, 1973) of texts and words in `BUCKETS`: words that stand in the
same texts lie together, common ones in the middle. Few words count as if all were seen a little.
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
_SMOOTH = 5.0  # so often each word was seen besides: a rare one does not lie far out by chance
_FAR = 8.0  # no word lies further out than so many times what is usual
_HIGHEST = 127


def fit_space(texts: Sequence[str], dim: int) -> str:
    """Return the space of texts; an empty one where they are few."""
    step = 1 + sum(map(len, texts)) // _MOST
    words = _words(texts[::step])
    if words.count < max(FEWEST, dim):
        return ""
    # Subspace iteration; the first direction is how common words are, which says nothing.
    start = np.random.default_rng(_SEED).standard_normal((BUCKETS, 1 + dim + _SPARE))
    basis = np.linalg.qr(start)[0]
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(words.to_buckets(words.to_texts(basis)))[0]
    seen = words.to_texts(basis)
    lengths, axes = np.linalg.eigh(seen.T @ seen)
    order = slice(-2, -2 - dim, -1)
    places = basis @ axes[:, order] * np.sqrt(np.maximum(lengths[order], 0.0))
    places /= np.sqrt(words.totals)[:, None]
    is_seen = words.totals > _SMOOTH
    usual = np.sqrt(np.average(np.square(places), axis=0, weights=words.totals * is_seen).mean())
    new = np.flatnonzero(~is_seen)  # words that come later tell texts apart, as hashed ones do
    places[new] = 0.0
    places[new, new % dim] = np.where(new // dim % 2, usual, -usual)
    scaled = np.clip(places / (_FAR * max(usual, 1e-12)), -1.0, 1.0)
    return _written(np.rint(scaled * _HIGHEST).astype(np.int8))


def space_array(written: str, dim: int) -> NDArray[np.int8]:
    """Return where the words of each bucket lie, (buckets, dim); no rows for an empty space."""
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
    """How often words of buckets stand in texts, divided by the roots of both sums: sparse."""

    def __init__(self, rows: NDArray[np.int64], buckets: NDArray[np.int64], times: Floats) -> None:
        self.rows, self.buckets = rows, buckets
        self.count = int(rows[-1]) + 1 if len(rows) else 0
        self.totals = np.bincount(buckets, weights=times, minlength=BUCKETS) + _SMOOTH
        sums = np.bincount(rows, weights=times, minlength=self.count)
        self._values = times / np.sqrt(sums[rows] * self.totals[buckets])
        self._by_bucket = np.argsort(buckets, kind="stable")

    def to_texts(self, basis: Floats) -> Floats:
        """Multiply the matrix with (buckets, k): (texts, k)."""
        return _summed(basis[self.buckets] * self._values[:, None], self.rows, self.count)

    def to_buckets(self, seen: Floats) -> Floats:
        """Multiply the transpose with (texts, k): (buckets, k)."""
        order = self._by_bucket
        each = seen[self.rows[order]] * self._values[order, None]
        return _summed(each, self.buckets[order], BUCKETS)


def _words(texts: Sequence[str]) -> _Words:
    data = bytes_of(texts)
    rows, codes = np.empty((2, len(data) // 2 + 1), dtype=np.int64)
    size = list_tokens(data, rows, codes)
    rows = np.unique(rows[:size], return_inverse=True)[1]  # those of texts that have words
    keys, times = np.unique(rows * BUCKETS + codes[:size] % BUCKETS, return_counts=True)
    return _Words(keys // BUCKETS, keys % BUCKETS, times.astype(np.float64))


def _summed(each: Floats, groups: NDArray[np.int64], count: int) -> Floats:
    """Return the sums of rows whose groups stand in order: (count, columns)."""
    found = np.zeros((count, each.shape[1]))
    if len(each):
        firsts = np.flatnonzero(np.r_[True, np.diff(groups) > 0])
        found[groups[firsts]] = np.add.reduceat(each, firsts, axis=0)
    return found
