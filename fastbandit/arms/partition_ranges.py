"""Partitions and their neighbour graph, worked out range by range, each wherever there is room.

The arrays are those of `build_partitions` and `neighbour_graph`, to the last bit: within a pass
no range depends on another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.neighbour_graph import NEIGHBOURS, PASSES, look_around, look_further
from fastbandit.arms.partitions import (
    Floats,
    Partitions,
    Positions,
    halve,
    partition_depth,
    partitions_in,
)
from fastbandit.cores import in_parts

if TYPE_CHECKING:
    from fastbandit.arms.lookup import Lookup

_EACH = 4  # nodes of the tree for each part, so that parts are about as large

Rows: TypeAlias = NDArray[Any]
RangeWork: TypeAlias = Callable[[int, int], Rows]
"""Called with the beginning and end of a range; returns an array of rows for it."""


@runtime_checkable
class Spread(Protocol):
    """Works out ranges in so many parts."""

    @property
    def parts(self) -> int: ...

    def __call__(self, work: RangeWork, count: int) -> Rows:
        """Do work on ranges that make up range(count), and put what they give together."""
        ...


def index_in_ranges(lookup: Lookup, spread: Spread) -> None:
    """Build the partitions and the neighbour graph of a look-up."""
    vectors = lookup.vectors.cpu().numpy()[lookup.rows]
    lookup.partitions = build_partitions_in_ranges(vectors, spread)
    lookup.near = graph_in_ranges(lookup.partitions, NEIGHBOURS, spread)


def build_partitions_in_ranges(vectors: Floats, spread: Spread) -> Partitions:
    """Put vectors into partitions: the first halvings here, those within the halves in parts."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    top = min(partition_depth(len(vectors)), (_EACH * spread.parts - 1).bit_length())
    order = np.arange(len(vectors), dtype=np.int32)
    for level in range(top):
        in_parts(2**level, partial(halve, vectors, order, level))
    return partitions_in(vectors, spread(partial(_halved, vectors, order, top), 2**top))


def graph_in_ranges(partitions: Partitions, count: int, spread: Spread) -> Positions:
    """Return the positions of the `count` nearest others of each, -1 if there are too few."""
    near = spread(partial(_looked_around, partitions, count), partitions.count)
    for _ in range(PASSES):
        near = spread(partial(_looked_further, partitions.vectors, near), len(partitions))
    return near


def _halved(vectors: Floats, order: Positions, top: int, first: int, last: int) -> Rows:
    """Halve nodes of a level down to partitions; return the order of what they hold."""
    vectors, order, count = writable(vectors), order.copy(), len(order)
    for level in range(top, partition_depth(count)):
        deeper = level - top
        halve(vectors, order, level, first << deeper, last << deeper)
    return order[first * count >> top : last * count >> top]


def _looked_around(partitions: Partitions, wanted: int, first: int, last: int) -> Rows:
    """Find neighbours of what some partitions hold in the partitions around."""
    count, total = len(partitions), partitions.count
    near = np.full((count, wanted), -1, dtype=np.int32)
    vectors, centres = writable(partitions.vectors), writable(partitions.centres)
    look_around(near, vectors, centres, writable(partitions.groups), first, last)
    return near[first * count // total : last * count // total]


def _looked_further(vectors: Floats, old: Positions, first: int, last: int) -> Rows:
    """Find nearer neighbours of some positions among the neighbours of their neighbours."""
    near = np.empty_like(old)
    look_further(writable(old), near, writable(vectors), first, last)
    return near[first:last]


def writable(array: Rows) -> Rows:
    """Return an array that may be written to: compiled code is compiled for no other."""
    return array if array.flags.writeable else array.copy()
