"""Clocks of one decision, and of building an index."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.neighbour_graph import neighbour_graph
from fastbandit.arms.partitions import build_partitions


def decide_for(
    decide: Callable[[int], object],
    seconds: float,
    *,
    first: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Time decisions one by one, from number `first`, until `seconds` are over: at least one."""
    taken: list[float] = []
    started = before = clock()
    while not taken or before - started < seconds:
        decide(first + len(taken))
        after = clock()
        taken.append(after - before)
        before = after
    return taken


def build_seconds(vectors: NDArray[np.float32]) -> float:
    """Return how long partitions and neighbour graph take, on all cores."""
    started = time.perf_counter()
    neighbour_graph(build_partitions(vectors))
    return time.perf_counter() - started
