"""One space for the texts of contexts and of arms, so that both can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fastbandit.arms.named_arms import arm_schema
from fastbandit.features.columns import listed
from fastbandit.features.schema import Schema
from fastbandit.features.tables import Table, is_named, table_of
from fastbandit.features.text_columns import Text


def with_shared_texts(
    context: Any, arms: Any, ids: Iterable[Any] | str | None = None
) -> tuple[Any, Any]:
    """Return tables of contexts and arms with schemas whose texts lie in one space.

    What is no table of names is returned as it came; a schema that is known stays as it is.
    """
    if not is_named(arms):
        return context, arms
    items = table_of(arms, what="arms")
    key = ids if isinstance(ids, str) and ids in items.columns else None
    if isinstance(context, Schema):
        if items.schema is None and _spaced(context):
            found = arm_schema(items, key=key, has_ids=ids is not None)
            return context, replace(items, schema=_in_space(found, _spaced(context)[0]))
        return context, arms
    if not is_named(context):
        return context, arms
    rows = table_of(context, what="contexts")
    known = rows.schema, items.schema
    ours = Schema.infer(rows) if known[0] is None else known[0]
    theirs = arm_schema(items, key=key, has_ids=ids is not None) if known[1] is None else known[1]
    ours, theirs = share_texts(ours, theirs, rows, items, fixed=[one is not None for one in known])
    return replace(rows, schema=ours), replace(items, schema=theirs)


def share_texts(
    context: Schema, arm: Schema, contexts: Table, arms: Table, *, fixed: Iterable[bool]
) -> tuple[Schema, Schema]:
    """Return schemas of contexts and arms whose texts lie in one space; those fixed stay."""
    sides = list(zip((context, arm), (contexts, arms), fixed, strict=True))
    texts = [[one for one in schema.columns if isinstance(one, Text)] for schema, _, _ in sides]
    if not all(texts) or all(is_fixed for _, _, is_fixed in sides):
        return context, arm
    known = [_spaced(schema) for schema, _, is_fixed in sides if is_fixed]
    if known:
        space = known[0][0] if known[0] else None
    else:
        values = [
            value
            for (_, table, _), columns in zip(sides, texts, strict=True)
            for column in columns
            for value in _values(column, table)
        ]
        dim = max(column.dim for columns in texts for column in columns)
        space = Text("every text", dim=dim).fitted(values)
    if space is None or not space.space:
        return context, arm
    ours, theirs = (one if is_fixed else _in_space(one, space) for one, _, is_fixed in sides)
    return ours, theirs


def _spaced(schema: Schema) -> list[Text]:
    return [column for column in schema.columns if isinstance(column, Text) and column.space]


def _in_space(schema: Schema, text: Text) -> Schema:
    columns = (
        replace(one, dim=text.dim, rarity=text.rarity, space=text.space)
        if isinstance(one, Text)
        else one
        for one in schema.columns
    )
    return Schema(tuple(columns))


def _values(column: Text, table: Table) -> list[Any]:
    return [value for value in listed(table.values(column.name)) if isinstance(value, str)]
