"""Which arms were chosen in a range of time, what they earned, and whether new ones are tried.

The latest choices of the range are counted afresh each time, at most so many; a count that
took long is used again for a while.
"""

from __future__ import annotations

from math import ceil
from time import monotonic

import apsw

from fastbandit.serving.console.answer import ArmFigures, Arms
from fastbandit.serving.console.bands import mean_of
from fastbandit.serving.console.buckets import ask
from fastbandit.serving.console.tally import Sums

MOST_DECISIONS = 100_000
WINNERS = 20
_TABLES = """
CREATE TEMP TABLE arms (id PRIMARY KEY, since INTEGER) WITHOUT ROWID;
CREATE TEMP TABLE chosen (id PRIMARY KEY, count INTEGER) WITHOUT ROWID;
CREATE TEMP TABLE winners (id PRIMARY KEY) WITHOUT ROWID;
"""
_NEXT_CHANGE = "SELECT seq FROM main.changes WHERE seq > ? ORDER BY seq LIMIT 1"
_PUT = """
INSERT INTO arms SELECT one.value ->> 0, at FROM main.changes, json_each(upserted) one WHERE seq = ?
ON CONFLICT (id) DO NOTHING
"""
_TAKE = """
DELETE FROM arms WHERE id IN (
    SELECT one.value FROM main.changes, json_each(discarded) one WHERE seq = ?
)
"""
_DECISION_AT = "SELECT seq, at FROM main.decisions WHERE seq >= ? ORDER BY seq LIMIT 1"
_NTH_LAST = "SELECT seq FROM main.decisions ORDER BY seq DESC LIMIT 1 OFFSET ?"
_CHOSEN = """
INSERT INTO chosen SELECT one.value, count(*) FROM main.decisions d, json_each(d.arms) one
WHERE d.seq >= ? GROUP BY 1
"""
_WINNERS = "INSERT INTO winners SELECT id FROM chosen ORDER BY count DESC, id LIMIT ?"
_EARNED = """
SELECT id, count(*), count(*), sum(got IS NOT NULL), sum(coalesce(got, default_reward)),
    sum(coalesce(got, default_reward) * coalesce(got, default_reward)),
    sum(got IS NULL AND until >= :now)
FROM (
    SELECT winners.id, d.default_reward, d.until, (
        SELECT sum(r.value) FROM main.rewards r
        WHERE r.decision = d.id AND r.arm = json_quote(one.value) AND r.status = 'counted'
    ) AS got
    FROM main.decisions d, json_each(d.arms) one CROSS JOIN winners ON winners.id = one.value
    WHERE d.seq >= :first
)
GROUP BY 1 ORDER BY 2 DESC, 1
"""
_TOP = "SELECT total(count) FROM (SELECT count FROM chosen ORDER BY count DESC LIMIT ?)"
_FRESH = """
SELECT count(*), count(count), total(count) FROM arms LEFT JOIN chosen USING (id) WHERE since >= ?
"""


class ArmCounts:
    """Counts choices through the connection that a tally uses as well."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._change = 0
        self._cache: dict[int | None, tuple[float, Arms]] = {}
        connection.execute(_TABLES)

    def figures(self, minutes: int | None, *, since: int, now: int, known: int) -> Arms:
        """Return the arms chosen since a time; `minutes` names the range.

        `known` is how many arms there are; the log knows only of those that came through it.
        """
        due, cached = self._cache.get(minutes, (0.0, None))
        if cached is not None and monotonic() < due:
            return cached
        began = monotonic()
        arms = self._count(since, now, known)
        took = monotonic() - began
        if len(self._cache) > 8:
            self._cache.clear()
        if took > 0.02:
            self._cache[minutes] = (monotonic() + 20 * took, arms)
        return arms

    def _count(self, since: int, now: int, known: int) -> Arms:
        self._read_changes()
        first, is_cut = self._first_since(since)
        with self._connection:
            self._connection.execute("DELETE FROM chosen; DELETE FROM winners")
            self._connection.execute(_CHOSEN, (first,))
            self._connection.execute(_WINNERS, (WINNERS,))
            of, different = self._row("SELECT total(count), count(*) FROM chosen")
            (logged,) = self._row("SELECT count(*) FROM arms")
            known = known or max(logged, different)
            top = ceil(known / 100)
            (top_count,) = self._row(_TOP, top)
            earned = ask(self._connection, _EARNED, {"first": first, "now": now})
            fresh, fresh_chosen, fresh_choices = self._row(_FRESH, since)
        return Arms(
            of=int(of),
            is_cut=is_cut,
            winners=[
                ArmFigures(id, count, count / of, mean_of(Sums(count, *rest)))
                for id, count, *rest in earned
            ],
            different=different,
            all=known,
            top=top,
            top_share=top_count / of if of else None,
            fresh=fresh,
            fresh_chosen=fresh_chosen,
            fresh_choices=int(fresh_choices),
        )

    def _read_changes(self) -> None:
        """Bring the set of arms to the last change."""
        while rows := ask(self._connection, _NEXT_CHANGE, (self._change,)):
            self._change = rows[0][0]
            with self._connection:
                self._connection.execute(_PUT, (self._change,))
                self._connection.execute(_TAKE, (self._change,))

    def _first_since(self, since: int) -> tuple[int, bool]:
        """Return the number of the first decision to count, and whether earlier ones are cut.

        Times never go back from one number to the next, so the first one is found by halving.
        """
        low, high = 0, self._row("SELECT coalesce(max(seq), 0) + 1 FROM main.decisions")[0]
        while low < high:
            middle = (low + high) // 2
            rows = ask(self._connection, _DECISION_AT, (middle,))
            if not rows or rows[0][1] >= since:
                high = middle
            else:
                low = rows[0][0] + 1
        rows = ask(self._connection, _NTH_LAST, (MOST_DECISIONS - 1,))
        earliest = rows[0][0] if rows else 0
        return max(low, earliest), earliest > low

    def _row(self, sql: str, *given: int) -> tuple[int, ...]:
        row: tuple[int, ...] = ask(self._connection, sql, given)[0]
        return row
