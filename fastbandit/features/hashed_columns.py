"""Writing hashed columns of a row: names and texts, all in one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from fastbandit.features.columns import Row, Write
from fastbandit.features.hashing import RARITIES, add_row, crc_table, joined_bytes


def hashed_writer(placed: Sequence[tuple[int, Any]]) -> Callable[[Sequence[Any], Row], None]:
    """Return what writes the values of hashed columns, all of a row in one compiled call."""
    reads = [column.as_bytes for _, column in placed]
    kinds = [getattr(column, "weights", None) for _, column in placed]
    weights = np.array([one for one in kinds if one is not None]).reshape(-1, RARITIES)
    number, table, places = count(), crc_table(), np.empty((len(placed), 5), np.int64)
    spaces, stop = [np.zeros(0, np.int8)], 0
    for row, ((at, column), kind) in enumerate(zip(placed, kinds, strict=True)):
        spaces.append(np.zeros(0, np.int8) if kind is None else column.directions.ravel())
        start, stop = stop, stop + len(spaces[-1])
        places[row] = at, at + column.width, -1 if kind is None else next(number), start, stop
    joined = np.concatenate(spaces)

    def write(values: Sequence[Any], out: Row) -> None:
        read = [as_bytes(value) for as_bytes, value in zip(reads, values, strict=True)]
        add_row(joined_bytes(read), places, weights, joined, table, out)

    return write


def one_writer(column: Any, at: int) -> Write:
    """Return what writes the values of one hashed column."""
    write = hashed_writer([(at, column)])
    return lambda value, out: write((value,), out)
