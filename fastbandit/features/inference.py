"""What the columns of a table seem to mean, and why: `Schema.infer`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np

from fastbandit.declaration import known_name
from fastbandit.errors import ShapeError
from fastbandit.features.column_settings import column_from
from fastbandit.features.columns import Column, Flag, Ignored, Number, is_missing, listed
from fastbandit.features.date_columns import Date
from fastbandit.features.mapping_columns import FeatureMapping
from fastbandit.features.schema import Schema, fitted
from fastbandit.features.tables import Table
from fastbandit.features.text_columns import MOST_LEVELS, Category, CategorySet, Id, Text
from fastbandit.features.vector_columns import Picture, Vector

_SAMPLE = 20_000  # rows that are looked at, evenly spaced
_MANY = 20  # rows from which on "all differ" says something
_SEPARATORS = ("|", ";")
_CODE = re.compile(
    r"(^|_)(?i:id|ids|code|key|zip|postcode|sku|uuid)$|[a-z](Id|ID|Ids|IDs|Code|Key|Zip|Sku|Uuid)$"
)
_TIME = re.compile(r"(?i:time|date)|(^|_)(?i:at|ts)$|[a-z](At|TS)$")
_EPOCHS = {"s": ("seconds", 1.0), "ms": ("milliseconds", 1000.0)}
_PLAUSIBLE = (5e8, 4e9)  # seconds since 1970: from 1985 to 2096
_FLAG_TEXTS = {"true", "false", "yes", "no", "t", "f", "y", "n"}


class _Seen(NamedTuple):
    """Some values of a column that are not missing, and how many were looked at."""

    name: str
    values: list[Any]
    looked: int

    @property
    def distinct(self) -> int:
        with suppress(TypeError):
            return len(set(self.values))
        return len({str(value) for value in self.values})


def infer(table: Table, kinds: Mapping[str, Any]) -> Schema:
    """Return a schema for a table; `kinds` name what is known better."""
    if not table.rows or not table.columns:
        raise ShapeError(
            f"A schema needs a table with columns and rows: got {len(table.columns)} columns and "
            f"{table.rows} rows. Give one with some rows."
        )
    for name in kinds:
        known_name("column", name, tuple(table.columns))
    columns = [_inferred(table, name, kinds.get(name)) for name in table.columns]
    return Schema(tuple(fitted(column, table) for column in columns))


def _inferred(table: Table, name: str, known: Any) -> Column:
    if known is not None:
        column = column_from(name, known) if isinstance(known, str | Mapping) else known
        found: Column = column if column.note else replace(column, note="as you said")
        return found
    step = -(-table.rows // _SAMPLE)
    values = listed(table.values(name, slice(0, table.rows, step)))
    seen = _Seen(name, [value for value in values if not is_missing(value)], len(values))
    found = _kind_of(seen, is_text=table.is_text)
    gaps = len(values) - len(seen.values)
    share = f"{gaps / len(values):.0%}" if gaps >= 0.01 * len(values) else "under 1%"
    missing = f"; {share} missing" if gaps else ""
    return replace(found, note=f"{found.note}{missing}")  # type: ignore[type-var]


def _kind_of(seen: _Seen, *, is_text: bool) -> Any:
    name, values = seen.name, seen.values
    if not values:
        return Ignored(name, note="no value at all")
    first = values[0]
    if any(isinstance(value, Mapping) for value in values):
        return FeatureMapping(name, note="dicts of features")
    if isinstance(first, list | tuple | set | frozenset | np.ndarray):
        return _of_lists(seen)
    if seen.distinct == 1 and seen.looked > 1 and len(values) == seen.looked:
        return Ignored(name, note=f"all rows have {_short(first)}")
    if all(isinstance(value, bool | np.bool_) for value in values):
        return Flag(name, note="true and false")
    if all(isinstance(value, datetime | date | np.datetime64) for value in values):
        return Date(name, note="dates")
    if all(isinstance(value, int | float | np.number) for value in values):
        return _of_numbers(seen, np.array(values, dtype=np.float64), texts=False)
    if all(isinstance(value, str) for value in values):
        return _of_texts(seen, is_text=is_text)
    return Category(name, note="values of several types")


def _of_lists(seen: _Seen) -> Any:
    shapes = {
        np.shape(value) for value in seen.values if isinstance(value, list | np.ndarray | tuple)
    }
    numeric = all(np.asarray(list(value)).dtype.kind in "fiu" for value in seen.values[:100])
    if numeric and len(shapes) == 1 and len(next(iter(shapes))) == 1 and next(iter(shapes))[0]:
        size = next(iter(shapes))[0]
        return Vector(seen.name, dim=size, note=f"lists of {size} numbers")
    if numeric and all(len(shape) == 2 for shape in shapes):
        return Picture(seen.name, note="rows of pixels")
    return CategorySet(seen.name, note="lists of several lengths")


def _of_numbers(seen: _Seen, numbers: Any, *, texts: bool) -> Any:
    written = ", written as text" if texts else ""
    is_whole = bool((numbers == np.floor(numbers)).all())
    if set(np.unique(numbers)) <= {0.0, 1.0}:
        return Flag(seen.name, note=f"zeros and ones{written}")
    if is_whole and _CODE.search(seen.name):
        return _of_names(seen, "a code by its name")
    for unit, (said, many) in _EPOCHS.items() if not texts and _TIME.search(seen.name) else ():
        if (numbers >= _PLAUSIBLE[0] * many).all() and (numbers <= _PLAUSIBLE[1] * many).all():
            return Date(seen.name, unit=unit, note=f"{said} since 1970, by name and size")
    low, middle, high = np.quantile(numbers, (0.01, 0.5, 0.99))
    is_heavy = numbers.min() >= 0 and high - middle > 5 * max(middle - low, 1e-12) and high > 2
    said = "heavy-tailed numbers" if is_heavy else "whole numbers" if is_whole else "numbers"
    return Number(seen.name, log=bool(is_heavy), texts=texts, note=f"{said}{written}")


def _of_texts(seen: _Seen, *, is_text: bool) -> Any:
    name, values = seen.name, seen.values
    if {value.lower() for value in values} <= _FLAG_TEXTS and seen.distinct <= 2 and is_text:
        return Flag(name, note="true and false, written as text")
    numbers = _numbers(values)
    has_zeros = any(len(v) > 1 and v[0] == "0" and v.isdigit() for v in values)
    if numbers is not None and not has_zeros:
        return _of_numbers(seen, numbers, texts=not is_text)
    if _are_dates(values):
        return Date(name, note="dates, written as text")
    for separator in _SEPARATORS:
        if _are_sets(values, separator):
            return CategorySet(name, separator=separator, note=f"names parted by {separator!r}")
    words = float(np.mean([len(value.split()) for value in values]))
    if words >= 2.5 and (seen.distinct > MOST_LEVELS or seen.distinct > 0.5 * len(values)):
        return _of_words(seen, words)
    return _of_names(seen, "names" if words < 2.5 else "few texts")


def _of_words(seen: _Seen, words: float) -> Any:
    vocabulary = len({word for value in seen.values[:5000] for word in value.lower().split()})
    dim = 16 if vocabulary < 5000 else 64  # lab experiment text-widths
    return Text(seen.name, dim=dim, note=f"texts of {words:.0f} words, {vocabulary:,} different")


def _of_names(seen: _Seen, why: str) -> Any:
    count = seen.distinct
    if count == len(seen.values) >= _MANY:
        return Ignored(seen.name, note=f"{why}: another one in each row")
    if count > MOST_LEVELS and _CODE.search(seen.name):
        return Id(seen.name, note=f"{why}: {count:,} different")
    return Category(seen.name, note=f"{why}: {count:,} different")


def _numbers(values: Sequence[str]) -> Any:
    try:
        return np.array([float(value) for value in values])
    except ValueError:
        return None


def _are_dates(values: Sequence[str]) -> bool:
    try:
        for value in values:
            datetime.fromisoformat(value.strip())
    except ValueError:
        return False
    return all(len(value.strip()) >= 8 for value in values)


def _are_sets(values: Sequence[str], separator: str) -> bool:
    """Return whether texts are names with separators: few different ones, each often."""
    share = np.mean([separator in value for value in values])
    names = [name for value in values for name in value.split(separator)]
    few = max(8, 0.2 * len(values), 0.4 * len(names))
    return bool(share > 0.2 and len(set(names)) <= few)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 30 else f"{text[:27]}..."
