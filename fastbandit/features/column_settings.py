"""Columns from settings, in TOML or JSON, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from fastbandit.declaration import info_of, known_name
from fastbandit.features.columns import Flag, Ignored, Number
from fastbandit.features.date_columns import Date
from fastbandit.features.mapping_columns import FeatureMapping
from fastbandit.features.text_columns import Category, CategorySet, Id, Text
from fastbandit.features.vector_columns import Picture, Vector

_KINDS: dict[str, type[Any]] = {
    info_of(kind).name: kind  # type: ignore[union-attr]
    for kind in (
        *(Number, Flag, Category, CategorySet, Text, Date, Id, Vector, Picture, Ignored),
        FeatureMapping,
    )
}


def column_from(name: str, said: Any) -> Any:
    """Return the column that a table of settings, or the name of a kind, describes."""
    said = {"kind": said} if isinstance(said, str) else dict(said)
    kind_name = said.pop("kind", None)
    known_name(f"kind of the column {name!r}", kind_name, tuple(_KINDS))
    kind = _KINDS[kind_name]
    own = {one.name: one for one in fields(kind) if one.name != "name"}
    for key in said:
        known_name(f"setting of the column {name!r}", key, tuple(own))
    values = {k: tuple(v) if isinstance(v, list) and k != "default" else v for k, v in said.items()}
    numbers = {key for key, one in own.items() if isinstance(one.default, float)}
    values = {k: float(v) if k in numbers and type(v) is int else v for k, v in values.items()}
    return kind(name, **values)


def kind_of(column: Any) -> str:
    """Return the name of a column's kind."""
    info = info_of(type(column))
    assert info is not None
    return info.name


def settings_of(column: Any) -> dict[str, Any]:
    """Return a column as JSON values: its kind, and what differs from defaults."""
    own = [one for one in fields(column) if one.name != "name"]
    said = {one.name: getattr(column, one.name) for one in own}
    said = {o.name: said[o.name] for o in own if said[o.name] != o.default}
    lists = {k: list(v) if isinstance(v, tuple) else v for k, v in said.items()}
    return {"kind": kind_of(column), **lists}
