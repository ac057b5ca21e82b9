"""Compiled NeuralUCB: the bound itself, for the few arms that look best by a surrogate.

mean + width x sqrt(gᵀ Z⁻¹ g / m), where g is the gradient of the reward network at a context
and an arm: `fastbandit.reward.gradient_model`. Z⁻¹ is the transpose of `root`, a lower
triangle, times `root`; or `root` is a single row, its diagonal.
"""

from __future__ import annotations

import math

import numpy as np

from fastbandit.arms.partitions import FAST, Floats
from fastbandit.compiler.compiled import compiled

AT_ONCE = 4
"""So many gradients meet a row of the root while it is in registers."""


@compiled(fastmath=FAST)
def gradient_at(
    point: Floats,
    context: Floats,
    to_embedding: Floats,
    weights: Floats,
    biases: Floats,
    last: Floats,
    wide: Floats,
    has_product: bool,
    has_wide: bool,
    leak: np.float32,
    inputs: Floats,
    gradient: Floats,
) -> np.float32:
    """Return the gradient of one hidden layer's network at a point; answer its mean.

    `last` holds the weights of the units that predict, and their constant, at its end.
    """
    size, dim, width = len(context), len(to_embedding) - 1, len(last) - 1
    for row in range(size):
        number = to_embedding[dim, row]
        for column in range(dim):
            number += point[column] * to_embedding[column, row]
        inputs[row], inputs[size + row] = context[row], number
        if has_product:
            inputs[2 * size + row] = context[row] * number
    count = 3 * size if has_product else 2 * size
    mean = last[width]
    tail = width * (count + 1)
    above = gradient[tail : tail + width]  # the hidden units are the last weights' gradient
    for unit in range(width):
        above[unit] = biases[unit]
    for row in range(count):
        number = inputs[row]
        for unit in range(width):
            above[unit] += weights[row, unit] * number
    for unit in range(width):
        slope = last[unit] if above[unit] > 0 else leak * last[unit]
        above[unit] = max(above[unit], leak * above[unit])
        mean += last[unit] * above[unit]
        first = unit * (count + 1)
        for row in range(count):
            gradient[first + row] = slope * inputs[row]
        gradient[first + count] = slope
    gradient[tail + width] = 1.0
    if has_wide:
        for row in range(count):
            gradient[tail + width + 1 + row] = inputs[row]
            mean += wide[row] * inputs[row]
    return mean


@compiled(fastmath=FAST)
def variances_of(root: Floats, gradients: Floats, count: int, variances: Floats) -> None:
    """Return gᵀ Z⁻¹ g for some gradients, four at a time (behind the last there are zeros)."""
    size = root.shape[1]
    if len(root) == 1:
        for number in range(count):
            total = np.float32(0.0)
            for column in range(size):
                total += gradients[number, column] ** 2 * root[0, column]
            variances[number] = total
        return
    for first in range(0, count, AT_ONCE):
        g0, g1, g2, g3 = (
            gradients[first],
            gradients[first + 1],
            gradients[first + 2],
            gradients[first + 3],
        )
        t0 = t1 = t2 = t3 = np.float32(0.0)
        for row in range(size):
            s0 = s1 = s2 = s3 = np.float32(0.0)
            for column in range(row + 1):
                number = root[row, column]
                s0 += g0[column] * number
                s1 += g1[column] * number
                s2 += g2[column] * number
                s3 += g3[column] * number
            t0, t1, t2, t3 = t0 + s0 * s0, t1 + s1 * s1, t2 + s2 * s2, t3 + s3 * s3
        totals = (t0, t1, t2, t3)
        for number in range(min(AT_ONCE, count - first)):
            variances[first + number] = totals[number]


@compiled()
def bound_of(mean: np.float32, variance: np.float32, width: np.float32, units: int) -> np.float32:
    """Return mean + width x standard deviation, m units wide."""
    spread = max(np.float32(width * width / np.float32(units)) * variance, np.float32(1e-12))
    return np.float32(mean + np.float32(math.sqrt(spread)))
