"""Many draws among few arms for one context: which arm is best under each of them.

What `fastbandit.runtime.kernel.decide` does for one context after the other, where these differ in
their draws alone: the context and the arms are embedded once, and nothing is searched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.own_lists import bank_seed, own_constant
from fastbandit.arms.partitions import FAST, WIDTH, Floats, Positions
from fastbandit.compiler.compiled import compiled
from fastbandit.cores import in_parts
from fastbandit.runtime.fold import DROPOUT, clip, draw_masks, embed, fold_wide
from fastbandit.runtime.frozen_catalogue import EligibleRows, FrozenCatalogue
from fastbandit.runtime.kernel import (
    ARMS,
    LEAK,
    MODEL,
    POSTERIOR,
    PRODUCT,
    SCALE,
    WIDE,
    Model,
    Vectors,
    all_finite,
)
from fastbandit.runtime.network import Net, score_points
from fastbandit.runtime.parts import FrozenModel
from fastbandit.runtime.tables import Rows, arrays_at
from fastbandit.types import Inputs


def best_of_few(
    model: FrozenModel,
    catalogue: FrozenCatalogue,
    some: EligibleRows,
    inputs: Inputs,
    seeds: NDArray[np.uint64],
    *,
    threads: int | None = None,
) -> Positions | None:
    """Return the row that is best for the first context under each seed, or None.

    Then `decide` is to be asked: arms are many, other than the masks of one layer is drawn, the
    context is none of plain numbers, or some number is not finite.
    """
    is_drawn = model.counts[POSTERIOR] == DROPOUT and len(model.hidden) == 1
    dense = inputs.dense if inputs.sparse is None and inputs.ids is None else None
    if not (is_drawn and len(some.listed) and len(seeds)) or dense is None:
        return None
    drawn = np.full(len(seeds), -1, dtype=np.int32)
    tables, kind = (model.table.rows, catalogue.table.rows), catalogue.arms.kind

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        _draw_each(*tables, kind, some.listed, dense[0], seeds[part], drawn[part])

    in_parts(len(seeds), work, threads=threads)
    return drawn if drawn.min() >= 0 else None


@compiled(fastmath=FAST)
def _draw_each(
    model: Rows,
    catalogue: Rows,
    kind: Vectors,
    listed: Positions,
    context: Floats,
    seeds: NDArray[np.uint64],
    drawn: Positions,
) -> None:
    """Write down the row of the best of some positions under each seed, if there is any."""
    frozen: Any = Model(*arrays_at(model, MODEL, kind))
    given = arrays_at(catalogue, ARMS, kind)
    order, vectors, decode = given[0], given[1], given[2]
    more, first_more = given[7], len(given[8]) - len(given[7])
    counts, numbers, weights = frozen.counts, frozen.numbers, frozen.first_weights
    product, scale, place = counts[PRODUCT] == 1, numbers[SCALE], frozen.to_embedding
    dim, size, width = len(place) - 1, place.shape[1], len(frozen.first_biases)
    clipped, embedded = np.empty(len(context), np.float32), np.empty(size, np.float32)
    clip(frozen.bounds, context, clipped)
    embed(frozen.encoder, clipped, embedded)
    if not all_finite(embedded):
        return

    # Arms as embeddings, in as many columns as points have, take no folding of the first layer.
    columns = -(-size // WIDTH) * WIDTH
    arms, rows = np.zeros((len(listed), columns), np.float32), np.empty(len(listed), np.int64)
    for arm in range(len(listed)):
        there, behind = listed[arm], listed[arm] - len(order)
        rows[arm] = order[there] if behind < 0 else first_more + behind
        for row in range(size):
            arms[arm, row] = place[dim, row]
        for column in range(dim):
            if behind < 0:
                point = np.float32(vectors[there, column]) * decode[0, column] + decode[1, column]
            else:
                point = more[behind, column]
            for row in range(size):
                arms[arm, row] += point * place[column, row]
    as_it_is = np.zeros((size + 1, size), np.float32)
    for row in range(size):
        as_it_is[row, row] = 1.0
    wide, constant = np.zeros(columns, np.float32), frozen.last_weights[width]
    if counts[WIDE]:
        constant += fold_wide(frozen.wide_weights, embedded, as_it_is, product, wide)

    masks = np.empty(frozen.mask_sizes.sum(), np.float32)
    acting, bias = np.zeros((columns, width), np.float32), np.empty(width, np.float32)
    last, scores = np.empty(width, np.float32), np.empty(len(rows), np.float32)
    units = np.empty((2, width), np.float32)
    means, widths = frozen.own_constants, frozen.own_widths
    stamp = frozen.own_stamp[0] if len(means) > 0 else 0
    again = 2 * size if product else 0
    deeper, leak = frozen.deeper_weights.copy(), numbers[LEAK]
    net = Net(acting, bias, deeper, frozen.hidden, last, wide, constant, leak, units[0], units[1])
    for number in range(len(seeds)):
        draw_masks(seeds[number], frozen.dropout, frozen.mask_sizes, scale, masks)
        for unit in range(width):
            bias[unit] = frozen.first_biases[unit]
            last[unit] = frozen.last_weights[unit] * masks[len(masks) - width + unit]
        for row in range(size):
            by_context, by_arm = masks[row] * embedded[row], masks[size + row]
            by_both = masks[again + row] * embedded[row] if product else np.float32(0.0)
            for unit in range(width):
                bias[unit] += weights[row, unit] * by_context
                both = weights[again + row, unit] * by_both
                acting[row, unit] = weights[size + row, unit] * by_arm + both
        score_points(net, arms, len(rows), scores)
        own_seed, best = bank_seed(seeds[number], stamp), np.float32(-np.inf)
        for arm in range(len(rows)):
            if rows[arm] < len(means):
                scores[arm] += own_constant(means, widths, rows[arm], own_seed, scale, True)
            if scores[arm] > best:
                best, drawn[number] = scores[arm], rows[arm]
