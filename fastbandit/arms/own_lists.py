"""The best arms by their own constants, listed beforehand for a bank of draws.

A draw of arms' constants does not depend on the context. So the arms that are best by their own
part alone can be listed once for each of a bank of draws; a decision's seed picks one of them. A
search scores what its list holds beside what it finds by the features.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fastbandit.arms.cells import Floats, Places
from fastbandit.arms.draws import normal_at

BANK = 512
"""So many draws of arms' own constants a posterior has."""
LISTED = 256
"""So many arms a list holds at most."""
_ARMS = 5  # the stream of `fastbandit.noise`


@njit(cache=True, nogil=True)
def bank_seed(seed: np.uint64, stamp: int) -> np.uint64:
    """Return the seed that arms' own noise comes from: one of a bank's."""
    return np.uint64(stamp) * np.uint64(BANK) + seed % np.uint64(BANK)


@njit(cache=True, nogil=True)
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
) -> tuple[Places, Floats]:
    """Return rows and own parts of the best arms under each draw of the bank, best first.

    A bound, and a draw of no width, have one list. Rows are -1 where a list ends.
    """
    rows = np.flatnonzero((means != 0) | (deviations > 0)).astype(np.int32)
    draws = BANK if is_drawn and scale else 1
    size = min(LISTED, len(rows))
    listed = np.full((draws, size), -1, dtype=np.int32)
    values = np.full((draws, size), -np.inf, dtype=np.float32)
    if size:
        _fill(rows, means, deviations, np.float32(scale), is_drawn, stamp, listed, values)
    return listed, values


@njit(cache=True, nogil=True)
def _fill(
    rows: Places,
    means: Floats,
    deviations: Floats,
    scale: np.float32,
    is_drawn: bool,
    stamp: int,
    listed: Places,
    values: Floats,
) -> None:
    draws, size = listed.shape
    for draw in range(draws):
        seed = bank_seed(np.uint64(draw), stamp)
        kept = 0
        for row in rows:
            value = own_constant(means, deviations, row, seed, scale, is_drawn)
            if kept == size and value <= values[draw, size - 1]:
                continue
            slot = min(kept, size - 1)
            while slot > 0 and values[draw, slot - 1] < value:
                values[draw, slot] = values[draw, slot - 1]
                listed[draw, slot] = listed[draw, slot - 1]
                slot -= 1
            values[draw, slot], listed[draw, slot] = value, row
            kept = min(kept + 1, size)


@njit(cache=True, nogil=True)
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
