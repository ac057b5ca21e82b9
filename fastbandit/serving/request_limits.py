"""How much work one request may be, and which requests are too much for the event loop."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from fastbandit.serving.problems import wrong_field
from fastbandit.serving.schemas import SelectRequest
from fastbandit.settings.limits import LimitsConfig

_MANY_CONTEXTS, _MANY_IDS = 8, 256  # so many are decided where they come
_ROW_BYTES, _ARM_BYTES = 250, 40  # of a decision in the log, and of each of its arms


def rows_of(request: SelectRequest) -> int:
    """Return how many contexts a request has."""
    return 1 if isinstance(request.contexts, UnsetType) else len(request.contexts)


def is_large(request: SelectRequest) -> bool:
    """Return whether a request takes long enough to be decided in a thread of its own."""
    if request.propensity or request.columns or request.k > _MANY_IDS:
        return True
    return rows_of(request) > _MANY_CONTEXTS or _listed(request) > _MANY_IDS


def is_long(request: SelectRequest) -> bool:
    """Return whether an answer takes longer to write than to hand to a thread and back."""
    return bool(request.columns) or rows_of(request) * request.k > _MANY_IDS


def check_size(request: SelectRequest, limits: LimitsConfig, size: int) -> int:
    """Return the interactions that a select of so many bytes makes, or reject it as too much."""
    rows, listed = rows_of(request), _listed(request)
    _check(
        rows,
        "contexts",
        limits.contexts,
        said=f"{rows:,} contexts",
        field="contexts",
        value=rows,
    )
    _check(
        rows * listed,
        "eligible",
        limits.eligible,
        said=f"{rows:,} contexts × {listed:,} eligible ids or arms",
        field="arms" if request.arms is not None else "eligible",
        value=listed,
    )
    _check(
        rows * request.k,
        "interactions",
        limits.interactions,
        said=f"{rows:,} contexts × k = {request.k:,}",
        field="k",
        value=request.k,
    )
    columns = len(request.columns)
    _check(
        rows * request.k * columns,
        "eligible",
        limits.eligible,
        said=f"{rows:,} contexts × k = {request.k:,} × {columns:,} columns",
        field="columns",
        value=columns,
    )
    written = size + rows * (_ROW_BYTES + request.k * _ARM_BYTES)
    if rows > 1 and request.arms is not None:  # each decision holds them; eligible ids, all one
        written += (rows - 1) * len(msgspec.json.encode(request.arms))
    _check(
        written,
        "log_bytes",
        limits.log_bytes,
        said=f"{written:,} bytes in the log",
        field="context" if request.contexts is UNSET else "contexts",
        value=rows,
    )
    return rows * request.k


def _check(count: int, name: str, most: int, *, said: str, field: str, value: Any) -> None:
    if count > most:
        raise wrong_field(
            f"A select may be at most limits.{name} = {most:,}: got {said}.",
            fix=f"Ask for less at a time, or raise limits.{name}.",
            field=field,
            value=value,
        )


def _listed(request: SelectRequest) -> int:
    """Return how many arms, ids or values of a predicate a request lists."""
    if request.arms is not None:
        return len(request.arms)
    return _length(request.eligible)


def _length(value: Any, depth: int = 0) -> int:
    if isinstance(value, list):
        return len(value)
    if isinstance(value, dict) and depth < 2:
        return len(value) + sum(_length(one, depth + 1) for one in value.values())
    return 0
