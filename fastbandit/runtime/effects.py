"""Compiled scores of arms by their own weights: what `fastbandit.reward.arm_effects` fits."""

from __future__ import annotations

import math

import numpy as np

from fastbandit.arms.partitions import FAST, Floats
from fastbandit.compiler.compiled import compiled
from fastbandit.noise.draws import normal_at

DRAWN, BOUNDED = 4, 5
"""What makes a score: a draw from each arm's own posterior, or a bound. Beside those of `fold`."""
_ARMS = 5  # the stream of `fastbandit.noise.philox`


@compiled(fastmath=FAST)
def shared_part(inputs: Floats, shared: Floats) -> np.float32:
    """Return what all arms have in common."""
    total = np.float32(0.0)
    for column in range(len(inputs)):
        total += inputs[column] * shared[column]
    return total


@compiled(fastmath=FAST)
def own_part(
    inputs: Floats,
    prior: Floats,
    means: Floats,
    deviations: Floats,
    row: int,
    seed: np.uint64,
    kind: int,
    scale: np.float32,
) -> np.float32:
    """Return an arm's own part; an arm that came later has the prior's."""
    mean, variance = np.float32(0.0), np.float32(0.0)
    if row < len(means):
        for column in range(len(inputs)):
            wide = inputs[column] * deviations[row, column]
            mean += inputs[column] * means[row, column]
            variance += wide * wide
    else:
        for column in range(len(inputs)):
            wide = inputs[column] * prior[column]
            variance += wide * wide
    if scale == 0:
        return mean
    width = scale * np.float32(math.sqrt(variance))
    return mean + width if kind == BOUNDED else mean + width * normal_at(seed, row, _ARMS)
