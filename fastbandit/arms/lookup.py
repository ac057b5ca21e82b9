"""Arms near points and beside arms, found where the arms are: compiled, or on a GPU."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from fastbandit.arms.device_partitions import DevicePartitions
from fastbandit.arms.neighbour_graph import NEIGHBOURS, neighbour_graph
from fastbandit.arms.partitions import LANES, PARTITION, Partitions, Positions, build_partitions

_PROBES_PER_COLUMN = 4
_AT_ONCE = 2**22  # distances measured at a time


class Lookup:
    """An index of some rows of vectors, and their neighbour graph; both built when needed."""

    def __init__(self, vectors: Float[Tensor, "N D"], rows: NDArray[np.int64]) -> None:
        self.vectors, self.rows = vectors, rows

    @cached_property
    def partitions(self) -> Partitions:
        """The partitions, on the CPU; their rows are positions in `rows`."""
        return build_partitions(self.vectors[torch.from_numpy(self.rows)].cpu().numpy())

    @cached_property
    def near(self) -> Positions:
        """The positions beside each position of the partitions."""
        return neighbour_graph(self.partitions)

    @cached_property
    def graph(self) -> Int[Tensor, "N L"]:
        """The rows beside each row, -1 where there are too few."""
        near, there = self.near, self.rows[self.partitions.order]
        graph = np.full((len(self.vectors), NEIGHBOURS), -1, dtype=np.int32)
        graph[there] = np.where(near >= 0, there[near], -1)
        return torch.from_numpy(graph).to(self.vectors.device)

    def around(
        self,
        points: Float[Tensor, "B M D"],
        partitions: int,
        *,
        far: int = 0,
        eligible: Bool[Tensor, "b N"] | None,
    ) -> Int[Tensor, "B K"]:
        """Return the rows in the nearest partitions of each point, then -1.

        The fewer rows are eligible, the more partitions are looked into. So many of those farthest
        from the middle come along.
        """
        outermost = self._far[:far].expand(len(points), -1)
        if eligible is None:
            return torch.cat([self._in_partitions(points, partitions), outermost], dim=1)
        masks = eligible.expand(len(points), -1)
        found = [
            self._eligible_around(p[None], partitions, m)
            for p, m in zip(points, masks, strict=True)
        ]
        width = max(1, *(rows.shape[1] for rows in found))
        pad = torch.nn.functional.pad
        near = torch.cat([pad(rows, (0, width - rows.shape[1]), value=-1) for rows in found])
        outermost = torch.where(masks.gather(1, outermost), outermost, -1)
        return torch.cat([near, outermost], dim=1)

    def nearest(
        self, points: Float[Tensor, "B M D"], count: int, *, eligible: Bool[Tensor, "b N"] | None
    ) -> Int[Tensor, "B K"]:
        """Return the `count` nearest eligible rows to each point, nearest first, then -1."""
        if eligible is not None:
            masks = eligible.expand(len(points), -1)
            those = [self._there[mask[self._there]] for mask in masks]
            found = [  # every eligible row is measured: exact
                self._closest(p[:, None], rows.expand(len(p), -1), count)
                for p, rows in zip(points, those, strict=True)
            ]
            return torch.stack(found).flatten(1)
        wanted = max(_PROBES_PER_COLUMN * points.shape[2], -(-2 * count // PARTITION))
        flat = points.flatten(0, 1)[:, None]  # each point by itself
        step = max(1, _AT_ONCE // (wanted * PARTITION))
        parts = [self._closest(p, self._in_partitions(p, wanted), count) for p in flat.split(step)]
        return torch.cat(parts).reshape(len(points), -1)

    def _closest(
        self, points: Float[Tensor, "Q 1 D"], rows: Int[Tensor, "Q K"], count: int
    ) -> Int[Tensor, "Q k"]:
        gaps = (self.vectors[rows.clamp_min(0)] - points).square().sum(-1)
        gaps = gaps.masked_fill(rows < 0, float("inf"))
        size = min(count, rows.shape[1])
        order = gaps.topk(size, dim=1, largest=False).indices
        return torch.nn.functional.pad(rows.gather(1, order), (0, count - size), value=-1)

    def _eligible_around(
        self, points: Float[Tensor, "1 M D"], partitions: int, mask: Bool[Tensor, " N"]
    ) -> Int[Tensor, "1 K"]:
        eligible_count = int(mask.sum())
        least = min(eligible_count, partitions * LANES)
        wanted = partitions * max(1, len(self.rows) // max(1, eligible_count))
        while True:
            rows = self._in_partitions(points, wanted)
            rows = rows[(rows >= 0) & mask[rows.clamp_min(0)]].unique()[None]
            if wanted >= self.partitions.count or rows.shape[1] >= least:
                return rows
            wanted *= 4

    def _in_partitions(self, points: Float[Tensor, "B M D"], partitions: int) -> Int[Tensor, "B K"]:
        flat = points.flatten(0, 1)
        if points.device.type != "cpu":
            return self.device_index.in_partitions(flat, partitions).reshape(len(points), -1)
        found = torch.from_numpy(self.partitions.in_partitions(flat.numpy(), partitions))
        rows = torch.where(found >= 0, self._there[found.clamp_min(0)], -1)
        return rows.reshape(len(points), -1)

    @cached_property
    def device_index(self) -> DevicePartitions:
        return DevicePartitions(
            self.partitions, self.vectors.device, rows=self.rows, graph=self.near
        )

    @cached_property
    def _far(self) -> Int[Tensor, " F"]:
        far = self.partitions.order[self.partitions.far]
        return torch.from_numpy(self.rows[far]).to(self.vectors.device)

    @cached_property
    def _there(self) -> Int[Tensor, " n"]:
        return torch.from_numpy(self.rows).to(self.vectors.device)
