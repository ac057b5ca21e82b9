"""Compiled networks: the folded reward network of one request, and the generator.

Columns are filled up with zeros to a multiple of 8 and written out eight at a time, so that
the compiler keeps the hidden units of an arm in registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.partitions import FAST, WIDTH, Floats
from fastbandit.compiler.compiled import compiled

Sizes = NDArray[np.int64]


class Net(NamedTuple):
    """A folded network: weights of the arm's columns, and two buffers for its units."""

    first: Floats
    bias: Floats
    deeper: Floats
    hidden: Sizes
    last: Floats
    wide: Floats
    constant: np.float32
    leak: np.float32
    units: Floats
    back: Floats


@compiled(fastmath=FAST, allocates=False)
def score_points(net: Net, points: Floats, count: int, scores: Floats) -> None:
    """Score some points (n, columns) by a folded network."""
    if len(net.wide) == WIDTH and len(net.hidden) == 1:
        _score_small(
            net.first, net.bias, net.last, net.wide, net.constant, net.leak, points, count, scores
        )
        return
    if len(net.wide) == 2 * WIDTH and len(net.hidden) == 1:
        _score_middling(
            net.first, net.bias, net.last, net.wide, net.constant, net.leak, points, count, scores
        )
        return
    for number in range(count):
        point = points[number]
        before(net, point)
        top = go_deeper(net)
        total = net.constant
        for column in range(len(net.wide)):
            total += net.wide[column] * point[column]
        for unit in range(len(net.last)):
            below = net.units[top + unit]
            total += net.last[unit] * max(below, net.leak * below)
        scores[number] = total


@compiled(fastmath=FAST, allocates=False)
def _score_small(
    first: Floats,
    bias: Floats,
    last: Floats,
    wide: Floats,
    constant: np.float32,
    leak: np.float32,
    points: Floats,
    count: int,
    scores: Floats,
) -> None:
    """Score points of at most 8 columns by one hidden layer, which stays in registers."""
    for number in range(count):
        p0, p1, p2, p3 = points[number, 0], points[number, 1], points[number, 2], points[number, 3]
        p4, p5, p6, p7 = points[number, 4], points[number, 5], points[number, 6], points[number, 7]
        total = constant
        total += wide[0] * p0 + wide[1] * p1 + wide[2] * p2 + wide[3] * p3
        total += wide[4] * p4 + wide[5] * p5 + wide[6] * p6 + wide[7] * p7
        deep = np.float32(0.0)
        for unit in range(first.shape[1]):
            below = (
                bias[unit]
                + first[0, unit] * p0
                + first[1, unit] * p1
                + first[2, unit] * p2
                + first[3, unit] * p3
                + first[4, unit] * p4
                + first[5, unit] * p5
                + first[6, unit] * p6
                + first[7, unit] * p7
            )
            deep += last[unit] * max(below, leak * below)
        scores[number] = total + deep


@compiled(fastmath=FAST, allocates=False)
def _score_middling(
    first: Floats,
    bias: Floats,
    last: Floats,
    wide: Floats,
    constant: np.float32,
    leak: np.float32,
    points: Floats,
    count: int,
    scores: Floats,
) -> None:
    """Score points of at most 16 columns by one hidden layer, which stays in registers."""
    for number in range(count):
        p0, p1, p2, p3 = (
            points[number, 0],
            points[number, 1],
            points[number, 2],
            points[number, 3],
        )
        p4, p5, p6, p7 = (
            points[number, 4],
            points[number, 5],
            points[number, 6],
            points[number, 7],
        )
        p8, p9, p10, p11 = (
            points[number, 8],
            points[number, 9],
            points[number, 10],
            points[number, 11],
        )
        p12, p13, p14, p15 = (
            points[number, 12],
            points[number, 13],
            points[number, 14],
            points[number, 15],
        )
        total = constant
        total += wide[0] * p0 + wide[1] * p1 + wide[2] * p2 + wide[3] * p3
        total += wide[4] * p4 + wide[5] * p5 + wide[6] * p6 + wide[7] * p7
        total += wide[8] * p8 + wide[9] * p9 + wide[10] * p10 + wide[11] * p11
        total += wide[12] * p12 + wide[13] * p13 + wide[14] * p14 + wide[15] * p15
        deep = np.float32(0.0)
        for unit in range(first.shape[1]):
            below = (
                bias[unit]
                + first[0, unit] * p0
                + first[1, unit] * p1
                + first[2, unit] * p2
                + first[3, unit] * p3
                + first[4, unit] * p4
                + first[5, unit] * p5
                + first[6, unit] * p6
                + first[7, unit] * p7
                + first[8, unit] * p8
                + first[9, unit] * p9
                + first[10, unit] * p10
                + first[11, unit] * p11
                + first[12, unit] * p12
                + first[13, unit] * p13
                + first[14, unit] * p14
                + first[15, unit] * p15
            )
            deep += last[unit] * max(below, leak * below)
        scores[number] = total + deep


@compiled(fastmath=FAST, allocates=False)
def before(net: Net, point: Floats) -> None:
    """Return the first layer's sums at a point."""
    first, units = net.first, net.units
    width = first.shape[1]
    for unit in range(width):
        units[unit] = net.bias[unit]
    for column in range(0, len(point), WIDTH):
        p0, p1, p2, p3 = point[column], point[column + 1], point[column + 2], point[column + 3]
        p4, p5, p6, p7 = point[column + 4], point[column + 5], point[column + 6], point[column + 7]
        for unit in range(width):
            units[unit] += (
                first[column, unit] * p0
                + first[column + 1, unit] * p1
                + first[column + 2, unit] * p2
                + first[column + 3, unit] * p3
                + first[column + 4, unit] * p4
                + first[column + 5, unit] * p5
                + first[column + 6, unit] * p6
                + first[column + 7, unit] * p7
            )


@compiled(fastmath=FAST, allocates=False)
def go_deeper(net: Net) -> int:
    """Return the sums of all further layers, one after the other; return where the last begins."""
    hidden, units, leak = net.hidden, net.units, net.leak
    start, offset = 0, 0
    for layer in range(1, len(hidden)):
        inputs, outputs = hidden[layer - 1], hidden[layer]
        biases = offset + inputs * outputs
        for unit in range(outputs):
            total = net.deeper[biases + unit]
            for below in range(inputs):
                number = units[start + below]
                weight = net.deeper[offset + unit * inputs + below]
                total += weight * max(number, leak * number)
            units[start + inputs + unit] = total
        start += inputs
        offset = biases + outputs
    return start


@compiled(fastmath=FAST, allocates=False)
def slope_at(net: Net, point: Floats, slope: Floats, dim: int) -> np.float32:
    """Return the score at a point, and the slope there."""
    units, back, hidden, leak = net.units, net.back, net.hidden, net.leak
    before(net, point)
    top = go_deeper(net)
    total = net.constant
    for unit in range(len(net.last)):
        below = units[top + unit]
        back[top + unit] = net.last[unit] if below > 0 else leak * net.last[unit]
        total += back[top + unit] * below
    offset = len(net.deeper)
    for layer in range(len(hidden) - 1, 0, -1):
        inputs, outputs = hidden[layer - 1], hidden[layer]
        offset -= (inputs + 1) * outputs
        start = top - inputs
        for below in range(inputs):
            number = np.float32(0.0)
            for unit in range(outputs):
                number += back[top + unit] * net.deeper[offset + unit * inputs + below]
            back[start + below] = number if units[start + below] > 0 else leak * number
        top = start
    first = net.first
    for column in range(dim):
        number = np.float32(0.0)
        for unit in range(first.shape[1]):
            number += back[unit] * first[column, unit]
        slope[column] = number + net.wide[column]
        total += net.wide[column] * point[column]
    return total


@compiled(fastmath=FAST, allocates=False)
def linear(weights: Floats, biases: Floats, inputs: Floats, outputs: Floats) -> None:
    """Return one layer's sums; weights are (inputs, outputs), inputs a multiple of 4."""
    width = len(biases)
    for unit in range(width):
        outputs[unit] = biases[unit]
    for row in range(0, len(weights), 4):
        x0, x1, x2, x3 = inputs[row], inputs[row + 1], inputs[row + 2], inputs[row + 3]
        for unit in range(width):
            outputs[unit] += (
                weights[row, unit] * x0
                + weights[row + 1, unit] * x1
                + weights[row + 2, unit] * x2
                + weights[row + 3, unit] * x3
            )


@compiled(fastmath=FAST, allocates=False)
def bend(numbers: Floats, count: int) -> None:
    """Apply a leaky rectifier of slope 0.1 below zero."""
    for number in range(count):
        numbers[number] = max(numbers[number], np.float32(0.1) * numbers[number])


@compiled(fastmath=FAST, allocates=False)
def squash(numbers: Floats, count: int) -> None:
    """Apply tanh, as a quotient of polynomials (numbers from Eigen's, within 1e-7 of it)."""
    for number in range(count):
        x = max(np.float32(-7.90531), min(np.float32(7.90531), numbers[number]))
        y = x * x
        above = np.float32(-2.76076847742355e-16) * y + np.float32(2.00018790482477e-13)
        above = above * y + np.float32(-8.60467152213735e-11)
        above = above * y + np.float32(5.12229709037114e-08)
        above = above * y + np.float32(1.48572235717979e-05)
        above = above * y + np.float32(6.37261928875436e-04)
        above = (above * y + np.float32(4.89352455891786e-03)) * x
        below = np.float32(1.19825839466702e-06) * y + np.float32(1.18534705686654e-04)
        below = below * y + np.float32(2.26843463243900e-03)
        # NumPy's division, which takes many at a time
        numbers[number] = np.divide(above, below * y + np.float32(4.89352518554385e-03))
