"""Events as rows of a database, in the order of their fields, read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import json

from fastbandit.storage.events import (
    REWARD_STATUSES,
    WHO,
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    RewardCame,
    TimePassed,
)

_numbers = json.Decoder(list[float]).decode
_context = json.Decoder(list[float] | dict[str, Any]).decode
_anything = json.Decoder().decode
_arms = json.Decoder(list[Arm]).decode


def _same(value: Any) -> Any:
    return value


def _if_any(text: str | None) -> Any:
    return None if text is None else _anything(text)


@dataclass(frozen=True)
class Column:
    """A field of decisions as a column: its type in PostgreSQL, and how it is read."""

    name: str
    kind: str
    read: Callable[[Any], Any] = _same


DECISION_COLUMNS = (
    Column("id", "text"),
    Column("context", "json", _context),
    Column("arms", "json", _anything),
    Column("scores", "json", _numbers),
    Column("seed", "bigint"),
    Column("version", "bigint"),
    Column("catalogue", "bigint"),
    Column("wait", "bigint"),
    Column("default_reward", "double precision"),
    Column("adds_up", "boolean", bool),
    Column("explored", "boolean", bool),
    Column("epsilon", "double precision"),
    Column("propensities", "json", _if_any),
    Column("eligible", "json", _if_any),
    Column("degraded", "boolean", bool),
    Column("decided_by", "text", lambda name: WHO[WHO.index(name)]),
    Column("other", "json", _if_any),
    Column("offered", "json", lambda text: None if text is None else _arms(text)),
    Column("subject", "text"),
)
"""The fields of DecisionMade in their order, less the number and the time before the last two."""
_READERS = (*(column.read for column in DECISION_COLUMNS), _same, _same)


def to_decision(row: Sequence[Any]) -> DecisionMade:
    values = [read(value) for read, value in zip(_READERS, row, strict=True)]
    return DecisionMade(*[*values[:-4], *values[-2:], *values[-4:-2]])


def to_reward(row: Sequence[Any]) -> RewardCame:
    decision, value, arm, part, status, seq, at = row
    known = REWARD_STATUSES[REWARD_STATUSES.index(status)]
    return RewardCame(decision, value, _if_any(arm), part, known, seq, at)


def to_change(row: Sequence[Any]) -> ArmsChanged:
    upserted, discarded, seq, at = row
    return ArmsChanged(_arms(upserted), _anything(discarded), seq, at)


def to_tick(row: Sequence[Any]) -> TimePassed:
    return TimePassed(*row)


READERS: tuple[Callable[[Sequence[Any]], Event], ...] = (to_decision, to_reward, to_change, to_tick)
"""Of each kind of events, in the order of `KINDS` in the SQL of a log."""


class Archived(NamedTuple):
    """A kind of events in an archive: its columns with their types, and how a row is read."""

    columns: tuple[tuple[str, str], ...]
    read: Callable[[Sequence[Any]], Event]


_NUMBERED = (("seq", "bigint"), ("at", "bigint"))
ARCHIVED = {
    "decisions": Archived(
        (*((one.name, one.kind) for one in DECISION_COLUMNS), *_NUMBERED), to_decision
    ),
    "rewards": Archived(
        (
            ("decision", "text"),
            ("value", "double precision"),
            *((name, "text") for name in ("arm", "part", "status")),
            *_NUMBERED,
        ),
        to_reward,
    ),
    "ticks": Archived(_NUMBERED, to_tick),
}
"""The kinds of events that leave a log, by its tables, in the order of what a log is asked."""
