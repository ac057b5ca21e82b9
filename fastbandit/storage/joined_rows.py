"""Decisions joined with what came of them, read from one moment of a log in SQL.

A reward is the one that is learned: the first that counted, or where rewards add up their sum
once the time for them is over; where none came by then, the one that the decision says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct, json, structs

from fastbandit.storage.column_marks import SECRET_COLUMNS, SecretNames
from fastbandit.storage.event_rows import to_decisions
from fastbandit.storage.events import ArmId, Context, DecisionMade
from fastbandit.storage.log_schema import open_for_reading
from fastbandit.storage.sqlite_files import all_rows as _rows
from fastbandit.storage.sqlite_log import found_in
from fastbandit.storage.sqlite_sql import DECISION, OUTAGES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH = 5_000
_NEVER = 2**63 - 1
_KNOWN = "context <> '[]' AND arms <> '[]'"  # or it was forgotten, or is deferred
_RANGE = f"seq >= ?1 AND seq < ?2 AND at >= ?3 AND at < ?4 AND {_KNOWN}"
_DECISIONS = f"{DECISION} WHERE {_RANGE} AND seq > ?5 ORDER BY seq LIMIT {_BATCH}"
_COUNT = f"SELECT count(*) FROM decisions WHERE {_RANGE}"
_TEXT_IDS = f"""
SELECT 1 FROM decisions, json_each(decisions.arms) arm
WHERE {_RANGE} AND (arm.type = 'text' OR other LIKE '"%') LIMIT 1
"""
_NAMES = f"""
SELECT value.key, group_concat(DISTINCT value.type) FROM decisions, json_each(context) value
WHERE {_RANGE} AND context LIKE '{{%' GROUP BY value.key ORDER BY min(seq), value.key
"""
_REWARDS = """
SELECT r.decision, r.arm, r.value FROM decisions d JOIN rewards r ON r.decision = d.id
WHERE d.seq BETWEEN ? AND ? AND r.status = 'counted' ORDER BY r.seq
"""
_LAST_AT = " UNION ALL ".join(
    f"SELECT max(at) FROM {table} WHERE seq = (SELECT max(seq) FROM {table})"
    for table in ("decisions", "rewards", "changes", "ticks")
)


class Row(Struct):
    """A decision, and the reward of each of its arms: None while that is not known for good."""

    seq: int
    at: datetime
    decision: str
    context: Context
    arms: list[ArmId]
    scores: list[float]
    reward: float | None
    rewards: list[float | None]
    propensities: list[float] | None
    version: int
    catalogue: int
    seed: int
    explored: bool
    epsilon: float
    degraded: bool
    until: datetime
    default_reward: float
    adds_up: bool
    eligible: Any
    decided_by: str
    other: ArmId | None
    offered: Any


@dataclass(frozen=True)
class Bounds:
    """Which decisions: from `since` on and before `until`, event numbers or times."""

    since: int | datetime = 0
    until: int | datetime = _NEVER

    @property
    def values(self) -> tuple[int, int, int, int]:
        """The first number and the one after the last, then the same of times."""
        numbers, times = [0, _NEVER], [0, _NEVER]
        for end, bound in enumerate((self.since, self.until)):
            if isinstance(bound, datetime):
                times[end] = (bound - _EPOCH) // timedelta(microseconds=1)
            else:
                numbers[end] = bound
        return numbers[0], numbers[1], times[0], times[1]


def count_decisions(log: apsw.Connection, bounds: Bounds) -> int:
    return int(_rows(log, _COUNT, *bounds.values)[0][0])


def has_text_ids(log: apsw.Connection, bounds: Bounds) -> bool:
    """Return whether some arm that was chosen has a text as its id."""
    return bool(_rows(log, _TEXT_IDS, *bounds.values))


def context_names(log: apsw.Connection, bounds: Bounds) -> dict[str, set[str]]:
    """Return the names of contexts that came by name, and what JSON their values are."""
    return {name: set(types.split(",")) for name, types in _rows(log, _NAMES, *bounds.values)}


def secret_names(log: apsw.Connection) -> SecretNames:
    """Return the columns that an export leaves out."""
    open_for_reading(log, Path(log.filename))
    return SecretNames.read(_rows(log, SECRET_COLUMNS))


def joined_rows(log: apsw.Connection, bounds: Bounds) -> Iterator[list[Row]]:
    """Yield the decisions of a log within bounds, in their order, a few thousand at a time."""
    open_for_reading(log, Path(log.filename))
    now, last = max(row[0] or 0 for row in _rows(log, _LAST_AT)), 0
    outages, find = _rows(log, OUTAGES, 0), found_in(log)
    while found := to_decisions(_rows(log, _DECISIONS, *bounds.values, last), find):
        first, last = found[0].seq, found[-1].seq
        counted: dict[str, dict[ArmId, float]] = {}
        for decision, arm, value in _rows(log, _REWARDS, first, last):
            totals, id = counted.setdefault(decision, {}), json.decode(arm)
            totals[id] = totals.get(id, 0.0) + value
        yield [
            _to_row(made, counted.get(made.id, {}), _passed(made, now, outages)) for made in found
        ]


def _passed(made: DecisionMade, now: int, outages: list[Any]) -> int:
    """Return the time less the outages since a decision, in which no reward could come."""
    return now - sum(outage for outage, seq, _ in outages if seq > made.seq)


def _to_row(made: DecisionMade, counted: dict[ArmId, float], now: int) -> Row:
    is_over = now > made.until
    known = {} if made.adds_up and not is_over else counted
    rewards = [known.get(arm, made.default_reward if is_over else None) for arm in made.arms]
    fields = structs.asdict(made) | {
        "decision": made.id,
        "at": _time(made.at if made.made_at is None else made.made_at),
        "until": _time(made.until),
        "reward": rewards[0],
        "rewards": rewards,
    }
    return Row(*[fields[name] for name in Row.__struct_fields__])


def _time(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)
