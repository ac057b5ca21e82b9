"""Columns of Parquet and CSV files by name, and those of numbers as arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError
from fastbandit.features.csv_files import read_csv
from fastbandit.features.table_files import check_any, is_parquet, open_parquet
from fastbandit.features.tables import Table, table_of

Column = NDArray[Any]


def read_columns(path: Path, columns: Sequence[str]) -> Table:
    """Read some columns of a file; cells of CSV are texts."""
    if is_parquet(path):
        file = open_parquet(path)
        check_any(file.metadata.num_rows, path)
        arrow = file.read(columns=list(columns))
        found = table_of(arrow, what="rows")
        written = [one.name for one in arrow.schema if b"json" in (one.metadata or {})]
        read = {
            name: [json.loads(cell or "null") for cell in found.values(name)] for name in written
        }
        return replace(found, columns={**found.columns, **read})
    cells = read_csv(path, columns)
    rows = len(next(iter(cells.values())))
    check_any(rows, path)
    return Table(cells, rows, is_text=True)


def numbers_of(table: Table, name: str) -> NDArray[np.float64] | None:
    """Return a column of numbers, or of lists of as many, as (n, d): NaN where there is none.

    It is None where a value is something else.
    """
    lists = _lists(table.columns[name])
    if lists is not None:
        return lists
    values = table.values(name)
    if table.is_text:
        values = [cell or "nan" for cell in values]
    elif not isinstance(values, np.ndarray) and any(isinstance(one, str) for one in values):
        return None
    try:
        found = np.asarray(values).astype(np.float64)
    except (TypeError, ValueError):  # texts, or lists of several lengths
        return None
    is_date = isinstance(values, np.ndarray) and values.dtype.kind == "M"
    return None if is_date or found.ndim > 2 else found.reshape(len(found), -1)


def first_of(table: Table, name: str) -> Column:
    """Return a column of single values; of a list, such as a slate, the first."""
    column = table.columns[name]
    if _is_arrow_list(column):
        from pyarrow import compute

        values: Any = compute.list_slice(column, 0, 1).to_pylist()
        values = [one[0] if one else None for one in values]
    else:
        values = table.values(name)
    if isinstance(values, np.ndarray):
        return values
    if any(isinstance(one, str) for one in values):
        return np.array(["" if one is None else str(one) for one in values])
    return np.array([np.nan if one is None else one for one in values])


# -- Arrow


def _is_arrow_list(column: Any) -> bool:
    if not hasattr(column, "to_pylist"):
        return False
    from pyarrow import types

    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(is_one(column.type) for is_one in kinds)


def _lists(column: Any) -> NDArray[np.float64] | None:
    """Return lists of numbers of one length as (n, d), NaN where there is none."""
    if not _is_arrow_list(column):
        return None
    from pyarrow import compute, types

    kind = column.type.value_type
    lengths = compute.fill_null(compute.list_value_length(column), 0).to_numpy()
    is_there = lengths > 0
    found = np.unique(lengths[is_there])
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if len(found) != 1 or not is_number:
        return None
    made = np.full((len(column), int(found[0])), np.nan)
    flat = compute.list_flatten(column).to_numpy()
    made[is_there] = flat.reshape(-1, int(found[0]))
    return made


def check_numbers(path: Path, name: str, table: Table) -> NDArray[np.float64]:
    """Return a column of single numbers, or say which value is none."""
    values = first_of(table, name)
    if table.is_text:
        found = numbers_of(table, name)
        if found is not None:
            return found[:, 0]
    else:
        is_decimal = values.dtype.kind == "O" and all(hasattr(v, "as_tuple") for v in values)
        if is_decimal or values.dtype.kind in "fiub":
            return values.astype(np.float64)
    first = next((n for n, one in enumerate(values.tolist()) if not _is_number(one, table)), 0)
    raise DataError(
        f"{path} needs numbers in the column {name!r}: found {str(values[first])!r} in row "
        f"{first + 1}. Name another column, or mend this one."
    )


def _is_number(value: Any, table: Table) -> bool:
    if not table.is_text:
        return False
    try:
        float(value or "nan")
    except ValueError:
        return False
    return True
