"""The kernel of `gpu_walk`, in Triton: imported only where it is launched."""

# mypy: ignore-errors
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _scores(
    there,
    is_arm,
    first,
    bias,
    last,
    wide,
    constant,
    vectors,
    LEAK: tl.constexpr,
    DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    UNITS: tl.constexpr,
    SOME: tl.constexpr,
):
    """Score arms at some positions by the network of this program's context."""
    # Column by column: vectors are read once, and all units of all arms grow side by side.
    unit = tl.arange(0, UNITS)
    is_unit = unit < WIDTH
    below = tl.zeros([SOME, UNITS], dtype=tl.float32) + bias[None, :]
    total = tl.zeros([SOME], dtype=tl.float32) + constant
    for column in tl.static_range(DIM):
        numbers = tl.load(vectors + there * DIM + column, mask=is_arm, other=0.0)
        weights = tl.load(first + unit * DIM + column, mask=is_unit, other=0.0)
        below += numbers[:, None] * weights[None, :]
        total += numbers * tl.load(wide + column)
    # What is no arm has the lowest score there is, so that no list needs a length.
    above = tl.where(below > 0, below, LEAK * below)
    total += tl.sum(above * last[None, :], axis=1)
    return tl.where(is_arm, total, float("-inf"))


@triton.jit
def walk_kernel(
    points,
    firsts,
    biases,
    lasts,
    wides,
    constants,
    vectors,
    graph,
    centres,
    groups,
    outermost,
    positions,
    scores,
    waiting,
    best_positions,
    best_scores,
    found,
    count,
    total,
    group_count,
    LEAK: tl.constexpr,
    DIM: tl.constexpr,
    WIDTH: tl.constexpr,
    UNITS: tl.constexpr,
    STARTS: tl.constexpr,
    PARTITIONS: tl.constexpr,
    FAR: tl.constexpr,
    LANDED: tl.constexpr,
    HOPS: tl.constexpr,
    BEAM: tl.constexpr,
    BESIDE: tl.constexpr,
    COUNT: tl.constexpr,
    ROOM: tl.constexpr,
    LIST: tl.constexpr,
    NEAR: tl.constexpr,
    ALL_GROUPS: tl.constexpr,
    SIZE: tl.constexpr,
    PARTITION: tl.constexpr,
):
    """Land from this context's points, walk, and write down the best arms."""
    # -- one program, one context: its network, and its own stretch of the lists
    request = tl.program_id(0).to(tl.int64)  # 64 bits, for request x ROOM may pass 2**31
    unit = tl.arange(0, UNITS)
    is_unit = unit < WIDTH
    first = firsts + request * WIDTH * DIM
    bias = tl.load(biases + request * WIDTH + unit, mask=is_unit, other=0.0)
    last = tl.load(lasts + request * WIDTH + unit, mask=is_unit, other=0.0)
    wide = wides + request * DIM
    constant = tl.load(constants + request)
    positions += request * ROOM
    scores += request * ROOM
    waiting += request * ROOM
    # `scores` holds all that was found; `waiting` the same, less what was walked from.
    slot = tl.arange(0, LIST)
    is_slot = slot < ROOM
    tl.store(waiting + slot, tl.full([LIST], float("-inf"), tl.float32), mask=is_slot)
    tl.store(scores + slot, tl.full([LIST], float("-inf"), tl.float32), mask=is_slot)
    tl.debug_barrier()

    # -- land: all that the nearest partitions of each point hold
    # The nearest groups of partitions are found first: measuring all centres would cost more.
    lane = tl.arange(0, PARTITION)
    numbers_of_groups = tl.arange(0, ALL_GROUPS)
    nearest_groups = tl.arange(0, NEAR)
    evaluated = 0
    for start in tl.static_range(STARTS):
        point = points + (request * STARTS + start) * DIM
        far = tl.zeros([ALL_GROUPS], dtype=tl.float32)
        is_group = numbers_of_groups < group_count
        for column in tl.static_range(DIM):
            number = tl.load(point + column)
            centre = tl.load(groups + numbers_of_groups * DIM + column, mask=is_group, other=0.0)
            far += (centre - number) * (centre - number)
        far = tl.where(is_group, far, float("inf"))
        chosen = tl.zeros([NEAR], dtype=tl.int32)
        for number in tl.static_range(NEAR):
            nearest = tl.argmin(far, axis=0)
            chosen = tl.where(nearest_groups == number, nearest, chosen)
            far = tl.where(numbers_of_groups == nearest, float("inf"), far)
        # Within these groups, the centres of all partitions are measured.
        partitions = chosen[:, None] * SIZE + tl.arange(0, SIZE)[None, :]  # (NEAR, SIZE)
        gaps = tl.zeros([NEAR, SIZE], dtype=tl.float32)
        for column in tl.static_range(DIM):
            number = tl.load(point + column)
            centre = tl.load(centres + partitions * DIM + column)
            gaps += (centre - number) * (centre - number)
        gaps = tl.reshape(gaps, [NEAR * SIZE])
        partitions = tl.reshape(partitions, [NEAR * SIZE])
        there_is = tl.arange(0, NEAR * SIZE)
        for number in tl.static_range(PARTITIONS):
            nearest = tl.argmin(gaps, axis=0)
            partition = tl.max(tl.where(there_is == nearest, partitions, -1), axis=0).to(tl.int64)
            gaps = tl.where(there_is == nearest, float("inf"), gaps)
            there = partition * count // total + lane
            is_arm = there < (partition + 1) * count // total
            # Points may share a partition: it is listed whole, so its first position is enough.
            known = tl.load(positions + slot, mask=is_slot, other=-1)
            first_position = (partition * count // total).to(tl.int32)
            is_known = tl.max((known == first_position).to(tl.int32), axis=0) > 0
            is_arm = is_arm & (is_known == 0)
            marks = _scores(
                there,
                is_arm,
                first,
                bias,
                last,
                wide,
                constant,
                vectors,
                LEAK,
                DIM,
                WIDTH,
                UNITS,
                PARTITION,
            )
            offset = (start * PARTITIONS + number) * PARTITION + lane
            tl.store(positions + offset, tl.where(is_arm, there.to(tl.int32), -1))
            tl.store(scores + offset, marks)
            tl.store(waiting + offset, marks)
            evaluated += tl.sum(is_arm.to(tl.int32), axis=0)
            tl.debug_barrier()

    # -- the outermost arms come along: the centre of a partition says little of them
    for part in tl.static_range((FAR + PARTITION - 1) // PARTITION):
        there = tl.load(
            outermost + part * PARTITION + lane, mask=part * PARTITION + lane < FAR, other=-1
        )
        known = tl.load(positions + slot, mask=is_slot, other=-1)
        is_known = tl.max((there[:, None] == known[None, :]).to(tl.int32), axis=1) > 0
        is_arm = (there >= 0) & (is_known == 0)
        marks = _scores(
            there.to(tl.int64),
            is_arm,
            first,
            bias,
            last,
            wide,
            constant,
            vectors,
            LEAK,
            DIM,
            WIDTH,
            UNITS,
            PARTITION,
        )
        offset = (STARTS * PARTITIONS + part) * PARTITION + lane
        tl.debug_barrier()
        tl.store(positions + offset, tl.where(is_arm, there, -1))
        tl.store(scores + offset, marks)
        tl.store(waiting + offset, marks)
        evaluated += tl.sum(is_arm.to(tl.int32), axis=0)
        tl.debug_barrier()

    # -- walk: the neighbours of the best that were not walked from
    # What a hop finds is walked from in the next one: as in the compiled search, hop by hop.
    near = tl.arange(0, BESIDE)
    for hop in tl.static_range(HOPS):
        known_until = LANDED + hop * BEAM * BESIDE
        for one in tl.static_range(BEAM):
            left = tl.load(waiting + slot, mask=slot < known_until, other=float("-inf"))
            top = tl.argmax(left, axis=0)
            is_some = tl.max(left, axis=0) > float("-inf")
            tl.debug_barrier()  # all lanes have read the list before one of them writes
            tl.store(waiting + top, float("-inf"))
            middle = tl.load(positions + top).to(tl.int64)
            beside = tl.load(graph + middle * BESIDE + near, mask=is_some & (near >= 0), other=-1)
            known = tl.load(positions + slot, mask=is_slot, other=-1)
            is_known = tl.max((beside[:, None] == known[None, :]).to(tl.int32), axis=1) > 0
            is_arm = (beside >= 0) & (is_known == 0)
            marks = _scores(
                beside.to(tl.int64),
                is_arm,
                first,
                bias,
                last,
                wide,
                constant,
                vectors,
                LEAK,
                DIM,
                WIDTH,
                UNITS,
                BESIDE,
            )
            offset = known_until + one * BESIDE + near
            tl.debug_barrier()
            tl.store(positions + offset, tl.where(is_arm, beside, -1))
            tl.store(scores + offset, marks)
            tl.store(waiting + offset, marks)
            evaluated += tl.sum(is_arm.to(tl.int32), axis=0)
            tl.debug_barrier()

    # -- the best of all: COUNT is small, so the highest is taken again and again
    marks = tl.load(scores + slot, mask=is_slot, other=float("-inf"))
    for number in tl.static_range(COUNT):
        top = tl.argmax(marks, axis=0)
        tl.store(best_scores + request * COUNT + number, tl.max(marks, axis=0))
        tl.store(best_positions + request * COUNT + number, tl.load(positions + top))
        marks = tl.where(slot == top, float("-inf"), marks)
    tl.store(found + request, evaluated.to(tl.int64))
