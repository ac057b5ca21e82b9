"""The same partitions in the memory of a GPU: the rows that the compiled look-up finds."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.arms.partitions import (
    GROUPS,
    PARTITION,
    Partitions,
    Positions,
    group_count,
    unblocked,
)

_AT_ONCE = 2**27  # numbers held while points are looked up


class DevicePartitions:
    """Vectors in the order of their partitions, centres and the neighbour graph, on a device.

    `order` holds the row of each position: of the vectors the partitions were built from, or of
    `rows`, if those are some of more.
    """

    partition, near_groups = PARTITION, GROUPS

    def __init__(
        self,
        partitions: Partitions,
        device: torch.device,
        *,
        rows: NDArray[np.int64] | None = None,
        graph: Positions | None = None,
    ) -> None:
        dim = partitions.vectors.shape[1]
        order = partitions.order if rows is None else rows[partitions.order]
        groups = unblocked(partitions.groups, group_count(partitions.count), dim)
        near = np.empty((len(partitions), 0), np.int32) if graph is None else graph
        self.order = torch.from_numpy(order).to(device, torch.int64)
        centres = unblocked(partitions.centres, partitions.count, dim)
        self.centres = torch.from_numpy(centres).to(device)
        self.groups = torch.from_numpy(groups).to(device)
        self.vectors = torch.from_numpy(partitions.vectors).to(device)
        self.graph = torch.from_numpy(near).to(device)
        self.far = torch.from_numpy(partitions.far).to(device)

    def in_partitions(self, points: Float[Tensor, "Q D"], partitions: int) -> Int[Tensor, "Q K"]:
        """Return the rows in the nearest partitions of each point, then -1."""
        count, total = len(self.order), len(self.centres)
        near = self.nearest(points, min(partitions, total))
        first, last = near * count // total, (near + 1) * count // total
        positions = first[..., None] + torch.arange(PARTITION, device=near.device)
        rows = torch.where(
            positions < last[..., None], self.order[positions.clamp_max(count - 1)], -1
        )
        return rows.flatten(1)

    def nearest(self, points: Float[Tensor, "Q D"], partitions: int) -> Int[Tensor, "Q C"]:
        """Return the nearest partitions of each point, nearest first."""
        size = len(self.centres) // len(self.groups)
        is_flat = len(self.groups) == 1 or partitions > GROUPS * size
        held = len(self.centres) if is_flat else GROUPS * size * self.centres.shape[1]
        step = max(1, _AT_ONCE // held)
        if not is_flat:
            return torch.cat([self._among_groups(part, partitions) for part in points.split(step)])
        distances = (_distances(part, self.centres) for part in points.split(step))
        return torch.cat([one.topk(partitions, largest=False).indices for one in distances])

    def _among_groups(self, points: Float[Tensor, "Q D"], partitions: int) -> Int[Tensor, "Q C"]:
        size = len(self.centres) // len(self.groups)
        groups = _distances(points, self.groups).topk(GROUPS, largest=False).indices
        some = groups[..., None] * size + torch.arange(size, device=groups.device)  # (Q, G, S)
        some = some.flatten(1)
        distances = (self.centres[some] - points[:, None]).square().sum(-1)
        return some.gather(1, distances.topk(partitions, largest=False).indices)


def _distances(points: Float[Tensor, "Q D"], vectors: Float[Tensor, "C D"]) -> Tensor:
    """Return squared distances, less each point's own square: enough to compare."""
    return torch.addmm(vectors.square().sum(1), points, vectors.T, alpha=-2.0)
