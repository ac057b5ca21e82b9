"""What the event log says to PostgreSQL, in SQL.

An append has its rows in `staged_decisions` and `staged_rewards`, with their positions in it, from
1 on. The number of an event is its position after the last number, which `head` holds.
"""

from __future__ import annotations

from fastbandit.storage.event_rows import DECISION_COLUMNS

_NAMES = ", ".join(column.name for column in DECISION_COLUMNS)
_TYPED = ", ".join(f"{column.name} {column.kind}" for column in DECISION_COLUMNS)
STAGING = f"""
CREATE TEMPORARY TABLE staged_decisions (position bigint, {_TYPED});
CREATE TEMPORARY TABLE staged_rewards (
    position bigint, round bigint, decision text, arm text, part text, value double precision
);
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
"""  # a plan made while tables were small would go on to read all of them
COPY_DECISIONS = f"COPY staged_decisions (position, {_NAMES}) FROM STDIN"
COPY_REWARDS = "COPY staged_rewards (position, round, decision, arm, part, value) FROM STDIN"
LOCK = """
UPDATE head SET at = greatest(
    at, coalesce(%s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
) RETURNING last, at
"""
INSERT_DECISIONS = f"""
WITH fresh AS MATERIALIZED (
    SELECT head.last + position AS seq, head.at, {_NAMES} FROM head, staged_decisions made
    WHERE NOT EXISTS (SELECT FROM terms WHERE terms.id = made.id)
), remembered AS (
    INSERT INTO terms (id, seq, at, until, adds_up, arms)
    SELECT id, seq, at, at + wait, adds_up, arms FROM fresh
)
INSERT INTO decisions (seq, at, {_NAMES}) SELECT seq, at, {_NAMES} FROM fresh
"""
KNOWN = """
SELECT made.position, terms.seq FROM head, staged_decisions made JOIN terms ON terms.id = made.id
WHERE terms.seq <= head.last
"""
INSERT_REWARDS = """
WITH met AS (
    SELECT came.*, head.last + came.position AS seq, head.at, terms.id IS NOT NULL AS is_known,
        terms.until, terms.adds_up, terms.arms, coalesce(came.arm, (terms.arms -> 0)::text) AS named
    FROM head CROSS JOIN staged_rewards came
    LEFT JOIN terms ON terms.id = came.decision AND terms.seq < head.last + came.position
    WHERE came.round = %s
), judged AS MATERIALIZED (
    SELECT met.*, (
        SELECT earlier.value FROM counted earlier
        WHERE earlier.decision = met.decision AND earlier.arm = met.named
            AND (NOT met.adds_up OR earlier.part = met.part)
        LIMIT 1
    ) AS counted
    FROM met
), written AS (
    INSERT INTO rewards (seq, at, decision, arm, part, value, status)
    SELECT seq, at, decision, named, part, value, CASE
        WHEN NOT is_known THEN 'unknown'
        WHEN NOT EXISTS (
            SELECT FROM json_array_elements(arms) one WHERE one::text = named
        ) THEN 'unknown arm'
        WHEN counted = value THEN 'duplicate'
        WHEN counted IS NOT NULL THEN 'conflicting'
        WHEN at > until THEN 'late'
        ELSE 'counted' END
    FROM judged
    RETURNING seq, decision, arm, part, value, status
), remembered AS (
    INSERT INTO counted (decision, arm, part, value)
    SELECT decision, arm, part, value FROM written WHERE status = 'counted'
)
SELECT seq, status FROM written
"""
INSERT_CHANGE = """
INSERT INTO changes (seq, at, upserted, discarded)
SELECT last + %s, at, %s::json, %s::json FROM head
"""
INSERT_TICK = "INSERT INTO ticks (seq, at) SELECT last + %s, at FROM head"
MOVE_ON = "UPDATE head SET last = %s"
MARK = """
INSERT INTO writers (id, appends, at) VALUES (%s, %s, %s)
ON CONFLICT (id) DO UPDATE SET appends = excluded.appends, at = excluded.at
"""
MARK_OF = "SELECT appends FROM writers WHERE id = %s"
FORGET = "DELETE FROM writers WHERE id = %s OR at < (SELECT at FROM head) - %s"
_READ_NAMES = ", ".join(
    f"{column.name}::text" if column.kind == "json" else column.name for column in DECISION_COLUMNS
)
DECISION = f"SELECT {_READ_NAMES}, seq, at FROM decisions"
POSITION_OF = "SELECT seq, at FROM terms WHERE id = %s"
DECISION_AT = f"{DECISION} WHERE seq = %s AND at = %s"
REWARD = "SELECT decision, value, arm, part, status, seq, at FROM rewards"
CHANGE = "SELECT upserted::text, discarded::text, seq, at FROM changes"
TICK = "SELECT seq, at FROM ticks"
KINDS = (DECISION, REWARD, CHANGE, TICK)
SOME = " WHERE seq > %s AND at >= %s ORDER BY seq LIMIT %s"
