"""The largest inner products with a query, found without computing them all.

Bachrach et al., "Speeding up the Xbox recommender system using a Euclidean transformation for
inner-product spaces" (2014): with one more coordinate all vectors are equally long, and the
largest inner product becomes the nearest vector, which faiss's inverted lists find. Jun et al.
(2017) hash instead; both look at a small part of the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import SettingError
from lab.baselines.faiss_index import FaissIndex, import_faiss

Floats = NDArray[np.float64]

_EXACT_BELOW = 4096
_LIMIT = 2 * 2**30  # bytes


def is_worth_an_index(vectors: int) -> bool:
    """Return whether so many vectors are searched through an index, or better scanned."""
    return vectors >= _EXACT_BELOW and find_spec("faiss") is not None


class InnerProductIndex:
    """Vectors in inverted lists, built by one thread from a fixed seed: the same every time."""

    def __init__(self, vectors: Floats) -> None:
        squares = np.square(vectors).sum(axis=1)
        self._radius = float(np.sqrt(squares.max()))
        height = np.sqrt(np.maximum(squares.max() - squares, 0.0))
        with _one_thread():
            self._index = FaissIndex(np.column_stack([vectors, height]).astype(np.float32))

    def __len__(self) -> int:
        return len(self._index)

    def search(
        self, queries: Floats, count: int, *, eligible: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return about the `count` best rows of each query, -1 where fewer are eligible.

        `eligible` is shared by all queries. A query's length does not change which rows are
        best, so all are made as long as the vectors: they look into the partitions around them.
        """
        lengths = np.linalg.norm(queries, axis=1, keepdims=True)
        scaled = queries * (self._radius / np.maximum(lengths, 1e-300))
        points = np.pad(scaled, ((0, 0), (0, 1))).astype(np.float32)
        return self._index.search(points, count, eligible=eligible)


def check_index_memory(vectors: int, dim: int, *, advice: str) -> None:
    """Raise where vectors of this size do not fit into memory."""
    needed = 8 * vectors * dim
    if needed > _LIMIT:
        raise SettingError(
            f"An index needs to fit into {_LIMIT / 2**30:.0f} GiB: got {vectors} arms of {dim} "
            f"numbers of 8 bytes, {needed / 2**30:.1f} GiB. {advice}."
        )


@contextmanager
def _one_thread() -> Iterator[None]:
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
