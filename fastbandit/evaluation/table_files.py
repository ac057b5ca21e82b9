"""Columns of Parquet and CSV files: numbers where all cells are, else text."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DataError, MissingExtraError
from fastbandit.evaluation.csv_files import open_text, read_csv
from fastbandit.evaluation.readers import TABLES

Column = NDArray[Any]
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def header_of(path: Path) -> list[str]:
    """Return the names of the columns."""
    if not path.name.endswith(TABLES):
        raise DataError(
            f"A table needs to be a file that ends in {', '.join(TABLES)}: got {path}. Save it as "
            f"one of these."
        )
    if is_parquet(path):
        header = list(open_parquet(path).schema_arrow.names)
    else:
        with open_text(path) as file:
            header = next(csv.reader(file), [])
    _check_header(header, path)
    return header


def is_parquet(path: Path) -> bool:
    """Return whether a file knows the types of its columns; one in CSV has texts alone."""
    return path.suffix == ".parquet"


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
        _check_any(file.metadata.num_rows, path)
        return {
            c: _from_arrow(file.read(columns=[c]).column(0), c, path, is_first=c in firsts)
            for c in columns
        }
    table = read_csv(path, columns)
    _check_any(len(next(iter(table.values()))), path)
    return {c: np.array(cells) if c in texts else _parsed(cells) for c, cells in table.items()}


def _parsed(cells: list[str]) -> Column:
    try:
        return np.array([cell or "nan" for cell in cells]).astype(np.float64)
    except ValueError:
        return np.array(cells)


# -- checks


def _check_header(header: Sequence[str], path: Path) -> None:
    if not header:
        raise DataError(
            f"{path} needs a header and a row for each round: it is empty. Write it again."
        )
    separator = next((mark for mark in _SEPARATORS if mark in header[0]), None)
    if len(header) == 1 and separator is not None:
        raise DataError(
            f"{path} needs commas between its columns: its header is {header[0][:60]!r}, with "
            f"{_SEPARATORS[separator]}. Save it with commas, or as Parquet."
        )
    twice = next((name for column, name in enumerate(header) if name in header[:column]), None)
    if twice is not None:
        raise DataError(
            f"{path} needs another name for each column: {twice!r} stands twice in its header. "
            f"Rename or drop one of the two."
        )


def _check_any(rows: int, path: Path) -> None:
    if not rows:
        raise DataError(
            f"{path} needs at least one row: it has a header alone. Write it with its rows."
        )


# -- Parquet


def open_parquet(path: Path) -> Any:
    """Open a Parquet file, or say why that cannot be."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files need pyarrow: it is not installed. Run pip install "
            "'fastbandit[evaluation]', or save the table as CSV."
        ) from error
    try:
        return ParquetFile(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} needs to be a whole Parquet file: {error}. Write it again."
        ) from error


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
