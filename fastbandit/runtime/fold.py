"""Compiled folding: a context and a draw turn the reward network into a small one of the arm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.partitions import FAST, Floats
from fastbandit.compiler.compiled import compiled
from fastbandit.noise.draws import normals_from, uniforms_of
from fastbandit.runtime.network import Sizes

MEAN, DROPOUT, LAST_LAYER, BOUND = 0, 1, 2, 3
HEADS = 6  # 4 and 5 are those of arm effects
"""What makes a score: the mean, dropout masks, drawn weights of the last layer, or a bound."""
_POSTERIOR: Any = np.int64(0)  # the stream of `fastbandit.noise.philox`


@compiled(fastmath=FAST, allocates=False)
def embed(encoder: Floats, context: Floats, embedded: Floats) -> None:
    """Embed a raw context; the last column of the encoder is its constant. Or take it as it is."""
    if len(encoder) == 0:
        for column in range(len(context)):
            embedded[column] = context[column]
        return
    columns = len(context)
    for row in range(len(encoder)):
        total = encoder[row, columns]
        for column in range(columns):
            total += encoder[row, column] * context[column]
        embedded[row] = total


@compiled(allocates=False)
def clip(bounds: Floats, context: Floats, clipped: Floats) -> bool:
    """Clip a context's columns to their bounds, if any; return whether one was clipped.

    What is not finite stays as it is, to be rejected.
    """
    for column in range(len(context)):  # a slice would compile the text of an error
        clipped[column] = context[column]
    is_clipped = False
    for column in range(bounds.shape[1]):
        number, low, high = context[column], bounds[0, column], bounds[1, column]
        if (number < low or number > high) and math.isfinite(number):
            clipped[column] = low if number < low else high
            is_clipped = True
    return is_clipped


@compiled(allocates=False)
def draw_masks(
    seed: np.uint64, dropout: Floats, sizes: Sizes, scale: np.float32, masks: Floats
) -> None:
    """Draw the factors of all layers' inputs (Concrete Dropout), `scale` of the way from 1.

    A row of `dropout` is a layer's logit, one over the share it keeps, and the two uniform
    numbers outside of which an input is retained whole or not at all. The temperature is 0.1: odds
    are raised to the power of 10, by products and NumPy's division, which take many at a time.
    """
    if scale == 0:
        masks[:] = 1.0
        return
    uniforms_of(seed, _POSTERIOR, masks, len(masks))
    start, one = 0, np.float32(1.0)
    for layer in range(len(dropout)):
        odds, factor = np.float32(math.exp(dropout[layer, 0])), dropout[layer, 1]
        low, high = dropout[layer, 2], dropout[layer, 3]
        part = masks[start : start + sizes[layer]]
        for number in range(len(part)):
            uniform = part[number]
            ratio = np.divide(odds * uniform, one - uniform)
            square = ratio * ratio
            fourth = square * square
            share = np.divide(one, one + square * fourth * fourth)  # the ratio, sharpened
            share = np.float32(0.0) if uniform >= high else share
            share = share if uniform > low else one
            part[number] = one + scale * (share * factor - one)
        start += sizes[layer]


@compiled(allocates=False)
def draw_all_masks(
    seeds: NDArray[np.uint64], dropout: Floats, sizes: Sizes, scale: np.float32, masks: Floats
) -> None:
    """Draw the factors of each of some seeds: masks (seeds, factors)."""
    for number in range(len(seeds)):
        draw_masks(seeds[number], dropout, sizes, scale, masks[number])


@compiled(allocates=False)
def mask_deeper(weights: Floats, hidden: Sizes, masks: Floats, deeper: Floats) -> None:
    """Multiply the inputs of all layers after the first by their masks."""
    offset, start = 0, 0
    for layer in range(1, len(hidden)):
        inputs, outputs = hidden[layer - 1], hidden[layer]
        for number in range(inputs * outputs):
            deeper[offset + number] = weights[offset + number] * masks[start + number % inputs]
        offset += (inputs + 1) * outputs
        start += inputs


@compiled(fastmath=FAST, allocates=False)
def draw_last_layer(
    seed: np.uint64,
    centre: Floats,
    spread: Floats,
    scale: np.float32,
    has_heads: bool,
    drawn: Floats,
    noise: Floats,
) -> None:
    """Draw the weights of the last, linear part; `noise` is the draw in units of its spread.

    Rows of `centre` are the weights and their standard deviations. The weights drawn are the
    third row of `drawn`, the others are scratch. Of heads, the columns of `spread`, one is taken.
    """
    count = centre.shape[1]
    if scale == 0:
        for row in range(count):
            drawn[2, row], noise[row] = centre[0, row], np.float32(0.0)
        return
    if has_heads:
        heads = spread.shape[1]
        uniforms_of(seed, _POSTERIOR, drawn[0], heads)
        head = np.argmax(drawn[0, :heads])
        for row in range(count):
            shift = scale * spread[row, head] * np.float32(math.sqrt(heads))
            drawn[2, row] = centre[0, row] + shift
            noise[row] = shift / centre[1, row]
        return
    uniforms_of(seed, _POSTERIOR, drawn[0], 2 * ((count + 1) // 2))
    normals_from(drawn[0], count, drawn[1])
    for row in range(count):
        total = np.float32(0.0)
        for column in range(count):
            total += spread[row, column] * drawn[1, column]
        drawn[2, row] = centre[0, row] + scale * total
        noise[row] = scale * total / centre[1, row]


@compiled(fastmath=FAST, allocates=False)
def fold_first(
    weights: Floats,
    biases: Floats,
    masks: Floats,
    context: Floats,
    to_embedding: Floats,
    has_product: bool,
    acting: Floats,
    first: Floats,
    bias: Floats,
) -> None:
    """Fold the first layer: (inputs, units) weights become (columns, units) over the arm's point.

    `to_embedding` maps points to embeddings: the rows of its axes, then its centre.
    """
    size, width, dim = len(context), len(biases), len(to_embedding) - 1
    for unit in range(width):
        bias[unit] = biases[unit]
    for column in range(dim):
        for unit in range(width):
            first[column, unit] = 0.0
    for row in range(size):
        by_context = masks[row] * context[row]
        by_arm = masks[size + row]
        by_both = masks[2 * size + row] * context[row] if has_product else np.float32(0.0)
        again = 2 * size + row if has_product else row
        for unit in range(width):
            acting[unit] = weights[size + row, unit] * by_arm + weights[again, unit] * by_both
        shift = to_embedding[dim, row]
        for unit in range(width):
            bias[unit] += weights[row, unit] * by_context + acting[unit] * shift
        for column in range(dim):
            along = to_embedding[column, row]
            for unit in range(width):
                first[column, unit] += acting[unit] * along


@compiled(fastmath=FAST, allocates=False)
def fold_wide(
    weights: Floats, context: Floats, to_embedding: Floats, has_product: bool, wide: Floats
) -> np.float32:
    """Fold the wide path into a weight for each column; answer its constant."""
    size, dim = len(context), len(to_embedding) - 1
    constant = np.float32(0.0)
    for column in range(dim):
        wide[column] = 0.0
    for row in range(size):
        acting = weights[size + row]
        if has_product:
            acting += weights[2 * size + row] * context[row]
        constant += weights[row] * context[row] + acting * to_embedding[dim, row]
        for column in range(dim):
            wide[column] += acting * to_embedding[column, row]
    return constant
