"""Nearest vectors to a point, by inverted lists of faiss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.packages import needed


class FaissIndex:
    """Inverted lists: looks into the few partitions nearest to a point.

    Partitions grow with the square root of the number of vectors, probes with the dimension.
    `probes` fixes them.
    """

    def __init__(self, vectors: NDArray[np.float32], *, probes: int | None = None) -> None:
        faiss = import_faiss()
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        count, dim = vectors.shape
        partitions = min(count, int(2 * math.sqrt(count)))
        self._count = count
        self._partitions = partitions
        self._probes = min(partitions, probes or default_probes(dim))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim), dim, partitions)
        index.cp.niter, index.cp.seed, index.cp.max_points_per_centroid = 8, 1234, 64
        index.cp.min_points_per_centroid = 1  # a small catalogue is no reason to warn
        index.train(vectors)
        index.add(vectors)
        index.nprobe = self._probes
        self._index = index

    def __len__(self) -> int:
        return self._count

    def search(
        self, points: NDArray[np.float32], count: int, *, eligible: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return the nearest positions; look into more partitions until there are enough."""
        points = np.ascontiguousarray(points, dtype=np.float32)
        eligible_count = len(self) if eligible is None else int(eligible.sum())
        wanted = min(count, eligible_count)
        probes = min(self._partitions, self._probes * len(self) // max(1, eligible_count))
        while True:
            settings = self._settings(eligible, probes)
            found = np.asarray(self._index.search(points, count, params=settings)[1], np.int64)
            if probes == self._partitions or (found[:, :wanted] >= 0).all():
                return found
            probes = min(self._partitions, 4 * probes)

    def _settings(self, eligible: NDArray[np.bool_] | None, probes: int) -> Any:
        faiss = import_faiss()
        if eligible is None:
            return faiss.SearchParametersIVF(nprobe=probes)
        bits = np.packbits(eligible, bitorder="little")
        return faiss.SearchParametersIVF(sel=faiss.IDSelectorBitmap(bits), nprobe=probes)


def import_faiss() -> Any:
    """Import faiss, or say what to install."""
    return needed("faiss", what="An index of inverted lists")


def default_probes(dim: int) -> int:
    """Return how many partitions to look into: enough for about .99 of the true neighbours."""
    return int(16 * max(1.0, dim / 8))
