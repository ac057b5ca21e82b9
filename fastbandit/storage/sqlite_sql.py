"""What the event log says to SQLite, in SQL.

All rows of an append come as one JSON text: the events as lists, their fields in order.
"""

from __future__ import annotations

INSERT_DECISIONS = """
INSERT INTO decisions (
    seq, at, id, context, arms, scores, seed, version, catalogue, until, default_reward, adds_up,
    explored, epsilon, propensities, eligible, degraded, decided_by, other, offered,
    subject
)
SELECT value ->> 17, value ->> 18, value ->> 0, value -> 1, value -> 2, value -> 3, value ->> 4,
    value ->> 5, value ->> 6, (value ->> 18) + (value ->> 7), value ->> 8, value ->> 9,
    value ->> 10, value ->> 11, nullif(value -> 12, 'null'), nullif(value -> 13, 'null'),
    value ->> 14, value ->> 15, nullif(value -> 16, 'null'), nullif(value -> 19, 'null'),
    value ->> 20
FROM jsonb_each(?1) WHERE true
ON CONFLICT (id) DO NOTHING
"""
FIRST_OF = """
SELECT decisions.id, decisions.seq FROM json_each(?1) JOIN decisions ON decisions.id = value ->> 0
"""
INSERT_REWARDS = """
WITH came AS (
    SELECT value ->> 5 AS seq, value ->> 6 AS at, value ->> 0 AS decision, value ->> 1 AS value,
        nullif(value -> 2, 'null') AS arm, value ->> 3 AS part
    FROM jsonb_each(?1)
), met AS (
    SELECT came.seq, came.at, came.decision, came.value, came.part, d.until, d.adds_up, d.arms,
        d.id IS NOT NULL AS is_known, coalesce(came.arm, d.arms -> 0) AS arm
    FROM came LEFT JOIN decisions d ON d.id = came.decision AND d.seq < came.seq
), judged AS (
    SELECT met.*, CASE WHEN met.adds_up THEN (
        SELECT earlier.value FROM rewards earlier
        WHERE earlier.decision = met.decision AND earlier.arm = met.arm
            AND earlier.part = met.part AND earlier.status = 'counted'
    ) ELSE (
        SELECT earlier.value FROM rewards earlier
        WHERE earlier.decision = met.decision AND earlier.arm = met.arm
            AND earlier.status = 'counted'
    ) END AS counted
    FROM met
)
INSERT INTO rewards (seq, at, decision, arm, part, value, status)
SELECT seq, at, decision, arm, part, value, CASE
    WHEN NOT is_known THEN 'unknown'
    WHEN NOT EXISTS (
        SELECT 1 FROM json_each(judged.arms) one WHERE json_quote(one.value) = judged.arm
    ) THEN 'unknown arm'
    WHEN counted = value THEN 'duplicate'
    WHEN counted IS NOT NULL THEN 'conflicting'
    WHEN at > until THEN 'late'
    ELSE 'counted' END
FROM judged
RETURNING seq, status
"""
COPY_REWARDS = """
INSERT INTO rewards (decision, value, arm, part, status, seq, at)
SELECT value ->> 0, value ->> 1, nullif(value -> 2, 'null'), value ->> 3, value ->> 4, value ->> 5,
    value ->> 6
FROM jsonb_each(?1)
"""
INSERT_CHANGE = "INSERT INTO changes (seq, at, upserted, discarded) VALUES (?, ?, ?, ?)"
INSERT_TICK = "INSERT INTO ticks (seq, at) VALUES (?, ?)"
LAST = """
SELECT coalesce(max(seq), 0), coalesce(max(at), 0) FROM (
    SELECT * FROM (SELECT seq, at FROM decisions ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM rewards ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM changes ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM ticks ORDER BY seq DESC LIMIT 1)
)
"""
DECISION = """
SELECT id, context, arms, scores, seed, version, catalogue, until - at, default_reward, adds_up,
    explored, epsilon, propensities, eligible, degraded, decided_by, other, offered, subject,
    seq, at
FROM decisions
"""
REWARD = "SELECT decision, value, arm, part, status, seq, at FROM rewards"
CHANGE = "SELECT upserted, discarded, seq, at FROM changes"
TICK = "SELECT seq, at FROM ticks"
KINDS = (DECISION, REWARD, CHANGE, TICK)
LAST_CHANGE = "SELECT coalesce(max(seq), 0) FROM changes"
SOME = " WHERE seq > ? ORDER BY seq LIMIT ?"
