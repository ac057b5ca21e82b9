"""Counts of a log by time, read on from where the last reading ended.

Every event adds to the counts of a bucket: a decision to its own, a reward to that of its
decision. Sums do not mind the order, so a long log is read newest first, in pieces, while the
recent buckets are whole already. Old buckets are merged: 10 s, then a minute, then 20
minutes wide. All of it is done by SQLite in tables of its own, without Python's lock.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add
from time import monotonic
from typing import Any

import apsw

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
from fastbandit.serving.console.comparison import ComparisonTally
from fastbandit.storage.deferral import deferred_id

DELAYS_S = (
    0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 21600, 86400, 259200
)  # fmt: skip
"""Bounds between the bins of delays: the first bin lies below the first."""
BASELINE = -1
"""Stands for the version where none decided, but a baseline beside the bandit."""
_MOST_BEHIND = 1_000_000

_TABLES = """
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -32768;
CREATE TEMP TABLE tally (
    kind TEXT, start INTEGER, name, width INTEGER, count INTEGER, arms INTEGER,
    rewarded INTEGER, total REAL, squares REAL, wait INTEGER, PRIMARY KEY (kind, start, name)
) WITHOUT ROWID;
CREATE TEMP TABLE aged_tally AS SELECT * FROM tally;
CREATE TEMP TABLE joined (
    start INTEGER, width INTEGER, version INTEGER, came INTEGER, came_width INTEGER,
    bin INTEGER, count INTEGER, rewarded INTEGER, total REAL, squares REAL
);
"""
_ADD = """
ON CONFLICT (kind, start, name) DO UPDATE SET
    width = max(width, excluded.width), count = count + excluded.count,
    arms = arms + excluded.arms, rewarded = rewarded + excluded.rewarded,
    total = total + excluded.total, squares = squares + excluded.squares,
    wait = max(wait, excluded.wait)
"""


_BINS = (f"WHEN r.at - d.at < {bound * SECOND:.0f} THEN {n}" for n, bound in enumerate(DELAYS_S))
_BIN = f"CASE {' '.join(_BINS)} ELSE {len(DELAYS_S)} END"
_MADE = f"""
INSERT INTO tally
SELECT 'made', {start("at")}, version, max({width("at")}), count(*), sum(size), 0,
    sum(size * default_reward), sum(size * default_reward * default_reward), max(until - at)
FROM (
    SELECT at, iif(decided_by = 'bandit', version, {BASELINE}) AS version, until, default_reward,
        json_array_length(arms) AS size
    FROM main.decisions
    WHERE seq > :after AND seq <= :last AND id NOT GLOB '{deferred_id("*")}'
)
WHERE true GROUP BY 2, 3
{_ADD}"""
_CAME = f"""
INSERT INTO tally
SELECT 'came', {start("at")}, status, max({width("at")}), count(*), 0, 0, 0, 0, 0
FROM main.rewards WHERE seq > :after AND seq <= :last GROUP BY 2, 3
{_ADD}"""
_JOIN = f"""
INSERT INTO joined
SELECT made_start, made_width, version, came_start, came_width, bin, count(*), sum(earlier IS NULL),
    sum(value - CASE WHEN earlier IS NULL THEN default_reward ELSE 0 END),
    sum(value * (value + 2 * coalesce(earlier, 0))
        - CASE WHEN earlier IS NULL THEN default_reward * default_reward ELSE 0 END)
FROM (
    SELECT {start("d.at")} AS made_start, {width("d.at")} AS made_width,
        iif(d.decided_by = 'bandit', d.version, {BASELINE}) AS version,
        {start("r.at")} AS came_start, {width("r.at")} AS came_width, {_BIN} AS bin,
        r.value, d.default_reward, {EARLIER}
    FROM main.rewards r CROSS JOIN main.decisions d ON d.id = r.decision
    WHERE r.seq > :after AND r.seq <= :last AND r.status = 'counted'
)
GROUP BY 1, 3, 4, 6
"""
_REWARDED = f"""
INSERT INTO tally
SELECT 'made', start, version, max(width), 0, 0, sum(rewarded), sum(total), sum(squares), 0
FROM joined WHERE true GROUP BY 2, 3
{_ADD}"""
_DELAYED = f"""
INSERT INTO tally SELECT 'delay', came, bin, max(came_width), sum(count), 0, 0, 0, 0, 0
FROM joined WHERE true GROUP BY 2, 3
{_ADD}"""
_AGED = (
    f"kind, {start('start')}, name, {width('start')}, count, arms, rewarded, total, squares, wait"
)
_AGE = age_of("tally", _AGED, _ADD)
_FIRST_AFTER = "SELECT at FROM main.decisions WHERE seq > ? ORDER BY seq LIMIT 1"
_SPAN = "SELECT min(start), max(start) FROM tally WHERE kind = 'made'"
_SUMS = """
SELECT {by} AS name, sum(count), sum(arms), sum(rewarded), total(total), total(squares),
    total((arms - rewarded) * min(1.0, max(0.0, 1.0 * (start + width + wait - :now) / width)))
FROM tally WHERE kind = :kind AND start >= :since {only} GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True)
class Sums:
    """What a group of decisions adds up to: chosen `arms`, and those whose reward is `pending`."""

    count: int = 0
    arms: int = 0
    rewarded: int = 0
    total: float = 0.0
    squares: float = 0.0
    pending: float = 0.0

    def __add__(self, other: Sums) -> Sums:
        return Sums(*map(add, astuple(self), astuple(other)))


class Tally:
    """Reads a log through a connection that nothing else uses."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        connection.execute(_TABLES)
        self.last = last_event(connection)
        self._low = self._high = self.last
        self.compared = ComparisonTally(connection)

    # -- reading on

    def read_on(self, now: int, *, seconds: float) -> None:
        """Count what is new, then what is old, until all is counted or the time is over."""
        until = monotonic() + seconds
        self.last = last_event(self._connection)
        if self.last - self._high > _MOST_BEHIND:  # the newest first, as at the start
            self._connection.execute("DELETE FROM tally")
            self.compared.clear()
            self._low = self._high = self.last
        while self._high < self.last:
            after, self._high = self._high, min(self._high + PIECE, self.last)
            self._count(after, self._high, now)
            if monotonic() > until:
                break
        while self._low > 0 and monotonic() < until:
            last, self._low = self._low, max(self._low - PIECE, 0)
            self._count(self._low, last, now)
        self._connection.execute(_AGE, bounds(now))
        self.compared.age(now)

    def _count(self, after: int, last: int, now: int) -> None:
        numbers = {"after": after, "last": last, **bounds(now)}
        with self._connection:
            for sql in (_MADE, _CAME, _JOIN):
                self._connection.execute(sql, numbers)
            for sql in (_REWARDED, _DELAYED, "DELETE FROM joined"):
                self._connection.execute(sql)
            if self.compared.has_any():
                self.compared.count(after, last, now)

    # -- what was counted

    @property
    def share_read(self) -> float:
        """The share of the log that was counted so far."""
        return (self._high - self._low) / self.last if self.last else 1.0

    def whole_since(self) -> int:
        """Return the time from which on every bucket is whole: 0 where all was read."""
        if self._low == 0:
            return 0
        rows = ask(self._connection, _FIRST_AFTER, (self._low,))
        return int(rows[0][0]) + 1 if rows else 1 << 62

    def span(self) -> tuple[int, int] | None:
        """Return the first and the last time with a decision, None where there is none."""
        ((first, last),) = ask(self._connection, _SPAN)
        return None if first is None else (int(first), int(last))

    def by_version(self, *, since: int, now: int) -> dict[int, Sums]:
        """Return what the decisions since a time add up to, for each version."""
        return dict(self._sums("made", "name", since=since, now=now))

    def by_bucket(
        self, *, since: int, now: int, width: int, version: int | None = None
    ) -> dict[int, Sums]:
        """Return what the decisions of each bucket add up to, of one version or of all."""
        only = "" if version is None else f"AND name = {int(version)}"
        by = f"(start - :since) / {int(width)}"
        return dict(self._sums("made", by, since=since, now=now, only=only))

    def statuses(self, *, since: int) -> dict[str, int]:
        """Count the rewards that came since a time by what became of them."""
        return {name: sums.count for name, sums in self._sums("came", "name", since=since)}

    def delays(self, *, since: int) -> dict[int, int]:
        """Count the counted rewards that came since a time by the bin of their delay."""
        return {name: sums.count for name, sums in self._sums("delay", "name", since=since)}

    def _sums(
        self, kind: str, by: str, *, since: int, now: int = 0, only: str = ""
    ) -> list[tuple[Any, Sums]]:
        sql = _SUMS.format(by=by, only=only)
        given = {"kind": kind, "since": since, "now": now}
        return [(name, Sums(*rest)) for name, *rest in ask(self._connection, sql, given)]
