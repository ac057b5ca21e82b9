"""The best arms by their own constants, listed beforehand for a bank of draws.

A draw of arms' constants does not depend on the context. So the arms that are best by their own
part alone can be listed once for each of a bank of draws; a decision's seed picks one of them. A
search scores what its list holds beside what it finds by the features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.partitions import Floats, Positions
from fastbandit.compiler.compiled import compiled
from fastbandit.noise.draws import normal_at

BANK = 512
"""So many draws of arms' own constants a posterior has."""
LISTED = 256
"""So many arms a list holds at most."""
_ARMS = 5  # the stream of `fastbandit.noise.philox`


@compiled(allocates=False)
def bank_seed(seed: np.uint64, stamp: int) -> np.uint64:
    """Return the seed that arms' own noise comes from: one of a bank's."""
    return np.uint64(stamp) * np.uint64(BANK) + seed % np.uint64(BANK)


@compiled(allocates=False)
def own_constant(
    means: Floats, deviations: Floats, row: int, seed: np.uint64, scale: np.float32, is_drawn: bool
) -> np.float32:
    """Return an arm's own part under a draw or a bound; arms that came later have none."""
    if row >= len(means):
        return np.float32(0.0)
    width = scale * deviations[row]
    if width == 0:
        return means[row]
    return means[row] + width * (normal_at(seed, row, _ARMS) if is_drawn else np.float32(1.0))


def own_lists(
    means: Floats, deviations: Floats, *, scale: float, is_drawn: bool, stamp: int
) -> tuple[Positions, Floats]:
    """Return rows and own parts of the best arms under each draw of the bank, best first.

    A bound, and a draw of no width, have one list. Rows are -1 where a list ends.
    """
    rows = np.flatnonzero((means != 0) | (deviations > 0)).astype(np.int32)
    draws = _draws(deviations, scale, is_drawn)
    size = min(LISTED, len(rows))
    listed = np.full((draws, size), -1, dtype=np.int32)
    values = np.full((draws, size), -np.inf, dtype=np.float32)
    if size:
        _fill(rows, means, deviations, np.float32(scale), is_drawn, stamp, listed, values)
    return listed, values


@compiled()
def _fill(
    rows: Positions,
    means: Floats,
    deviations: Floats,
    scale: np.float32,
    is_drawn: bool,
    stamp: int,
    listed: Positions,
    values: Floats,
) -> None:
    """Put rows into lists that may hold others."""
    for draw in range(len(listed)):
        seed, held = bank_seed(np.uint64(draw), stamp), 0
        while held < listed.shape[1] and listed[draw, held] >= 0:
            held += 1
        for row in rows:
            value = own_constant(means, deviations, row, seed, scale, is_drawn)
            held = _insert(listed[draw], values[draw], held, row, value)


@compiled()
def _insert(listed: Positions, values: Floats, held: int, row: int, value: np.float32) -> int:
    """Put a row where it belongs, the lower row first among equals; return how many are held."""
    last = len(listed) - 1
    if held > last and not (value > values[last] or (value == values[last] and row < listed[last])):
        return held
    slot = min(held, last)
    while slot > 0 and (
        values[slot - 1] < value or (values[slot - 1] == value and listed[slot - 1] > row)
    ):
        values[slot], listed[slot] = values[slot - 1], listed[slot - 1]
        slot -= 1
    values[slot], listed[slot] = value, row
    return min(held + 1, last + 1)


def _draws(deviations: Floats, scale: float, is_drawn: bool) -> int:
    return BANK if is_drawn and scale and bool((deviations > 0).any()) else 1


def renewed_lists(
    lists: tuple[Positions, Floats],
    means: Floats,
    deviations: Floats,
    changed: NDArray[np.int64],
    *,
    scale: float,
    is_drawn: bool,
    stamp: int,
) -> tuple[Positions, Floats]:
    """Return lists after the constants of some rows changed, without a look at all the others.

    Above the last part of a list as it was, they are what `own_lists` makes anew; below it, rows
    that no list held may be missing.
    """
    before, parts = lists
    if len(before) != _draws(deviations, scale, is_drawn):  # the first width, or none any more
        return own_lists(means, deviations, scale=scale, is_drawn=is_drawn, stamp=stamp)
    is_touched = (means != 0) | (deviations > 0)
    size = min(LISTED, int(np.count_nonzero(is_touched)))
    listed = np.full((len(before), size), -1, dtype=np.int32)
    values = np.full((len(before), size), -np.inf, dtype=np.float32)
    is_changed = np.zeros(len(means), dtype=np.bool_)
    is_changed[changed] = True
    if size:
        rows = np.flatnonzero(is_changed & is_touched).astype(np.int32)
        _keep(before, parts, is_changed, listed, values)
        _fill(rows, means, deviations, np.float32(scale), is_drawn, stamp, listed, values)
    return listed, values


@compiled()
def _keep(
    before: Positions,
    parts: Floats,
    is_changed: NDArray[np.bool_],
    listed: Positions,
    values: Floats,
) -> None:
    """Copy what lists held, but for the rows that changed."""
    size = listed.shape[1]
    for draw in range(len(before)):
        held = 0
        for slot in range(before.shape[1]):
            row = before[draw, slot]
            if row < 0 or held == size:
                break
            if not is_changed[row]:
                listed[draw, held], values[draw, held] = row, parts[draw, slot]
                held += 1


@compiled()
def own_parts(
    means: Floats,
    deviations: Floats,
    rows: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    scale: np.float32,
    is_drawn: bool,
    stamp: int,
    parts: Floats,
) -> None:
    """Work out the own parts of rows (b, K) for each seed: parts (B, K)."""
    for request in range(len(seeds)):
        seed = bank_seed(seeds[request], stamp)
        mine = rows[request % len(rows)]
        for number in range(len(mine)):
            row = max(mine[number], 0)
            parts[request, number] = own_constant(means, deviations, row, seed, scale, is_drawn)
