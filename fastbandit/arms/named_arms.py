"""Arms from a table of named columns: their ids, their features, and columns for predicates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastbandit.declaration import known_name
from fastbandit.errors import InputError
from fastbandit.features.columns import Flag, Ignored, Number, is_missing, listed
from fastbandit.features.date_columns import Date
from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.features.tables import Table, table_of
from fastbandit.features.text_columns import Category, Text, level_of
from fastbandit.types import Inputs

_KEY = re.compile(r"(^|_|[a-z])(id|sku|uuid|key)$|^(arm|item|article|product)$", re.IGNORECASE)
_TITLE = re.compile(r"(^|_)(name|title|label)$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class NamedArms:
    """Arms that came in a table: what each is called, is, and can be filtered by."""

    kind: Dense
    ids: list[Any] | None
    features: Inputs
    columns: dict[str, list[Any]]


def named_arms(raw: Any, ids: Iterable[Any] | str | None = None) -> NamedArms:
    """Read arms from a table; `ids` may name the column that holds them."""
    table = table_of(raw, what="arms")
    key = ids if isinstance(ids, str) else None
    if key is not None:
        known_name("column of the ids", key, tuple(table.columns))
    known = None if table.schema is None else table.schema.grown(table, what="arms")
    schema = known or arm_schema(table, key=key, has_ids=ids is not None)
    return read_named(table, schema, None if key is not None else ids)


def read_named(table: Table, schema: Schema, ids: Iterable[Any] | None = None) -> NamedArms:
    """Read arms by a schema that is known."""
    found = None if ids is None else list(ids)
    if found is None and schema.key is not None and schema.key in table.columns:
        found = _ids(table, schema.key)
    features = Inputs(dense=schema.encode(table, what="arms"))
    return NamedArms(Dense.of(schema), found, features, columns_for(table, schema))


def arm_schema(table: Table, *, key: str | None = None, has_ids: bool = False) -> Schema:
    """Infer what columns of arms mean; the first that names each arm holds their ids."""
    if key is None and not has_ids:
        key = next(
            (name for name in table.names if _KEY.search(name) and _names(table, name)), None
        )
    known = {} if key is None else {key: Ignored(key, is_id=True, note="the ids of the arms")}
    return Schema.infer(table, kinds=known)


def _names(table: Table, name: str) -> bool:
    """Return whether a column has another text or whole number in each row."""
    values = listed(table.values(name))
    are_ids = all(isinstance(v, str | int) and not isinstance(v, bool) and v != "" for v in values)
    return are_ids and len(set(values)) == len(values)


def _ids(table: Table, name: str) -> list[Any]:
    values = listed(table.values(name))
    if table.is_text and all(str(v).isdecimal() and str(int(v)) == v for v in values):
        values = [int(value) for value in values]
    gap = next((row for row, value in enumerate(values) if is_missing(value)), None)
    if gap is not None:
        raise InputError(
            f"Each arm needs an id: the column {name!r} has none in row {gap}. Fill it, or drop "
            f"that arm."
        )
    return [int(v) if isinstance(v, float) and v == int(v) else v for v in values]


def columns_for(table: Table, schema: Schema, *, title: str = "") -> dict[str, list[Any]]:
    """Return what predicates may speak of, and titles: by name, a value for each row."""
    found = {}
    for column in schema.columns:
        if column.name not in table.columns or not _is_filter(column, title):
            continue
        values = listed(table.values(column.name))
        if table.is_text:
            values = [column.from_text(text) if text else None for text in values]
        found[column.name] = _filterable(column, values)
    return found


def is_title(name: str, *, title: str) -> bool:
    """Return whether people read a column: the one that is said to be it, or by its name."""
    return name == title or bool(_TITLE.search(name))


def _is_filter(column: Any, title: str) -> bool:
    if column.secret:  # an answer might show it, and a predicate find it out
        return False
    is_text = isinstance(column, Text | Ignored) and is_title(column.name, title=title)
    return is_text or isinstance(column, Number | Flag | Category | Date)


def _filterable(column: Any, values: list[Any]) -> list[Any]:
    if isinstance(column, Number):
        return [column.number(value) for value in values]
    if isinstance(column, Flag):
        return [None if is_missing(value) else bool(value) for value in values]
    if isinstance(column, Date) and column.unit:
        many = 1.0 if column.unit == "s" else 1000.0
        return [round(column.seconds(value) * many, 3) for value in values]
    if isinstance(column, Date):
        return ["" if is_missing(value) else str(value) for value in values]
    return ["" if is_missing(value) else level_of(column, value) for value in values]
