"""Rows of named values, whatever they come in: frames, Arrow, a list of dicts, one dict."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import ShapeError, ValueOfColumnError

_PLAIN = "fiubM"  # NumPy's numbers, booleans and dates


class InUtc(np.ndarray):
    """Times in UTC that came with a zone: whatever zone a column declares does not matter."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, of so many rows; `values` reads some rows of one.

    Cells of a table that `is_text` are texts, "" where there is none, as in CSV. `schema` says
    what the columns mean, where that is known. In one that `is_gathered` all names that are no
    columns of a schema are one column already.
    """

    columns: Mapping[str, Any]
    rows: int
    is_text: bool = False
    schema: Any = None
    is_gathered: bool = False

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def values(self, name: str, rows: slice = slice(None)) -> Sequence[Any] | NDArray[Any]:
        """Return rows of a column as a list, or as an array of numbers, booleans or dates."""
        column = self.columns[name]
        if isinstance(column, list | tuple):
            return column[rows]
        if isinstance(column, np.ndarray):
            some = column[rows]
            return some if some.dtype.kind in _PLAIN else some.tolist()
        first, last, step = rows.indices(self.rows)
        if hasattr(column, "to_pylist"):  # Arrow
            return _from_arrow(column.slice(first, last - first))[::step]
        some = column.iloc[first:last] if hasattr(column, "iloc") else column[first:last]
        return _from_series(some)[::step]

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> Table:
        """Return the rows at some positions."""
        found: dict[str, Any] = {}
        for name in self.columns:
            values = self.values(name)
            if isinstance(values, np.ndarray):
                found[name] = values[rows]
            else:
                found[name] = [values[row] for row in rows]
        return type(self)(found, len(rows), self.is_text, is_gathered=self.is_gathered)

    def without(self, names: Sequence[str]) -> Table:
        """Return the table without some columns."""
        left = {name: column for name, column in self.columns.items() if name not in names}
        return type(self)(left, self.rows, self.is_text, is_gathered=self.is_gathered)

    def dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dict."""
        columns = {name: _as_list(self.values(name)) for name in self.columns}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def is_named(raw: Any) -> bool:
    """Return whether rows have named columns: a frame, an Arrow table, dicts."""
    if isinstance(raw, Table | Mapping):
        return not hasattr(raw, "tocsr")  # a sparse matrix may be a dict, too
    if isinstance(raw, list | tuple):
        return len(raw) > 0 and isinstance(raw[0], Mapping)
    if _is_arrow(raw):
        return True
    names = getattr(raw, "columns", None)  # those of a frame without names are numbers
    return (
        names is not None and hasattr(raw, "__getitem__") and isinstance(next(iter(names), ""), str)
    )


def table_of(raw: Any, *, what: str) -> Table:
    """Return named columns; one dict of single values is one row."""
    if isinstance(raw, Table):
        return raw
    if isinstance(raw, Mapping):
        return _from_mapping(raw, what)
    if isinstance(raw, list | tuple):
        return _from_dicts(raw, what)
    if hasattr(raw, "collect") and hasattr(raw, "collect_schema"):
        raw = raw.collect()  # a lazy frame of polars
    names = list(raw.column_names) if _is_arrow(raw) else list(raw.columns)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise ValueOfColumnError(
            f"The columns of the {what} need names: got {odd!r} ({type(odd).__name__}). Name them, "
            f"or give an array: frame.to_numpy()."
        )
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueOfColumnError(
            f"Each column of the {what} needs a name of its own: {twice!r} stands there twice. "
            f"Rename or drop one of the two.",
            column=twice,
        )
    columns = {name: raw.column(name) if _is_arrow(raw) else raw[name] for name in names}
    return Table(columns, len(raw))


def _is_arrow(raw: Any) -> bool:
    return hasattr(raw, "column_names") and hasattr(raw, "num_rows")


def _from_mapping(raw: Mapping[str, Any], what: str) -> Table:
    are_lists = [
        isinstance(v, list | tuple | np.ndarray) or hasattr(v, "iloc") for v in raw.values()
    ]
    if not raw or not all(are_lists):
        return Table({name: [value] for name, value in raw.items()}, 1)
    sizes = {len(value) for value in raw.values()}
    if len(sizes) != 1:
        raise ShapeError(
            f"The columns of the {what} need as many values each: got {sorted(sizes)}. Give a "
            f"value for each row; one row alone goes into a list of one dict."
        )
    return Table(dict(raw), sizes.pop())


def _from_dicts(raw: Sequence[Any], what: str) -> Table:
    """Return rows as columns, the names of the first ones first; some may lack some."""
    are_alike = True
    if not raw:
        raise ShapeError(f"The {what} need at least one row: got none. Give one.")
    names = dict.fromkeys(raw[0]) if isinstance(raw[0], Mapping) else {}
    for number, row in enumerate(raw):
        if not isinstance(row, Mapping):
            raise ShapeError(
                f"The {what} need a dict for each row: got a {type(row).__name__} in row {number}. "
                f"Give each as {{name: value}}."
            )
        if row.keys() != names.keys():
            names |= dict.fromkeys(row)  # whoever reads them says which are needed
            are_alike = False
    if are_alike:
        return Table({name: [row[name] for row in raw] for name in raw[0]}, len(raw))
    return _Ragged({name: [row.get(name, ABSENT) for row in raw] for name in names}, len(raw))


class _Absent:
    """What stands where a row lacks a name."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def gathered(raw: Any, apart: Collection[str], *, into: str, what: str) -> Table:
    """Return a table in which all columns but some are one: a dict for each row.

    Cells of text are read as JSON where they are that, such as numbers.
    """
    if isinstance(raw, list | tuple) and all(isinstance(row, Mapping) for row in raw):
        rows = [gathered_row(row, apart, into=into) for row in raw]  # names may be very many
        return replace(table_of(rows, what=what), is_gathered=True)
    table = table_of(raw, what=what)
    if table.is_gathered:
        return table
    rest = [name for name in table.columns if name not in apart]
    values: list[dict[str, Any]] = [{} for _ in range(table.rows)]
    for name in rest:
        for row, value in zip(values, _as_list(table.values(name)), strict=True):
            if value is not ABSENT and not (table.is_text and value == ""):
                row[name] = parsed_text(value) if table.is_text else value
    own = {name: table.columns[name] for name in table.columns if name in apart}
    return replace(table, columns={**own, into: values}, is_gathered=True)


def gathered_row(row: Mapping[str, Any], apart: Collection[str], *, into: str) -> dict[str, Any]:
    """Return a row in which all names but some are one."""
    if not apart:
        return {into: row}
    rest = {name: value for name, value in row.items() if name not in apart}
    return {**{name: row[name] for name in apart if name in row}, into: rest}


def parsed_text(text: Any) -> Any:
    """Return what a cell of text holds: JSON where it is that, else the text itself."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


class _Ragged(Table):
    """A table in which some rows lack a name."""


def lacks_some(table: Table) -> bool:
    """Return whether some rows lack a name that others have."""
    return isinstance(table, _Ragged)


def _from_arrow(column: Any) -> Sequence[Any] | NDArray[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_struct(kind):
        found: list[Any] = column.to_pylist()
        return found
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        times: NDArray[Any] = column.cast(pa.timestamp(kind.unit)).to_numpy()  # which are in UTC
        return times.view(InUtc)
    if pa.types.is_fixed_size_list(kind) or pa.types.is_decimal(kind) or pa.types.is_time(kind):
        found = column.to_pylist()
        return found
    array: NDArray[Any] = column.to_numpy()
    return array if array.dtype.kind in _PLAIN else array.tolist()


def _from_series(column: Any) -> Sequence[Any] | NDArray[Any]:
    """Return a column of pandas or polars."""
    kind, is_zoned = getattr(column, "dtype", None), False
    if getattr(kind, "tz", None) is not None:  # pandas
        is_zoned = True
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if getattr(kind, "time_zone", None) is not None:  # polars
        is_zoned = True
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if array.dtype.kind == "M" and is_zoned:
        return np.asarray(array).view(InUtc)
    if array.dtype.kind in _PLAIN:
        plain: NDArray[Any] = array
        return plain
    values: list[Any] = column.to_list() if hasattr(column, "to_list") else array.tolist()
    return values


def _as_list(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
    if isinstance(values, InUtc):
        times = values.astype("datetime64[us]").tolist()
        return [None if one is None else one.replace(tzinfo=UTC) for one in times]
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
