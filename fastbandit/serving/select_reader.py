"""Reads what a select asks for: contexts in the order of the config, ids, and a predicate.

Contexts are checked here and nowhere else on the way to a decision: the bandit gets them as
`Inputs`, with as many numbers as the config says, all finite and of ordinary size.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from functools import partial
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET, UnsetType

from fastbandit.errors import ValueOfColumnError
from fastbandit.features.columns import to_float
from fastbandit.features.schema import Schema
from fastbandit.serving.problems import rejection_of_error, wrong_field
from fastbandit.serving.schemas import SelectRequest
from fastbandit.settings.service import ContextConfig
from fastbandit.storage.events import Context
from fastbandit.types import Inputs

_DEEPEST = 4
_LARGEST = 1e30


class ParsedSelect(NamedTuple):
    """Contexts as they are logged and as a bandit reads them, and the id of each decision."""

    contexts: list[Context]
    inputs: Inputs
    ids: list[str]


class SelectReader:
    """Reads selects for a service with so many features of a context, named or not."""

    def __init__(self, context: ContextConfig) -> None:
        self._names, self.schema = context.names, context.read_schema()
        own = len(context.names) or context.features
        self.columns = own if self.schema is None else self.schema.dim

    def read(self, request: SelectRequest, schema: Schema | None = None) -> ParsedSelect:
        """Return what is asked for, or reject it; the `schema` of a version has its own order."""
        contexts, numbers = self._read_contexts(request, schema or self.schema)
        ids = _read_ids(request, len(contexts))
        _check_depth(request.eligible)
        if request.propensity and request.k != 1:
            raise wrong_field(
                f"A propensity is of one arm: got k = {request.k}.",
                fix="Ask for one arm, or leave propensity out.",
                field="k",
                value=request.k,
            )
        return ParsedSelect(contexts, Inputs(dense=np.array(numbers, dtype=np.float32)), ids)

    def _read_contexts(
        self, request: SelectRequest, schema: Schema | None
    ) -> tuple[list[Context], list[Any]]:
        """Return contexts as they are logged, and as numbers."""
        one, many = request.context, request.contexts
        read = self._read_context if schema is None else partial(_encoded, schema)
        if not isinstance(one, UnsetType) and many is UNSET:
            numbers = [read(one, "context")]
            return ([one] if schema is not None else numbers), numbers
        if not isinstance(many, UnsetType) and one is UNSET:
            numbers = [read(raw, f"contexts[{n}]") for n, raw in enumerate(many)]
            return (many if schema is not None else numbers), numbers
        raise wrong_field(
            "A request needs either one context or a list of contexts: got "
            f"{'neither' if one is UNSET else 'both'}.",
            fix="Send context, or contexts.",
            field="context",
        )

    def _read_context(self, raw: Any, field: str) -> list[float]:
        values = self._by_name(raw, field) if isinstance(raw, Mapping) else raw
        if len(values) != self.columns:
            raise wrong_field(
                f"A context needs {self.columns} numbers: got {len(values)}.",
                fix="Send as many as the service was set up for.",
                field=field,
                value=raw,
            )
        if max(values) > _LARGEST or min(values) < -_LARGEST or isnan(sum(values)):
            raise wrong_field(
                f"A context needs numbers of ordinary size, at most {_LARGEST:g}.",
                fix="Scale the features.",
                field=field,
                value=raw,
            )
        return values

    def _by_name(self, raw: Mapping[str, Any], field: str) -> list[float]:
        """Bring named features into the order of the config."""
        if not self._names:
            raise wrong_field(
                "This service knows no names of features.",
                fix=f"Send a list of {self.columns} numbers.",
                field=field,
                value=raw,
            )
        if set(raw) == set(self._names):
            return [_number(raw[name], f"{field}.{name}") for name in self._names]
        known, odd = ", ".join(self._names), sorted(set(raw) ^ set(self._names))
        known = known if len(known) <= 80 else f"{known[:80]}…"
        raise wrong_field(
            f"A context needs the features by their names ({known}): {odd[0]!r} is "
            f"{'not one of them' if odd[0] in raw else 'missing'}.",
            fix="Send a number for each name, or a list of numbers in that order.",
            field=f"{field}.{odd[0]}",
            value=raw.get(odd[0]),
        )


def _encoded(schema: Schema, raw: Any, field: str) -> Any:
    """Encode named values by a schema."""
    if not isinstance(raw, dict):
        known = ", ".join(schema.names)
        raise wrong_field(
            f"A context needs values by their names ({known[:80]}): got a list.",
            fix="Send an object; /openapi.json describes it.",
            field=field,
            value=raw,
        )
    try:
        return schema.encode_one(raw)
    except ValueOfColumnError as error:
        if schema.others is not None and error.column == schema.others.name:
            raise rejection_of_error(error, field=field, value=None) from error
        at, value = f"{field}.{error.column}", raw.get(error.column)
        raise rejection_of_error(error, field=at, value=value) from error


def _number(value: Any, field: str) -> float:
    if type(value) is float or type(value) is int:
        return to_float(value)  # infinite where it is too large: that is rejected later
    raise wrong_field(
        f"A feature of a context needs a number: got {type(value).__name__}.",
        fix="Send a number; texts and gaps need context.schema.",
        field=field,
        value=value,
    )


def new_id() -> str:
    """Return an id of its own for a decision; later ones sort after earlier ones."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(8)}"


def _read_ids(request: SelectRequest, count: int) -> list[str]:
    if request.id is not None and request.contexts is UNSET and request.ids is None:
        return [request.id]
    if request.id is not None or (request.ids is not None and len(set(request.ids)) != count):
        given = request.ids if request.ids is not None else request.id
        raise wrong_field(
            f"Decisions need ids of their own, one for each of the {count} contexts.",
            fix="Send id with context, or ids with contexts, each different; or send none.",
            field="id" if request.ids is None else "ids",
            value=given,
        )
    return request.ids or [new_id() for _ in range(count)]


def _check_depth(value: Any, *, depth: int = 0) -> None:
    """Reject a predicate that is nested deeper than any can be."""
    if depth > _DEEPEST:
        raise wrong_field(
            "A predicate needs at most an object of conditions, with lists in them.",
            fix='Write it as {"column": {"<=": 10}}.',
            field="eligible",
            value=value,
        )
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value[:1]:
            _check_depth(item, depth=depth + 1)
