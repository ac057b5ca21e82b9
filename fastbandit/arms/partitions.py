"""Vectors in equal partitions, side by side in memory: look-ups in a few microseconds.

The vectors are halved again and again along their widest side, so that all partitions hold about
as many, and neighbours in space are neighbours in memory. A look-up measures the distances to
the partitions' centres (to those of the nearest groups of them, where there are many); what the
nearest partitions hold is near. Written by hand because it is called from compiled code, holds the
only copy of the vectors, and finds the same rows on every machine; `python -m lab bench index`
compares it with the inverted lists of faiss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.compiler.compiled import compiled
from fastbandit.cores import in_parts

PARTITION = 32
"""A partition holds at most so many vectors, and at least half of that (if there are so many)."""
LANES = 16
WIDTH = 8
_ONE_GROUP = 256  # so few partitions are not worth a second level
GROUPS = 4
FAR = 64
"""So many vectors are known to be farthest from the middle."""
_FEW = 8
ZERO: Any = np.int64(0)
"""Where counts start: a plain 0 is a type of its own to the compiler, which compiles it apart."""
FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums in any order; infinities stay

Floats = NDArray[np.float32]
Positions = NDArray[np.int32]


@dataclass(frozen=True)
class Partitions:
    """Vectors in the order of their partitions, and the centres to find them by.

    A *position* is one in this order; `order` holds the row of each. `centres` and
    `groups` come in blocks of 16, column by column, as the processor likes to read them:
    columns are filled up to a multiple of 8 with zeros, empty lanes lie at infinity. `far` are
    the positions farthest from the middle, farthest first: a centre says little of them.
    """

    order: Positions
    vectors: Floats
    centres: NDArray[np.float32]
    groups: NDArray[np.float32]
    far: Positions

    def __len__(self) -> int:
        return len(self.order)

    @property
    def count(self) -> int:
        return partition_count(len(self.order))

    def in_partitions(self, points: Floats, partitions: int) -> NDArray[np.int64]:
        """Return the rows in the nearest partitions of each point: (n, partitions x 32), or -1."""
        near = np.empty((len(points), min(partitions, self.count)), dtype=np.int32)
        _nearest_partitions_of(padded(points), self.centres, self.groups, near)
        count, total = len(self), self.count
        first = near.astype(np.int64) * count // total
        last = (near.astype(np.int64) + 1) * count // total
        positions = first[..., None] + np.arange(PARTITION)
        rows = np.where(
            positions < last[..., None], self.order[np.minimum(positions, count - 1)], -1
        )
        return rows.reshape(len(points), -1)


def build_partitions(vectors: Floats) -> Partitions:
    """Put vectors into partitions; the same vectors give the same partitions everywhere."""
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    order = np.arange(len(vectors), dtype=np.int32)
    for level in range(partition_depth(len(vectors))):
        in_parts(2**level, partial(halve, vectors, order, level))
    return partitions_in(vectors, order)


def partitions_in(vectors: Floats, order: Positions) -> Partitions:
    """Return the partitions of vectors that were halved into an order, and sort it within each."""
    count = 2 ** partition_depth(len(vectors))
    _sort_partitions(order, count)
    ordered = vectors[order]
    centres = _centres(ordered, count)
    groups = centres.reshape(group_count(count), -1, vectors.shape[1]).mean(1, dtype=np.float64)
    blocks = _blocks(centres), _blocks(groups.astype(np.float32))
    return Partitions(order, ordered, *blocks, far_positions(ordered))


def far_positions(vectors: Floats) -> Positions:
    """Return the positions farthest from the middle, farthest first."""
    gaps = np.square(vectors - vectors.mean(0, dtype=np.float64).astype(np.float32)).sum(1)
    size = min(FAR, len(gaps))
    positions = np.argpartition(-gaps, size - 1)[:size]
    return positions[np.lexsort((positions, -gaps[positions]))].astype(np.int32)


def partition_depth(count: int) -> int:
    """Return how often so many vectors are halved."""
    return max(0, math.ceil(math.log2(max(1, count) / PARTITION)))


@compiled(allocates=False)
def partition_count(count: int) -> int:
    """Return how many partitions so many vectors fill: a power of two."""
    partitions = 1
    while partitions * PARTITION < count:
        partitions *= 2
    return partitions


@compiled(allocates=False)
def group_count(partitions: int) -> int:
    """Return how many groups so many partitions form: about their root, a power of two as well."""
    groups = 1
    if partitions > _ONE_GROUP:
        while groups * groups * 4 <= partitions:
            groups *= 2
    return groups


@compiled(allocates=False)
def padded_size(dim: int) -> int:
    return -(-dim // WIDTH) * WIDTH


def padded(points: Floats) -> Floats:
    """Fill the columns of points up with zeros, to a multiple of 8."""
    full = np.zeros((len(points), padded_size(points.shape[1])), dtype=np.float32)
    full[:, : points.shape[1]] = points
    return full


# -- building


@compiled()
def halve(vectors: Floats, order: Positions, level: int, first_node: int, last_node: int) -> None:
    """Halve some nodes of a level along their widest sides."""
    count, dim = vectors.shape
    for node in range(first_node, last_node):
        first, last = (node * count) >> level, ((node + 1) * count) >> level
        lowest, highest = vectors[order[first]].copy(), vectors[order[first]].copy()
        for position in range(first + 1, last):
            row = order[position]
            for column in range(dim):
                number = vectors[row, column]
                lowest[column] = min(lowest[column], number)
                highest[column] = max(highest[column], number)
        widest = 0
        for column in range(1, dim):
            if highest[column] - lowest[column] > highest[widest] - lowest[widest]:
                widest = column
        numbers = np.empty(last - first, dtype=np.float32)
        for position in range(first, last):
            numbers[position - first] = vectors[order[position], widest]
        middle = ((2 * node + 1) * count) >> (level + 1)
        _divide(numbers, order[first:last], middle - first)


@compiled()
def _divide(numbers: Floats, rows: Positions, middle: int) -> None:
    """Bring the smallest numbers before `middle` (of equal ones: the smaller rows)."""
    low, high = 0, len(rows) - 1
    while low < high:
        pivot, row = numbers[(low + high) >> 1], rows[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while numbers[left] < pivot or (numbers[left] == pivot and rows[left] < row):
                left += 1
            while numbers[right] > pivot or (numbers[right] == pivot and rows[right] > row):
                right -= 1
            if left <= right:
                numbers[left], numbers[right] = numbers[right], numbers[left]
                rows[left], rows[right] = rows[right], rows[left]
                left += 1
                right -= 1
        if middle <= right:
            high = right
        elif middle >= left:
            low = left
        else:
            break


@compiled()
def _sort_partitions(order: Positions, partitions: int) -> None:
    for partition in range(partitions):
        order[
            (partition * len(order)) // partitions : ((partition + 1) * len(order)) // partitions
        ].sort()


@compiled()
def _centres(vectors: Floats, partitions: int) -> Floats:
    count, dim = vectors.shape
    centres = np.zeros((partitions, dim), dtype=np.float32)
    for partition in range(partitions):
        first, last = (partition * count) // partitions, ((partition + 1) * count) // partitions
        for column in range(dim):
            total = 0.0
            for position in range(first, last):
                total += vectors[position, column]
            centres[partition, column] = total / max(1, last - first)
    return centres


def _blocks(centres: Floats) -> NDArray[np.float32]:
    """Turn (n, D) into blocks (n / 16, columns, 16), the rest of the last infinitely far away."""
    blocks = -(-len(centres) // LANES)
    full = np.zeros((blocks * LANES, padded_size(centres.shape[1])), dtype=np.float32)
    full[len(centres) :] = np.inf
    full[: len(centres), : centres.shape[1]] = centres
    return np.ascontiguousarray(full.reshape(blocks, LANES, -1).transpose(0, 2, 1))


def unblocked(blocks: NDArray[np.float32], count: int, dim: int) -> Floats:
    return np.ascontiguousarray(
        blocks.transpose(0, 2, 1).reshape(-1, blocks.shape[1])[:count, :dim]
    )


# -- looking up


@compiled()
def _nearest_partitions_of(
    points: Floats, centres: NDArray[np.float32], groups: NDArray[np.float32], near: Positions
) -> None:
    near_groups = np.empty(GROUPS, np.int32)
    numbers = np.empty(measured_size(centres, near.shape[1], GROUPS), np.float32)
    for number in range(len(points)):
        nearest_partitions(points[number], centres, groups, near[number], near_groups, numbers)


@compiled(allocates=False)
def measured_size(centres: NDArray[np.float32], wanted: int, near: int) -> int:
    """Return how many distances `nearest_partitions` holds: those of all partitions or groups."""
    partitions = len(centres) * LANES
    total = group_count(partitions)
    if total == 1 or wanted > near * (partitions // total):
        return partitions
    return max(near * (partitions // total), -(-total // LANES) * LANES)


@compiled(allocates=False)
def nearest_partitions(
    point: Floats,
    centres: NDArray[np.float32],
    groups: NDArray[np.float32],
    partitions: Positions,
    near_groups: Positions,
    numbers: Floats,
) -> None:
    """Fill `partitions` with the nearest, nearest first; the arrays after it are scratch.

    Looks into the nearest groups, as many as there is scratch for, or into all where more
    partitions are wanted than those hold (see `measured_size`).
    """
    total = group_count(len(centres) * LANES)
    size = len(centres) // total  # blocks of centres in a group
    if total == 1 or len(partitions) > len(near_groups) * size * LANES:
        _measure(centres, ZERO, len(centres), point, numbers)
        take_smallest(numbers[: len(centres) * LANES], partitions)
        return
    _measure(groups, ZERO, len(groups), point, numbers)
    take_smallest(numbers[: len(groups) * LANES], near_groups)
    for number in range(len(near_groups)):
        group = near_groups[number]
        there = numbers[number * size * LANES :]
        _measure(centres, group * size, (group + 1) * size, point, there)
    take_smallest(numbers[: len(near_groups) * size * LANES], partitions)
    for number in range(len(partitions)):
        group, partition = divmod(partitions[number], size * LANES)
        partitions[number] = near_groups[group] * size * LANES + partition


@compiled(fastmath=FAST, allocates=False)
def _measure(
    blocks: NDArray[np.float32], first: int, last: int, point: Floats, numbers: Floats
) -> None:
    """Return the squared distances to the centres of some blocks."""
    for block in range(first, last):
        slot = (block - first) * LANES
        for column in range(0, len(point), WIDTH):
            for lane in range(LANES):
                total = numbers[slot + lane] if column else np.float32(0.0)
                for beside in range(column, column + WIDTH):
                    gap = blocks[block, beside, lane] - point[beside]
                    total += gap * gap
                numbers[slot + lane] = total


@compiled()
def _ascending(numbers: Floats) -> Positions:
    """Return the positions of rising numbers, equal ones in their order: a merge sort, bottom up.

    numpy's takes the compiler five times as long.
    """
    size = len(numbers)
    order, merged = np.arange(size).astype(np.int32), np.empty(size, np.int32)
    width = 1
    while width < size:
        for first in range(0, size, 2 * width):
            middle, last = min(first + width, size), min(first + 2 * width, size)
            left, right = first, middle
            for slot in range(first, last):
                if left < middle and (
                    right >= last or not numbers[order[right]] < numbers[order[left]]
                ):
                    merged[slot] = order[left]
                    left += 1
                else:
                    merged[slot] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@compiled()
def take_smallest(numbers: Floats, positions: Positions) -> None:
    """Return the positions of the smallest numbers, smallest first; the numbers are used up."""
    if len(positions) > _FEW:
        order = _ascending(numbers)
        for slot in range(len(positions)):
            positions[slot] = order[slot]
        return
    for slot in range(len(positions)):
        least, last = smallest_of(numbers), len(numbers) - 1
        position = last
        for number in range(len(numbers)):  # all of them, which several are looked at at once for
            position = min(position, number if numbers[number] == least else last)
        positions[slot] = position
        numbers[position] = np.inf


@compiled(allocates=False)
def smallest_of(numbers: Floats) -> np.float32:
    """Return the smallest of some numbers from 0 on."""
    bits = numbers.view(np.int32)  # ordered as they are; whole numbers are compared many at a time
    least = bits[0]
    for number in range(len(bits)):
        least = min(least, bits[number])
    return np.int32(least).view(np.float32)
