"""What is worked out range by range is what is worked out at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fastbandit.arms.neighbour_graph import neighbour_graph
from fastbandit.arms.partition_ranges import (
    RangeWork,
    Rows,
    build_partitions_in_ranges,
    graph_in_ranges,
    writable,
)
from fastbandit.arms.partitions import build_partitions


@dataclass(frozen=True)
class InTurn:
    """Works out ranges one after the other."""

    parts: int

    def __call__(self, work: RangeWork, count: int) -> Rows:
        ends = [count * part // self.parts for part in range(self.parts + 1)]
        return np.concatenate([work(*ends[part : part + 2]) for part in range(self.parts)])


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 40, 1_003])
def test_partitions_are_the_same_in_any_number_of_parts(count: int, parts: int) -> None:
    vectors = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
    wanted = build_partitions(vectors)
    partitions = build_partitions_in_ranges(vectors, InTurn(parts))
    near = graph_in_ranges(partitions, 16, InTurn(parts))

    for name in ("order", "vectors", "centres", "groups", "far"):
        assert np.array_equal(getattr(partitions, name), getattr(wanted, name)), name
    assert np.array_equal(near, neighbour_graph(wanted, 16))


def test_what_may_not_be_written_to_is_copied() -> None:
    array = np.arange(3)
    array.setflags(write=False)

    assert writable(array).flags.writeable
    assert writable(array.copy()) is not array
