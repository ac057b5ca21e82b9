"""The nearest neighbours of each vector, found by partitions: a graph for walks from arm to arm."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.partitions import (
    FAST,
    GROUPS,
    LANES,
    ZERO,
    Floats,
    Partitions,
    Positions,
    group_count,
    measured_size,
    nearest_partitions,
    partition_count,
)
from fastbandit.compiler.compiled import compiled
from fastbandit.cores import in_parts

NEIGHBOURS = 16
"""So many neighbours of an arm are known."""
_AROUND = 48
PASSES = 3


def neighbour_graph(partitions: Partitions, count: int = NEIGHBOURS) -> Positions:
    """Return the positions of the `count` nearest others of each, -1 if there are too few.

    Looks into the partitions around that of each vector, then among its neighbours'
    neighbours: nearly always the nearest.
    """
    near = np.full((len(partitions), count), -1, dtype=np.int32)
    vectors, centres, groups = partitions.vectors, partitions.centres, partitions.groups
    in_parts(partitions.count, partial(look_around, near, vectors, centres, groups))
    for _ in range(PASSES):
        old, near = near, np.empty_like(near)
        in_parts(len(partitions), partial(look_further, old, near, vectors))
    return near


@compiled()
def _insert(
    positions: Positions, smallest: Floats, held: int, position: int, number: np.float32
) -> int:
    """Insert a number into a sorted list, dropping the largest where it is full."""
    size = len(positions)
    slot = min(held, size - 1)
    while slot > 0 and smallest[slot - 1] > number:
        smallest[slot] = smallest[slot - 1]
        positions[slot] = positions[slot - 1]
        slot -= 1
    smallest[slot] = number
    positions[slot] = position
    return min(held + 1, size)


@compiled(fastmath=FAST)
def distance_between(vectors: Floats, one: int, two: int) -> np.float32:
    total = np.float32(0.0)
    for column in range(vectors.shape[1]):
        gap = vectors[one, column] - vectors[two, column]
        total += gap * gap
    return total


@compiled(fastmath=FAST)
def look_around(
    near: Positions,
    vectors: Floats,
    centres: NDArray[np.float32],
    groups: NDArray[np.float32],
    first_partition: int,
    last_partition: int,
) -> None:
    """Find neighbours for all that some partitions hold, in the partitions around each."""
    count = len(vectors)
    total = partition_count(count)
    partitions = np.empty(min(_AROUND, total), np.int32)
    near_groups = np.empty(min(2 * GROUPS, group_count(total)), np.int32)
    numbers = np.empty(measured_size(centres, len(partitions), len(near_groups)), np.float32)
    centre = np.empty(centres.shape[1], np.float32)
    distances = np.empty(near.shape[1], np.float32)
    for partition in range(first_partition, last_partition):
        for column in range(len(centre)):
            centre[column] = centres[partition // LANES, column, partition % LANES]
        nearest_partitions(centre, centres, groups, partitions, near_groups, numbers)
        for position in range((partition * count) // total, ((partition + 1) * count) // total):
            held, worst = ZERO, np.float32(np.inf)
            for other in partitions:
                for there in range((other * count) // total, ((other + 1) * count) // total):
                    distance = distance_between(vectors, position, there)
                    if distance < worst and there != position:
                        held = _insert(near[position], distances, held, there, distance)
                        if held == len(distances):
                            worst = distances[-1]


@compiled(fastmath=FAST)
def look_further(old: Positions, near: Positions, vectors: Floats, first: int, last: int) -> None:
    """Find nearer neighbours among the neighbours of the neighbours."""
    size = old.shape[1]
    table = 2
    while table < 2 * (size + 1) * (size + 1):
        table *= 2
    seen = np.empty(table, np.int32)
    distances = np.empty(size, np.float32)
    for position in range(first, last):
        seen[:] = -1
        is_new(seen, position)
        held, worst = ZERO, np.float32(np.inf)
        near[position, :] = -1
        for number in range(-1, size):
            middle = position if number < 0 else old[position, number]
            if middle < 0:
                break
            for there in old[middle]:
                if there < 0 or not is_new(seen, there):
                    continue
                distance = distance_between(vectors, position, there)
                if distance < worst:
                    held = _insert(near[position], distances, held, there, distance)
                    if held == size:
                        worst = distances[-1]


@compiled(allocates=False)
def is_new(seen: Positions, position: int) -> bool:
    """Note a position in a table of those seen (-1: free; a power of two long, half of it free)."""
    last = len(seen) - 1
    slot = (position * 40503) & last
    while seen[slot] >= 0:
        if seen[slot] == position:
            return False
        slot = (slot + 1) & last
    seen[slot] = position
    return True
