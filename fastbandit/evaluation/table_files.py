"""Columns of Parquet and CSV files: numbers where all cells are, else text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.features.csv_files import read_csv
from fastbandit.features.table_files import check_any, is_parquet, open_parquet

Column = NDArray[Any]


def read_columns(
    path: Path,
    columns: Sequence[str],
    *,
    texts: Collection[str] = (),
    firsts: Collection[str] = (),
) -> dict[str, Column]:
    """Read columns, lists as (n, d); of lists in the columns `firsts` the first value alone.

    No number is NaN and no text is "". The columns `texts` of a CSV file stay as they are written.
    """
    if is_parquet(path):
        file = open_parquet(path)
        check_any(file.metadata.num_rows, path)
        return {
            c: _from_arrow(file.read(columns=[c]).column(0), c, path, is_first=c in firsts)
            for c in columns
        }
    table = read_csv(path, columns)
    check_any(len(next(iter(table.values()))), path)
    return {c: np.array(cells) if c in texts else _parsed(cells) for c, cells in table.items()}


def _parsed(cells: list[str]) -> Column:
    try:
        return np.array([cell or "nan" for cell in cells]).astype(np.float64)
    except ValueError:
        return np.array(cells)


# -- Parquet


def _from_arrow(column: Any, name: str, path: Path, *, is_first: bool) -> Column:
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if any(is_one(column.type) for is_one in kinds):
        return _from_lists(column, name, path, is_first=is_first)
    return _plain(column, name, path)


def _from_lists(column: Any, name: str, path: Path, *, is_first: bool) -> Column:
    """Return lists of one length as (n, d), or the first value of each, of whatever length."""
    from pyarrow import compute

    if is_first:
        column = compute.list_slice(column, 0, 1)
    lengths = compute.fill_null(compute.list_value_length(column), 0).to_numpy()
    is_there = lengths > 0
    found = np.unique(lengths[is_there])
    if len(found) > 1:
        raise DataError(
            f"{path} needs lists of one length in the column {name!r}: found lengths "
            f"{found[:5].tolist()}. Drop the rows of another length."
        )
    flat = _plain(compute.list_flatten(column), name, path)
    width = int(found.max(initial=1))
    if is_there.all():
        made = flat.reshape(-1, width)
    else:
        kind = flat.dtype if flat.dtype.kind == "U" else np.float64
        made = np.full((len(column), width), "" if flat.dtype.kind == "U" else np.nan, dtype=kind)
        made[is_there] = flat.reshape(-1, width)
    return made[:, 0] if is_first else made


def _plain(column: Any, name: str, path: Path) -> Column:
    """Return numbers, truths as numbers, or texts; raise where the type is another."""
    from pyarrow import float64, types, uint8

    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return np.asarray(column.fill_null("").to_numpy(zero_copy_only=False)).astype(str)
    if types.is_boolean(kind):
        column = column.cast(uint8())
    elif types.is_decimal(kind):
        column = column.cast(float64())
    elif not types.is_integer(kind) and not types.is_floating(kind):
        raise DataError(
            f"{path} needs numbers, texts or lists of numbers in the column {name!r}: its type is "
            f"{kind}. Turn it into numbers, or leave it out."
        )
    return np.asarray(column.to_numpy(zero_copy_only=False))
