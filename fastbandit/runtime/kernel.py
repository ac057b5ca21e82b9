"""One compiled select: from a context and a seed to arms, with no Python object in between.

What a search does is described in `fastbandit.search`; here it is done for one request after the
other. The same seed gives the same arm as there, up to scores that are equal in float
precision.
"""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.neighbour_graph import is_new
from fastbandit.arms.own_lists import BANK, bank_seed, own_constant
from fastbandit.arms.partitions import (
    FAST,
    GROUPS,
    LANES,
    PARTITION,
    ZERO,
    Floats,
    Positions,
    measured_size,
    nearest_partitions,
    partition_count,
)
from fastbandit.compiler.compiled import compiled
from fastbandit.files.array_specs import specs_of
from fastbandit.noise.draws import uniforms_of
from fastbandit.runtime.bound import AT_ONCE, bound_of, gradient_at, variances_of
from fastbandit.runtime.effects import BOUNDED, DRAWN, own_part, shared_part
from fastbandit.runtime.fold import (
    BOUND,
    DROPOUT,
    HEADS,
    LAST_LAYER,
    clip,
    draw_last_layer,
    draw_masks,
    embed,
    fold_first,
    fold_wide,
    mask_deeper,
)
from fastbandit.runtime.network import (
    Net,
    Sizes,
    bend,
    linear,
    score_points,
    slope_at,
    squash,
)
from fastbandit.runtime.parts import FrozenModel
from fastbandit.runtime.tables import Rows, arrays_at, kind_of
from fastbandit.search.limits import AT_A_TIME, BESIDE, RERANKED

EXHAUSTIVE, GENERATOR, ASCENT = 0, 1, 2
"""The searches."""
SEARCH, POSTERIOR, PRODUCT, WIDE, STARTS, LOOKUPS, PARTITIONS, FAR, HOPS, BEAM, STEPS, UNITS = (
    range(12)
)
"""Positions of the whole numbers among the settings."""
SCALE, STEP, LEAK, ENOUGH = range(4)
"""Positions of the other numbers."""
MOST = 8192
"""So many arms are scored at most where only some are eligible, before hops."""
_STARTS: Any = np.int64(1)  # the stream of `fastbandit.noise.philox`
_BLOCK = 64
_LINE = 64  # bytes that memory moves at once: what lies across two takes twice as long
_NOTHING, _ANYTHING = np.float32(-np.inf), np.float32(np.inf)
_TINY = np.float32(1e-12)

Vectors = Floats | NDArray[np.int16] | NDArray[np.int8]
Model = namedtuple("Model", [field.name for field in fields(FrozenModel)])  # type: ignore[misc]
"""The arrays of a `FrozenModel`, by the names they have there."""
MODEL = " ".join(kind_of(spec) for spec in specs_of(FrozenModel))
ARMS = "i1 v2 f2 i2 f3 f3 i1 f2 i1"
_ROOM = (
    "f1 f1 f1 f1 f2 f2 f1 f1 f1 f1 f1 f1 f2 f2 f2 "  # a `Room`
    "i1 f1 i1 f1 b1 i1 f2 i1 i1 f1 "  # what is `Found`
    "f1 f1 f2 f1"  # of an `Exact`
)
"""What tables hold, as `arrays_at` reads it."""
_MODEL_ROWS, _ARMS_ROWS, _ROOM_ROWS = (len(told.split()) for told in (MODEL, ARMS, _ROOM))


class Arms(NamedTuple):
    """The arms in the order of their partitions, those added since, and which are eligible.

    `positions` and `eligible` are by row; the mask has no length where every arm is eligible.
    `outermost` are as many of `far` as the search looks at.
    """

    order: Positions
    vectors: Floats
    decode: Floats
    graph: Positions
    centres: NDArray[np.float32]
    groups: NDArray[np.float32]
    far: Positions
    more: Floats
    first_more: int
    positions: Positions
    eligible: NDArray[np.bool_]
    eligible_count: int
    outermost: Positions


class Exact(NamedTuple):
    """What the bound itself is worked out from, and buffers for it."""

    context: Floats
    to_embedding: Floats
    weights: Floats
    biases: Floats
    last: Floats
    wide: Floats
    root: Floats
    inputs: Floats
    gradients: Floats
    means: Floats


class Own(NamedTuple):
    """What arms' own parts are worked out from: a request's inputs and draw, and all weights."""

    inputs: Floats
    prior: Floats
    means: Floats
    deviations: Floats
    seed: np.uint64
    kind: int
    scale: np.float32


class Constants(NamedTuple):
    """Arms' own constants by row, the best of them under this draw, and the positions of rows."""

    means: Floats
    deviations: Floats
    rows: Positions
    parts: Floats
    positions: Positions
    seed: np.uint64
    scale: np.float32
    is_drawn: bool


class Room(NamedTuple):
    """Buffers, made once for all requests: what a draw changes is copied, the rest is shared."""

    embedded: Floats
    clipped: Floats
    noise: Floats
    masks: Floats
    drawn: Floats
    first: Floats
    bias: Floats
    acting: Floats
    deeper: Floats
    last: Floats
    wide: Floats
    wide_sum: Floats
    units: Floats
    points: Floats
    signals: Floats


class Found(NamedTuple):
    """Places found last and their scores, the best of all so far, and buffers.

    The best are sorted; `best_walked` marks those whose neighbours were scored.
    """

    positions: Positions
    scores: Floats
    best_positions: Positions
    best_scores: Floats
    best_walked: NDArray[np.bool_]
    seen: Positions
    block: Floats
    near: Positions
    groups: Positions
    distances: Floats


@compiled(fastmath=FAST, allocates=False)
def decide(
    table: Rows,
    kind: Vectors,
    mask: NDArray[np.bool_],
    eligible_count: int,
    listed: Positions,
    contexts: Floats,
    seeds: NDArray[np.uint64],
    rows: Positions,
    scores: Floats,
    costs: NDArray[np.int64],
) -> None:
    """Choose arms for each context: rows and scores (B, k), best first, and costs (B, 3).

    The first is what `lay_out` answers, for arms whose vectors are of the kind of numbers that the
    second is. Then a mask by row of what is eligible (of no length where every arm is), how many
    those are, and the positions to choose from where those are few. Costs are evaluations and
    look-ups, or -1 for a context that is not finite; last is 1 where a number of the context was
    clipped to its bounds.
    """
    frozen: Any = Model(*arrays_at(table, MODEL, kind))
    given = arrays_at(table[_MODEL_ROWS:], ARMS, kind)
    mine = arrays_at(table[_MODEL_ROWS + _ARMS_ROWS :], _ROOM, kind)
    first_more, outermost = len(given[8]) - len(given[7]), given[6][: frozen.counts[FAR]]
    lists: Any = (*given[:8], first_more, given[8], mask, eligible_count, outermost)
    arms = Arms(*lists)
    room, found = Room(*mine[:15]), Found(*mine[15:25])
    predicting, inputs, gradients, means = mine[25:]
    exact = Exact(
        room.embedded,
        frozen.to_embedding,
        frozen.first_weights,
        frozen.first_biases,
        predicting,
        frozen.wide_weights,
        frozen.root,
        inputs,
        gradients,
        means,
    )
    request, answer = (contexts, seeds), (rows, scores, costs)
    _decide_each(frozen, arms, listed, request, answer, room, exact, found)


@compiled(fastmath=FAST, allocates=False)
def _decide_each(
    frozen: Any,
    arms: Arms,
    listed: Positions,
    request: Any,
    answer: Any,
    room: Room,
    exact: Exact,
    found: Found,
) -> None:
    """Choose arms for one context after the other, in the same buffers."""
    contexts, seeds = request
    rows, scores, costs = answer
    counts, numbers, box = frozen.counts, frozen.numbers, frozen.box
    posterior, scale, k = counts[POSTERIOR], numbers[SCALE], rows.shape[1]
    dim, is_last_layer = len(frozen.to_embedding) - 1, posterior in (LAST_LAYER, HEADS)
    product, has_constants = counts[PRODUCT] == 1, len(frozen.own_constants) > 0
    embedded, clipped, noise, masks = room.embedded, room.clipped, room.noise, room.masks
    drawn, first, bias, acting = room.drawn, room.first, room.bias, room.acting
    deeper, last, wide, wide_sum = room.deeper, room.last, room.wide, room.wide_sum
    units, points, signals = room.units, room.points, room.signals
    few = max(k, len(exact.means))
    scanned = Found(  # where all arms are scored none is walked from: only the answer is sorted
        found.positions,
        found.scores,
        found.best_positions[:few],
        found.best_scores[:few],
        found.best_walked[:few],
        found.seen,
        found.block,
        found.near,
        found.groups,
        found.distances,
    )
    partitions = max(counts[PARTITIONS], -(-k // LANES))

    for number in range(len(seeds)):
        seed = seeds[number]
        costs[number, 2] = 0
        if posterior in (DRAWN, BOUNDED):
            # Each arm has weights of its own, which no point describes: all eligible are scored.
            seen = contexts[number]
            if not all_finite(seen):
                costs[number, 0] = -1
                continue
            own = Own(
                seen,
                frozen.own_prior,
                frozen.own_means,
                frozen.own_deviations,
                seed,
                posterior,
                scale,
            )
            common = shared_part(seen, frozen.own_shared)
            costs[number, 0], held = _scan_own(own, common, arms, listed, scanned)
            costs[number, 1] = 0
            _write_down(arms, scanned, held, rows[number], scores[number])
            continue

        # Arms' own constants do not depend on the context: the seed picks one of a bank of draws,
        # whose best arms are listed.
        draw = int(seed % np.uint64(BANK)) % len(frozen.own_rows) if has_constants else 0
        constants = Constants(
            frozen.own_constants,
            frozen.own_widths,
            frozen.own_rows[draw] if has_constants else arms.order[:0],
            frozen.own_parts[draw] if has_constants else frozen.own_constants[:0],
            arms.positions,
            bank_seed(seed, frozen.own_stamp[0] if has_constants else 0),
            scale,
            posterior != BOUND,
        )

        # A context far from those seen is clipped; one that is not finite has no answer.
        costs[number, 2] = clip(frozen.bounds, contexts[number], clipped)
        embed(frozen.encoder, clipped, embedded)
        if not all_finite(embedded):
            costs[number, 0] = -1
            continue

        # The draw: it is taken into the weights once, so that a score is one plain network at
        # every step of the search. A bound is searched by a surrogate, which adds its bonus.
        constant = frozen.last_weights[len(last)]
        if posterior == DROPOUT:
            draw_masks(seed, frozen.dropout, frozen.mask_sizes, scale, masks)
            for unit in range(len(masks)):
                noise[unit] = masks[unit] - np.float32(1.0)
            for unit in range(len(last)):
                last[unit] = frozen.last_weights[unit] * masks[len(masks) - len(last) + unit]
            later = masks[len(frozen.first_weights) :]
            mask_deeper(frozen.deeper_weights, frozen.hidden, later, deeper)
        elif is_last_layer:
            has_heads = posterior == HEADS
            draw_last_layer(seed, frozen.centre, frozen.spread, scale, has_heads, drawn, noise)
            constant = drawn[2, frozen.centre.shape[1] - 1]
            for unit in range(len(last)):
                last[unit] = drawn[2, unit]
        elif posterior == BOUND:
            for unit in range(len(last)):
                last[unit] = frozen.last_weights[unit] + scale * frozen.bonus[unit]
            constant += scale * frozen.bonus[len(last)]
            for row in range(len(wide_sum)):
                bonus = frozen.bonus[len(last) + 1 + row]
                wide_sum[row] = frozen.wide_weights[row] + scale * bonus

        # The context is the same for all arms, and arms are points in few dimensions: both are
        # folded into the first layer, which is most of the work of a score.
        fold_first(
            frozen.first_weights,
            frozen.first_biases,
            masks,
            embedded,
            frozen.to_embedding,
            product,
            acting,
            first,
            bias,
        )
        if counts[WIDE]:
            weights = drawn[2, len(last) :] if is_last_layer else wide_sum
            constant += fold_wide(weights, embedded, frozen.to_embedding, product, wide)
        net = Net(
            first,
            bias,
            deeper,
            frozen.hidden,
            last,
            wide,
            constant,
            numbers[LEAK],
            units[0],
            units[1],
        )

        if len(listed) or counts[SEARCH] == EXHAUSTIVE:
            # Few arms, or a search that scores all: nothing is looked up.
            evaluated, held = _scan(net, arms, listed, scanned, constants)
            best = 0
        else:
            # Points to look around: what a generator proposes, or what climbs from anywhere.
            if counts[SEARCH] == GENERATOR:
                evaluated = _generator_inputs(net, embedded, noise, box, dim, signals[0], points)
                _propose(frozen.layer_1, frozen.layer_2, frozen.layer_3, box, dim, signals, points)
            else:
                _start_anywhere(seed, box, dim, signals[0], points[:-1])
                evaluated = 2 * _climb_all(net, points, counts, numbers, box, dim)
            # A look-up costs more than a score: only the best points are looked up.
            best = min(counts[LOOKUPS], counts[STARTS])
            if best < counts[STARTS]:
                keep_best_points(net, points[:-1], best, found)
                evaluated += counts[STARTS]
            if counts[SEARCH] == GENERATOR:
                evaluated += 2 * _climb_all(net, points[: best + 1], counts, numbers, box, dim)
            # From points to arms: those in the nearest partitions, then neighbours of the best.
            fresh = land(arms, points[:best], partitions, found)
            held = _keep_best(net, arms, found, fresh, ZERO)
            held, walked = _walk(net, arms, found, held, counts[HOPS], counts[BEAM])
            evaluated += fresh + walked
            if has_constants:
                # An arm may win by its own constant, wherever its point lies.
                held, joined = _join_own(net, arms, found, held, k, few, constants)
                evaluated += joined
        if posterior == BOUND:
            # The surrogate only found the way: the bound itself ranks the few best.
            held = _rerank(exact, arms, found, held, counts, numbers, constants)
            evaluated += held
        _write_down(arms, found, held, rows[number], scores[number])
        costs[number, 0], costs[number, 1] = evaluated, best


@compiled()
def lay_out(
    model: Rows, catalogue: Rows, kind: Vectors, mask: Any, contexts: Floats, rows: Positions
) -> tuple[Rows, NDArray[np.uint8]]:
    """Lay out buffers, as large as any search of this model can need, in a block of memory.

    Answers one table of a `FrozenModel`, a `FrozenCatalogue` and these buffers, and the block.
    They serve any requests of such a kind, one after the other: what no draw changes is in them.
    """
    table = np.zeros((_MODEL_ROWS + _ARMS_ROWS + _ROOM_ROWS + 1, 4), np.int64)
    table[:_MODEL_ROWS], sizes = model, table[_MODEL_ROWS + _ARMS_ROWS :]
    table[_MODEL_ROWS : _MODEL_ROWS + _ARMS_ROWS] = catalogue
    frozen: Any = Model(*arrays_at(model, MODEL, kind))
    given = arrays_at(catalogue, ARMS, kind)
    order, graph, centres, more = given[0], given[3], given[4], given[7]
    counts, k, one, is_masked = frozen.counts, rows.shape[1], ZERO + 1, len(mask) > 0
    dim, columns, units = (
        len(frozen.to_embedding) - 1,
        frozen.box.shape[1],
        len(frozen.first_biases),
    )
    drawn, inputs, masks = (
        frozen.centre.shape[1],
        len(frozen.first_weights),
        frozen.mask_sizes.sum(),
    )
    longest = signal_size(frozen.layer_1, frozen.layer_2, frozen.layer_3)
    is_bound = counts[POSTERIOR] == BOUND
    reranked = max(RERANKED, k) if is_bound else ZERO
    # What a search finds: in the partitions of a look-up, or among the neighbours of a hop.
    partitions = max(counts[PARTITIONS], -(-k // LANES))
    total = partition_count(len(order))
    near = total if is_masked else min(total, partitions)
    hops = counts[HOPS] * counts[BEAM]
    best = max(k, hops, RERANKED)
    places = max(one, counts[LOOKUPS]) * min(total, partitions) * PARTITION
    if len(frozen.own_constants) > 0:
        best, places = max(best, BESIDE), max(places, frozen.own_rows.shape[1])
    places = max(places, MOST if is_masked else 0, _BLOCK, counts[BEAM] * graph.shape[1])
    places = max(places, counts[STARTS]) + len(more) + counts[FAR]
    noted = one * 64
    while noted < 2 * (places + hops * graph.shape[1]):
        noted *= 2
    sides = (  # of a `Room`, of what is `Found`, and of an `Exact`
        (frozen.to_embedding.shape[1], one),
        (contexts.shape[1], one),
        (max(masks, drawn), one),
        (max(masks, inputs), one),
        (one * 3, max(drawn, frozen.spread.shape[1]) + 1),
        (columns, units),
        (units, one),
        (units, one),
        (len(frozen.deeper_weights), one),
        (len(frozen.last_weights) - 1, one),
        (columns, one),
        (len(frozen.wide_weights), one),
        (one * 2, frozen.hidden.sum()),
        (counts[STARTS] + 1, columns),
        (one * 2, max(longest, counts[STARTS] * dim)),
        (places, one),
        (places, one),
        (best, one),
        (best, one),
        (best, one),
        (noted, one),
        (one * _BLOCK, columns),
        (near, one),
        (one * GROUPS, one),
        (measured_size(centres, near, GROUPS), one),
        (counts[UNITS] + 1 if is_bound else ZERO, one),
        (inputs, one),
        (reranked + AT_ONCE if is_bound else ZERO, frozen.root.shape[1]),
        (reranked, one),
    )
    for number in range(len(sides)):
        side, across = sides[number]
        sizes[number, 1], sizes[number, 2] = side, across
        sizes[number + 1, 0] = sizes[number, 0] + -(-4 * side * across // _LINE) * _LINE
    block = np.zeros(sizes[len(sides), 0] + _LINE, np.uint8)
    first = -(-np.int64(block.ctypes.data) // _LINE) * _LINE
    for number in range(len(sizes)):
        sizes[number, 0] += first
    mine = arrays_at(sizes, _ROOM, kind)
    room, predicting = Room(*mine[:15]), mine[25]
    room.masks[:] = 1.0
    _copy(frozen.deeper_weights, room.deeper)
    _copy(frozen.last_weights, room.last)
    _copy(frozen.wide_weights, room.wide_sum)
    _copy(frozen.last_weights, predicting)
    if len(predicting):
        predicting[-1] = frozen.last_weights[-1]
    return table, block


@compiled(allocates=False)
def _copy(numbers: Floats, copied: Floats) -> None:
    """Copy as many numbers as there is room for."""
    for number in range(len(copied)):
        copied[number] = numbers[number]


@compiled(allocates=False)
def signal_size(layer_1: Floats, layer_2: Floats, layer_3: Floats) -> int:
    """Return the longest signal of a generator, its input included."""
    longest = max(len(layer_1), len(layer_2), len(layer_3))
    return max(longest, layer_1.shape[1], layer_3.shape[1]) + 4


@compiled(allocates=False)
def all_finite(numbers: Floats) -> bool:
    finite = 0
    for number in numbers:  # compared, for sums may be rearranged: callers pass their flags on
        finite += abs(number) < np.inf
    return finite == len(numbers)


# -- where to look


@compiled(fastmath=FAST, allocates=False)
def _generator_inputs(
    net: Net, embedded: Floats, noise: Floats, box: Floats, dim: int, inputs: Floats, points: Floats
) -> int:
    """Put together what the generator sees: context, draw, and slope in the middle of the arms.

    Rows of `box` are the lowest and the highest coordinates, their middle and half their
    difference. The last row of `points` is scratch. Answers the evaluations this took.
    """
    size, drawn = len(embedded), len(noise)
    slope = points[-1]
    slope_at(net, box[2], slope, dim)
    factor = np.float32(1.0) / length_of(slope, dim)
    for number in range(size):
        inputs[number] = embedded[number]
    for number in range(drawn):
        inputs[size + number] = noise[number]
    for number in range(dim):
        inputs[size + drawn + number] = slope[number] * factor
    # What fills up has weights of zero, but what an earlier request left there may be no number.
    inputs[size + drawn + dim :] = 0.0
    return 2


@compiled(fastmath=FAST, allocates=False)
def length_of(vector: Floats, dim: int) -> np.float32:
    total = np.float32(0.0)
    for column in range(dim):
        total += vector[column] * vector[column]
    return max(np.float32(math.sqrt(total)), _TINY)


@compiled(fastmath=FAST, allocates=False)
def _propose(
    layer_1: Floats,
    layer_2: Floats,
    layer_3: Floats,
    box: Floats,
    dim: int,
    signals: Floats,
    points: Floats,
) -> None:
    """Ask the generator for points; the last row of each layer is its constant."""
    width, outputs = layer_1.shape[1], layer_3.shape[1]
    linear(layer_1[:-1], layer_1[-1], signals[0], signals[1])
    bend(signals[1], width)
    signals[0, width:] = 0.0
    signals[1, width:] = 0.0
    linear(layer_2[:-1], layer_2[-1], signals[1], signals[0])
    bend(signals[0], width)
    linear(layer_3[:-1], layer_3[-1], signals[0], signals[1])
    squash(signals[1], outputs)
    for head in range(outputs // dim):
        for column in range(dim):
            points[head, column] = box[2, column] + box[3, column] * signals[1, head * dim + column]


@compiled(allocates=False)
def _start_anywhere(
    seed: np.uint64, box: Floats, dim: int, uniforms: Floats, points: Floats
) -> None:
    """Draw points evenly from the arms' box."""
    uniforms_of(seed, _STARTS, uniforms, len(points) * dim)
    for start in range(len(points)):
        for column in range(dim):
            points[start, column] = (
                box[0, column] + (box[1, column] - box[0, column]) * uniforms[start * dim + column]
            )


@compiled(allocates=False)
def keep_best_points(net: Net, points: Floats, best: int, found: Found) -> None:
    """Bring the points with the highest scores to the front, best first."""
    scores = found.scores
    score_points(net, points, len(points), scores)
    for slot in range(best):
        top = slot
        for other in range(slot + 1, len(points)):
            if scores[other] > scores[top]:
                top = other
        if top != slot:
            scores[slot], scores[top] = scores[top], scores[slot]
            for column in range(points.shape[1]):
                points[slot, column], points[top, column] = (
                    points[top, column],
                    points[slot, column],
                )


@compiled(fastmath=FAST, allocates=False)
def _climb_all(
    net: Net, points: Floats, counts: Sizes, numbers: Floats, box: Floats, dim: int
) -> int:
    """Follow the score uphill from all points but the last, which is scratch; count the slopes."""
    slope, steps = points[-1], counts[STEPS]
    for start in range(len(points) - 1):
        point = points[start]
        for step in range(steps):
            score = slope_at(net, point, slope, dim)
            if score > numbers[ENOUGH]:
                continue
            share = np.float32(1.0) - np.float32(step) / np.float32(steps)
            factor = numbers[STEP] * share / length_of(slope, dim)
            for column in range(dim):
                moved = point[column] + factor * slope[column]
                point[column] = min(max(moved, box[0, column]), box[1, column])
    return steps * (len(points) - 1)


# -- which arms


@compiled(allocates=False)
def land(arms: Arms, points: Floats, partitions: int, found: Found) -> int:
    """Find eligible arms in the partitions nearest to some points; the fewer, the more partitions.

    The outermost arms, and those added since the partitions were made, are found in any case.
    Answers how many there are, all noted as seen.
    """
    count = len(arms.order)
    total = partition_count(count)
    is_masked = len(arms.eligible) > 0
    share = count // max(1, arms.eligible_count) if is_masked else 1
    least = min(arms.eligible_count, partitions * LANES)
    wanted = min(total, partitions * max(1, share))
    while True:
        fresh = _land_in(arms, points, wanted, total, found)
        if not is_masked or fresh >= least or wanted == total or fresh >= MOST:
            break
        wanted = min(total, 4 * wanted)
    found.seen[:] = -1
    for number in range(fresh):
        is_new(found.seen, found.positions[number])
    for there in arms.outermost:
        if is_new(found.seen, there) and (not is_masked or arms.eligible[arms.order[there]]):
            found.positions[fresh] = there
            fresh += 1
    for number in range(len(arms.more)):
        if not is_masked or arms.eligible[arms.first_more + number]:
            found.positions[fresh] = count + number
            fresh += 1
    return fresh


@compiled(allocates=False)
def _land_in(arms: Arms, points: Floats, wanted: int, total: int, found: Found) -> int:
    """Find the eligible arms in the `wanted` nearest partitions of each point."""
    order, eligible, positions, seen = arms.order, arms.eligible, found.positions, found.seen
    count, is_masked = len(order), len(arms.eligible) > 0
    most = MOST if is_masked else len(positions)
    partitions, groups, distances = found.near[:wanted], found.groups, found.distances
    seen[:] = -1
    fresh = 0
    for number in range(len(points)):
        nearest_partitions(points[number], arms.centres, arms.groups, partitions, groups, distances)
        for partition in partitions:
            if partition >= total:  # an empty lane: the point is not finite
                continue
            first, last = (partition * count) // total, ((partition + 1) * count) // total
            if not is_new(seen, first):
                continue
            for there in range(first, last):
                if fresh < most and (not is_masked or eligible[order[there]]):
                    positions[fresh] = there
                    fresh += 1
    return fresh


@compiled(fastmath=FAST, allocates=False)
def _keep_best(net: Net, arms: Arms, found: Found, fresh: int, held: int) -> int:
    """Score what was found last, and sort the best of it into the best of all."""
    score_found(net, arms, found, fresh)
    return sort_in(found, fresh, held)


@compiled(fastmath=FAST, allocates=False)
def score_found(net: Net, arms: Arms, found: Found, fresh: int) -> None:
    """Score what was found last."""
    vectors, positions, block, scores = arms.vectors, found.positions, found.block, found.scores
    factor, shift = arms.decode[0], arms.decode[1]
    count, dim = vectors.shape
    for start in range(0, fresh, _BLOCK):
        size = min(_BLOCK, fresh - start)
        for number in range(size):
            there = positions[start + number]
            if there < count:
                for column in range(dim):
                    whole = np.float32(vectors[there, column])
                    block[number, column] = whole * factor[column] + shift[column]
            else:
                for column in range(dim):
                    block[number, column] = arms.more[there - count, column]
        score_points(net, block, size, scores[start : start + size])


@compiled(allocates=False)
def sort_in(found: Found, fresh: int, held: int) -> int:
    """Sort the best of what was scored last into the best of all."""
    positions, scores, most = found.positions, found.scores, len(found.best_positions)
    worst = found.best_scores[most - 1] if held == most else _NOTHING
    for number in range(fresh):
        if scores[number] > worst:
            held = _insert_best(
                found.best_positions,
                found.best_scores,
                found.best_walked,
                held,
                positions[number],
                scores[number],
            )
            if held == most:
                worst = found.best_scores[most - 1]
    return held


@compiled(allocates=False)
def _insert_best(
    positions: Positions,
    scores: Floats,
    walked: NDArray[np.bool_],
    held: int,
    there: int,
    score: np.float32,
) -> int:
    """Insert into a list sorted by falling scores, dropping the last where it is full."""
    slot = min(held, len(positions) - 1)
    while slot > 0 and scores[slot - 1] < score:
        scores[slot] = scores[slot - 1]
        positions[slot] = positions[slot - 1]
        walked[slot] = walked[slot - 1]
        slot -= 1
    scores[slot] = score
    positions[slot] = there
    walked[slot] = False
    return min(held + 1, len(positions))


@compiled(allocates=False)
def _walk(net: Net, arms: Arms, found: Found, held: int, hops: int, beam: int) -> tuple[int, int]:
    """Score the neighbours of the best arms, hop by hop; answer how many are held and scored."""
    order, eligible, graph, seen = arms.order, arms.eligible, arms.graph, found.seen
    count, is_masked, scored = len(order), len(arms.eligible) > 0, 0
    for _ in range(hops):
        fresh, left = ZERO, beam
        for slot in range(held):
            if left == 0:
                break
            if found.best_walked[slot]:
                continue
            found.best_walked[slot] = True
            left -= 1
            there = found.best_positions[slot]
            if there >= count:
                continue
            for number in range(graph.shape[1]):
                beside = graph[there, number]
                if beside < 0 or (is_masked and not eligible[order[beside]]):
                    continue
                if is_new(seen, beside):
                    found.positions[fresh] = beside
                    fresh += 1
        held = _keep_best(net, arms, found, fresh, held)
        scored += fresh
    return held, scored


@compiled(allocates=False)
def _scan(
    net: Net, arms: Arms, listed: Positions, found: Found, constants: Constants
) -> tuple[int, int]:
    """Score all eligible arms, or a list of them; return how many, and how many are held."""
    positions, is_masked, is_listed = found.positions, len(arms.eligible) > 0, len(listed) > 0
    total = len(listed) if is_listed else len(arms.order) + len(arms.more)
    evaluated, held, count = ZERO, ZERO, len(arms.order)
    means, deviations = constants.means, constants.deviations
    for start in range(0, total, _BLOCK):
        fresh = ZERO
        for number in range(start, min(total, start + _BLOCK)):
            there = listed[number] if is_listed else number
            if is_masked and not arms.eligible[row_at(arms, there)]:
                continue
            positions[fresh] = there
            fresh += 1
        score_found(net, arms, found, fresh)
        if len(means):
            for number in range(fresh):  # as in part_of: handing all arms over takes longer
                there = positions[number]
                row = int(arms.order[there]) if there < count else arms.first_more + there - count
                found.scores[number] += own_constant(
                    means, deviations, row, constants.seed, constants.scale, constants.is_drawn
                )
        held = sort_in(found, fresh, held)
        evaluated += fresh
    return evaluated, held


@compiled(allocates=False)
def row_at(arms: Arms, there: int) -> int:
    """Return the row at a position."""
    count = len(arms.order)
    return int(arms.order[there]) if there < count else arms.first_more + there - count


@compiled(allocates=False)
def part_of(constants: Constants, arms: Arms, there: int) -> np.float32:
    """Return the own part of the arm at a position."""
    return own_constant(
        constants.means,
        constants.deviations,
        row_at(arms, there),
        constants.seed,
        constants.scale,
        constants.is_drawn,
    )


@compiled()
def _join_own(
    net: Net, arms: Arms, found: Found, held: int, count: int, few: int, constants: Constants
) -> tuple[int, int]:
    """Add own parts to the best arms found, and rank those of the list that could win with them.

    The `few` best of both are held. Answers how many those are, and how many were scored for it.
    """
    positions, wanted = found.positions, max(BESIDE, count)
    parts = np.empty(max(wanted, AT_A_TIME), np.float32)
    near = min(held, wanted)
    bound = found.best_scores[near - 1] if near == wanted else _ANYTHING
    for slot in range(near):
        positions[slot], found.scores[slot] = found.best_positions[slot], found.best_scores[slot]
        parts[slot] = part_of(constants, arms, positions[slot])
    held = _sort_own(found, parts, near, few, ZERO)
    is_masked, scored, total = len(arms.eligible) > 0, 0, len(constants.rows)
    for start in range(0, total, AT_A_TIME):
        least = found.best_scores[count - 1] if held >= count else _NOTHING
        if not bound + constants.parts[start] > least:
            break
        fresh = ZERO
        for number in range(start, min(total, start + AT_A_TIME)):
            row = constants.rows[number]
            if row < 0 or row >= len(constants.positions) or (is_masked and not arms.eligible[row]):
                continue
            positions[fresh], parts[fresh] = constants.positions[row], constants.parts[number]
            fresh += positions[fresh] >= 0
        score_found(net, arms, found, fresh)
        held = _sort_own(found, parts, fresh, few, held)
        scored += fresh
    return held, scored


@compiled(allocates=False)
def _sort_own(found: Found, parts: Floats, fresh: int, few: int, held: int) -> int:
    """Sort what was scored last into the few best, with its own parts; each arm counts once."""
    best, totals, walked = (
        found.best_positions[:few],
        found.best_scores[:few],
        found.best_walked[:few],
    )
    for number in range(fresh):
        there, total = found.positions[number], found.scores[number] + parts[number]
        if (held < few or total > totals[few - 1]) and there not in best[:held]:
            held = _insert_best(best, totals, walked, held, there, total)
    return held


@compiled(fastmath=FAST, allocates=False)
def _scan_own(
    own: Own, common: np.float32, arms: Arms, listed: Positions, found: Found
) -> tuple[int, int]:
    """Score all eligible arms, or those of a list, by their own weights; answer as `scan` does."""
    is_masked, is_listed = len(arms.eligible) > 0, len(listed) > 0
    total = len(listed) if is_listed else len(arms.order) + len(arms.more)
    evaluated, held, most = ZERO, ZERO, len(found.best_positions)
    worst = _NOTHING
    for number in range(total):
        there = listed[number] if is_listed else number
        row = row_at(arms, there)
        if is_masked and not arms.eligible[row]:
            continue
        evaluated += 1
        score = common + own_part(
            own.inputs, own.prior, own.means, own.deviations, row, own.seed, own.kind, own.scale
        )
        if score > worst or held < most:
            held = _insert_best(
                found.best_positions, found.best_scores, found.best_walked, held, there, score
            )
            if held == most:
                worst = found.best_scores[most - 1]
    return evaluated, held


@compiled()
def _rerank(
    exact: Exact,
    arms: Arms,
    found: Found,
    held: int,
    counts: Sizes,
    numbers: Floats,
    constants: Constants,
) -> int:
    """Score the few arms that look best by the bound itself and sort them anew; answer how many."""
    few = min(held, len(exact.means))
    positions, scores = found.best_positions, found.best_scores
    count, dim = arms.vectors.shape
    for slot in range(few):
        there = positions[slot]
        for column in range(dim):
            if there < count:
                whole = np.float32(arms.vectors[there, column])
                found.block[0, column] = whole * arms.decode[0, column] + arms.decode[1, column]
            else:
                found.block[0, column] = arms.more[there - count, column]
        exact.means[slot] = gradient_at(
            found.block[0],
            exact.context,
            exact.to_embedding,
            exact.weights,
            exact.biases,
            exact.last,
            exact.wide,
            counts[PRODUCT] == 1,
            counts[WIDE] == 1,
            numbers[LEAK],
            exact.inputs,
            exact.gradients[slot],
        )
    variances_of(exact.root, exact.gradients, few, scores)
    for slot in range(few):
        mean, variance = exact.means[slot], scores[slot]
        scores[slot] = bound_of(mean, variance, numbers[SCALE], counts[UNITS])
        if len(constants.means):
            scores[slot] += part_of(constants, arms, positions[slot])
    for slot in range(1, few):
        there, score = positions[slot], scores[slot]
        _insert_best(
            positions[: slot + 1],
            scores[: slot + 1],
            found.best_walked[: slot + 1],
            slot,
            there,
            score,
        )
    return few


@compiled(allocates=False)
def _write_down(arms: Arms, found: Found, held: int, rows: Positions, scores: Floats) -> None:
    """Write down the rows and scores of the best, best first, then -1."""
    for slot in range(len(rows)):
        rows[slot] = -1
        scores[slot] = _NOTHING
        if slot < held:
            rows[slot] = row_at(arms, found.best_positions[slot])
            scores[slot] = found.best_scores[slot]
