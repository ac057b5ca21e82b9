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
    rows, listed, columns = rows_of(request), _listed(request), len(request.columns)
    chosen = f"{rows:,} contexts × k = {request.k:,}"
    _check(limits, "contexts", rows, f"{rows:,} contexts", field="contexts", value=rows)
    said = f"{rows:,} contexts × {listed:,} eligible ids or arms"
    field = "arms" if request.arms is not None else "eligible"
    _check(limits, "eligible", rows * listed, said, field=field, value=listed)
    _check(limits, "interactions", rows * request.k, chosen, field="k", value=request.k)
    said = f"{chosen} × {columns:,} columns"
    _check(limits, "eligible", rows * request.k * columns, said, field="columns", value=columns)
    written = size + rows * (_ROW_BYTES + request.k * _ARM_BYTES)
    if rows > 1 and request.arms is not None:  # each decision holds them; eligible ids, all one
        written += (rows - 1) * len(msgspec.json.encode(request.arms))
    field = "context" if request.contexts is UNSET else "contexts"
    _check(limits, "log_bytes", written, f"{written:,} bytes in the log", field=field, value=rows)
    return rows * request.k


def check_rewards(count: int, limits: LimitsConfig) -> None:
    """Reject a request of so many rewards if that is too much."""
    _check(limits, "rewards", count, f"{count:,} rewards", field="rewards", value=count)


def _check(
    limits: LimitsConfig, name: str, count: int, said: str, *, field: str, value: Any
) -> None:
    if count > (most := getattr(limits, name)):
        raise wrong_field(
            f"A request may be at most limits.{name} = {most:,}: got {said}.",
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
