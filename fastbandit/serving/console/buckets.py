"""The buckets of time that a log is counted in: 10 s wide, then a minute, then 20 minutes."""

from __future__ import annotations

from typing import Any

import apsw

SECOND = 1_000_000
FINE, MIDDLE, COARSE = 10 * SECOND, 60 * SECOND, 1200 * SECOND
_FINE_FOR, _MIDDLE_FOR = 2 * 3600 * SECOND, 49 * 3600 * SECOND
PIECE = 25_000
"""So many events are counted in one step."""
EARLIER = """CASE WHEN d.adds_up THEN (
    SELECT sum(e.value) FROM main.rewards e
    WHERE e.decision = r.decision AND e.arm = r.arm AND e.status = 'counted' AND e.seq < r.seq
) END AS earlier"""
_IS_AGED = f"""
(width < {MIDDLE} AND start < :fine - {FINE}) OR (width < {COARSE} AND start < :middle - {MIDDLE})
"""
_LAST = """
SELECT max(coalesce((SELECT max(seq) FROM main.decisions), 0),
    coalesce((SELECT max(seq) FROM main.rewards), 0),
    coalesce((SELECT max(seq) FROM main.changes), 0),
    coalesce((SELECT max(seq) FROM main.ticks), 0))
"""


def width(at: str) -> str:
    """Return SQL for the width of the bucket of a time."""
    return (
        f"CASE WHEN {at} >= :fine THEN {FINE} WHEN {at} >= :middle THEN {MIDDLE} ELSE {COARSE} END"
    )


def start(at: str) -> str:
    """Return SQL for the start of the bucket of a time."""
    return f"{at} - {at} % ({width(at)})"


def age_of(table: str, columns: str, add: str) -> str:
    """Return SQL that merges old buckets of a table, by way of another, `aged_` and its name."""
    return f"""
INSERT INTO aged_{table} SELECT * FROM {table} WHERE {_IS_AGED};
DELETE FROM {table} WHERE {_IS_AGED};
INSERT INTO {table} SELECT {columns} FROM aged_{table} WHERE true {add};
DELETE FROM aged_{table};
"""


def bounds(now: int) -> dict[str, int]:
    """Return the times from which on buckets are fine and of middle width: whole buckets."""
    fine, middle = now - _FINE_FOR, now - _MIDDLE_FOR
    return {"fine": fine - fine % COARSE, "middle": middle - middle % COARSE}


def ask(connection: apsw.Connection, sql: str, given: Any = ()) -> list[Any]:
    """Return the rows that SQL finds."""
    return connection.execute(sql, given).fetchall()


def last_event(connection: apsw.Connection) -> int:
    """Return the number of the last event of a log."""
    return int(ask(connection, _LAST)[0][0])
