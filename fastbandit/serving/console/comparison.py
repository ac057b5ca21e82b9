"""Sums over decisions that name an arm of bandit and baseline, by time, read from a log in pieces.

A decision adds to the sums of its bucket with its default as reward, and each reward that counts
adds what it changes, as in the tally. So pieces may be read in any order, and what is still
pending is counted as its default.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from fastbandit.evaluation.shadow_comparison import ComparisonSums, Evidence, evidence_of
from fastbandit.progress import Progress, silent
from fastbandit.serving.console.buckets import (
    EARLIER,
    PIECE,
    SECOND,
    age_of,
    ask,
    bounds,
    last_event,
    start,
    width,
)
from fastbandit.storage.events import WHO
from fastbandit.storage.log_reader import one_moment_of
from fastbandit.storage.log_schema import open_for_reading
from fastbandit.storage.sqlite_log import clock_of

_SUMS = ("n", "m", "w", "ww", "r", "mr", "wr", "wwr", "rr", "wrr", "wwrr")
_ALL = ", ".join(_SUMS)
_TABLES = f"""
CREATE TEMP TABLE compared (
    who TEXT, known INTEGER, start INTEGER, width INTEGER, wait INTEGER, rewarded INTEGER,
    {", ".join(f"{name} REAL" for name in _SUMS)}, PRIMARY KEY (who, known, start)
) WITHOUT ROWID;
CREATE TEMP TABLE aged_compared AS SELECT * FROM compared;
"""
_ADD = f"""
ON CONFLICT (who, known, start) DO UPDATE SET width = max(width, excluded.width),
    wait = max(wait, excluded.wait), rewarded = rewarded + excluded.rewarded,
    {", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)}
"""
_HAS_ANY = "SELECT 1 FROM decisions WHERE other IS NOT NULL LIMIT 1"
_WEIGHTS = """
    CASE WHEN other = (arms -> 0) THEN 1.0 ELSE 0.0 END AS m,
    CASE WHEN other = (arms -> 0) THEN coalesce(1.0 / (propensities ->> 0), 0.0) ELSE 0.0 END AS w
"""
_MADE = f"""
INSERT INTO compared
SELECT who, known, {start("at")}, max({width("at")}), max(wait), 0, count(*), sum(m), sum(w),
    sum(w * w), sum(r), sum(m * r), sum(w * r), sum(w * w * r), sum(r * r), sum(w * r * r),
    sum(w * w * r * r)
FROM (
    SELECT at, decided_by AS who, propensities IS NOT NULL AS known, until - at AS wait,
        default_reward AS r, {_WEIGHTS}
    FROM decisions WHERE other IS NOT NULL AND seq > :after AND seq <= :last
)
WHERE true GROUP BY 1, 2, 3
{_ADD}
"""
_REWARDED = f"""
INSERT INTO compared
SELECT who, known, {start("at")}, max({width("at")}), 0, sum(is_first), 0, 0, 0, 0,
    sum(r), sum(m * r), sum(w * r), sum(w * w * r), sum(rr), sum(w * rr), sum(w * w * rr)
FROM (
    SELECT at, who, known, m, w, earlier IS NULL AS is_first,
        value - iif(earlier IS NULL, default_reward, 0) AS r,
        value * (value + 2 * coalesce(earlier, 0))
            - iif(earlier IS NULL, default_reward * default_reward, 0) AS rr
    FROM (
        SELECT d.at, d.decided_by AS who, d.propensities IS NOT NULL AS known, r.value,
            d.default_reward, {_WEIGHTS}, {EARLIER}
        FROM main.rewards r CROSS JOIN decisions d ON d.id = r.decision
        WHERE r.seq > :after AND r.seq <= :last AND r.status = 'counted' AND d.other IS NOT NULL
    )
)
WHERE true GROUP BY 1, 2, 3
{_ADD}
"""
_AGE = age_of(
    "compared", f"who, known, {start('start')}, {width('start')}, wait, rewarded, {_ALL}", _ADD
)
_OPEN = "(n - rewarded) * min(1.0, max(0.0, 1.0 * (start + width + wait - :now) / width))"
_FOUND = f"""
SELECT who, known, {", ".join(f"total({name})" for name in _SUMS)}, total({_OPEN})
FROM compared WHERE start >= :since GROUP BY 1, 2
"""


class ComparisonTally:
    """Adds up, through a connection that nothing else uses meanwhile."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        connection.execute(_TABLES)

    def has_any(self) -> bool:
        """Return whether the log holds a decision that names both."""
        return bool(ask(self._connection, _HAS_ANY))

    def count(self, after: int, last: int, now: int) -> None:
        """Add the events between two numbers."""
        numbers = {"after": after, "last": last, **bounds(now)}
        self._connection.execute(_MADE, numbers)
        self._connection.execute(_REWARDED, numbers)

    def age(self, now: int) -> None:
        self._connection.execute(_AGE, bounds(now))

    def clear(self) -> None:
        self._connection.execute("DELETE FROM compared")

    def evidence(self, *, since: int, now: int) -> list[Evidence]:
        """Return what the decisions since a time say, for each of the two who decided any."""
        rows = ask(self._connection, _FOUND, {"since": since, "now": now})
        found = {(who, bool(known)): ComparisonSums(*sums) for who, known, *sums in rows}
        nothing = ComparisonSums()
        sides = ((who, found.get((who, True)), found.get((who, False))) for who in WHO)
        return [
            evidence_of(known or nothing, unknown or nothing, decided_by=who)
            for who, known, unknown in sides
            if known or unknown
        ]


def read_evidence(
    path: Path, *, minutes: int | None, now: int | None = None, progress: Progress = silent
) -> list[Evidence]:
    """Read the evidence of a whole log, or of its last minutes, as it is at one moment.

    `now` is the time of the log, unless it is given.
    """
    with one_moment_of(path) as log:
        open_for_reading(log, path)
        now = clock_of(log)() if now is None else now
        tally, last = ComparisonTally(log), last_event(log)
        if not tally.has_any():
            return []
        for after in range(0, last, PIECE):
            tally.count(after, min(after + PIECE, last), now)
            progress(after, last, "Reading")
        since = 0 if minutes is None else now - minutes * 60 * SECOND
        return tally.evidence(since=since, now=now)
