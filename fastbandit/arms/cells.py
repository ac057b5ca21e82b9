"""Nearest vectors to a point, on a GPU: equal cells, of which the nearest few are looked into.

The vectors are halved again and again along their widest side, so that all cells hold equally
many and lie side by side in one array. A look-up is then three dense operations: distances to
the cells' centres, distances to what the nearest cells hold, the smallest of those.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

_CELL = 64
_PROBES_PER_COLUMN = 2
_AT_ONCE = 2**28  # numbers held while points are looked up
_FAR = float("inf")


class CellIndex:
    """Balanced cells in the memory of the device that holds the vectors."""

    def __init__(self, vectors: Float[Tensor, "N D"], *, probes: int | None = None) -> None:
        self._all = vectors
        count, dim = vectors.shape
        depth = max(0, round(math.log2(max(1, count / _CELL))))
        self._rows = _split(vectors, depth)  # (cells, size), -1 where a place is empty
        filled = self._rows >= 0
        held = vectors[self._rows.clamp_min(0)]  # (cells, size, D)
        self._held = torch.where(filled[..., None], held, _FAR)
        sums = torch.where(filled[..., None], held, 0.0).sum(1)
        self._centres = sums / filled.sum(1, keepdim=True).clamp_min(1)
        self._probes = min(len(self._rows), probes or _PROBES_PER_COLUMN * dim)

    def __len__(self) -> int:
        return len(self._all)

    def search(
        self,
        points: Float[Tensor, "Q D"],
        count: int,
        *,
        allowed: Bool[Tensor, " N"] | None = None,
    ) -> Int[Tensor, "Q K"]:
        """Give the `count` nearest positions to each point, -1 where there are fewer.

        With `allowed`, which all points share, the distance to every allowed vector is
        measured.
        """
        size = len(self) if allowed is not None else self._probes * self._held[0].numel()
        step = max(1, _AT_ONCE // max(size, len(self._centres)))
        parts = [
            self._find_in_cells(part, count)
            if allowed is None
            else self._find_among(part, count, allowed)
            for part in points.split(step)
        ]
        return torch.cat(parts)

    def _find_in_cells(self, points: Float[Tensor, "Q D"], count: int) -> Int[Tensor, "Q K"]:
        cells = _distances(points, self._centres).topk(self._probes, largest=False).indices
        held = self._held[cells].flatten(1, 2)  # (Q, probes x size, D)
        distances = (held - points[:, None]).square().sum(-1)
        return _nearest(distances, self._rows[cells].flatten(1), count)

    def _find_among(
        self, points: Float[Tensor, "Q D"], count: int, allowed: Bool[Tensor, " N"]
    ) -> Int[Tensor, "Q K"]:
        rows = allowed.nonzero()[:, 0]
        return _nearest(_distances(points, self._all[rows]), rows.expand(len(points), -1), count)


def _split(vectors: Float[Tensor, "N D"], depth: int) -> Int[Tensor, "C S"]:
    """Give the rows of 2 ** depth cells of equal size; empty places lie beyond all vectors."""
    cells = 2**depth
    size = -(-len(vectors) // cells)
    rows = torch.full((1, cells * size), -1, device=vectors.device)
    rows[0, : len(vectors)] = torch.arange(len(vectors), device=vectors.device)
    beyond = vectors.amax(0) + 1.0
    for _ in range(depth):
        held = torch.where(rows[..., None] >= 0, vectors[rows.clamp_min(0)], beyond)
        widest = held.var(1).argmax(1)  # (cells so far,)
        along = held.gather(2, widest[:, None, None].expand(-1, held.shape[1], 1))[..., 0]
        rows = rows.gather(1, along.argsort(dim=1, stable=True)).reshape(2 * len(rows), -1)
    return rows


def _distances(points: Float[Tensor, "Q D"], vectors: Float[Tensor, "C D"]) -> Tensor:
    """Give squared distances, less each point's own square: enough to compare."""
    return torch.addmm(vectors.square().sum(1), points, vectors.T, alpha=-2.0)


def _nearest(
    distances: Float[Tensor, "Q S"], rows: Int[Tensor, "Q S"], count: int
) -> Int[Tensor, "Q K"]:
    kept = min(count, distances.shape[1])
    closest, order = distances.topk(kept, dim=1, largest=False)
    found = torch.where(closest < _FAR, rows.gather(1, order), -1)
    return torch.nn.functional.pad(found, (0, count - kept), value=-1)
