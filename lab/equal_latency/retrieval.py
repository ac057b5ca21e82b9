"""The largest dot product among arms by faiss: a graph (HNSW), or inverted lists (IVF)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.baselines.faiss_index import default_probes, import_faiss

Floats = NDArray[np.float32]

LINKS, BREADTH, BUILD_BREADTH = 32, 128, 40  # of a graph; those of `lab.benchmarks.peer_libraries`
KINDS = ("HNSW", "IVF")


class DotProducts:
    """Vectors of arms in an index of faiss, built by one thread."""

    def __init__(self, vectors: Floats, *, kind: str) -> None:
        faiss = import_faiss()
        faiss.omp_set_num_threads(1)
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self._index = (_graph if kind == "HNSW" else _lists)(faiss, vectors)
        self._index.add(vectors)
        self.bytes_per_arm = faiss.serialize_index(self._index).nbytes / len(vectors)

    def best(self, queries: Floats) -> NDArray[np.int64]:
        """Return the row with the largest dot product with each query, as far as it is found."""
        return np.asarray(self._index.search(np.ascontiguousarray(queries), 1)[1][:, 0])


def _graph(faiss: Any, vectors: Floats) -> Any:
    index = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILD_BREADTH, BREADTH
    return index


def _lists(faiss: Any, vectors: Floats) -> Any:
    """Return trained lists: as many, and as many looked into, as `FaissIndex` has."""
    count, dim = vectors.shape
    partitions = min(count, int(2 * math.sqrt(count)))
    metric = faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, partitions, metric)
    index.cp.niter, index.cp.seed, index.cp.max_points_per_centroid = 8, 1234, 64
    index.cp.min_points_per_centroid = 1
    index.train(vectors)
    index.nprobe = min(partitions, default_probes(dim))
    return index
