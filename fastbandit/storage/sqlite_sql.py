"""What the event log says to SQLite, in SQL.

All rows of an append come as one JSON text: the events as lists, their fields in order. With
decisions comes another, the hashes of their eligible arms, and the arms that came with requests as
bytes: a decision has the first of its own and how many they are.
"""

from __future__ import annotations

INSERT_DECISIONS = """
INSERT INTO decisions (
    seq, at, id, context, arms, scores, seed, version, catalogue, until, default_reward, adds_up,
    explored, epsilon, propensities, eligible, degraded, decided_by, other, offered, made_at,
    subject, eligible_hash
)
SELECT value ->> 17, value ->> 18, value ->> 0, value -> 1, value -> 2, value -> 3, value ->> 4,
    value ->> 5, value ->> 6, (value ->> 18) + (value ->> 7), value ->> 8, value ->> 9,
    value ->> 10, value ->> 11, nullif(value -> 12, 'null'), nullif(value -> 13, 'null'),
    value ->> 14, value ->> 15, nullif(value -> 16, 'null'),
    CAST(substr(?3, value ->> '$[19][0]', value ->> '$[19][1]') AS TEXT), value ->> 20,
    value ->> 21, ?2 ->> key
FROM jsonb_each(?1) WHERE true
ON CONFLICT (id) DO NOTHING
"""
INSERT_SECRET = "INSERT INTO secret_columns (owner, name) VALUES (?, ?) ON CONFLICT DO NOTHING"
INSERT_LIST = "INSERT INTO eligible_lists (hash, content) VALUES (?, ?) ON CONFLICT DO NOTHING"
LISTS = """
SELECT hash, content FROM eligible_lists WHERE hash IN (SELECT value FROM json_each(?))
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
    SELECT came.*, d.until, d.adds_up, d.arms, d.seq AS made,
        coalesce(came.arm, d.arms -> 0) AS named
    FROM came LEFT JOIN decisions d ON d.id = came.decision AND d.seq < came.seq
), known AS (
    SELECT met.*, made IS NOT NULL AND EXISTS (
        SELECT 1 FROM json_each(met.arms) one WHERE json_quote(one.value) = met.named
    ) AS is_known FROM met
), judged AS (
    SELECT known.*, CASE WHEN adds_up THEN (
        SELECT earlier.value FROM rewards earlier
        WHERE earlier.decision = known.decision AND earlier.arm = known.named
            AND earlier.part = known.part AND earlier.status = 'counted'
    ) ELSE (
        SELECT earlier.value FROM rewards earlier
        WHERE earlier.decision = known.decision AND earlier.arm = known.named
            AND earlier.status = 'counted'
    ) END AS counted, first_value(value) OVER same AS first, row_number() OVER same AS nth
    FROM known
    WINDOW same AS (
        PARTITION BY decision, named, is_known, iif(adds_up, part, NULL) ORDER BY seq
    )
)
INSERT INTO rewards (seq, at, decision, arm, part, value, status)
SELECT seq, at, decision, named, part, value, CASE
    WHEN made IS NULL THEN 'unknown'
    WHEN NOT is_known THEN 'unknown arm'
    WHEN counted = value THEN 'duplicate'
    WHEN counted IS NOT NULL THEN 'conflicting'
    WHEN at > until AND at > until + (
        SELECT coalesce(sum(outage), 0) FROM ticks
        WHERE outage > 0 AND ticks.seq > made AND ticks.seq < judged.seq
    ) THEN 'late'
    WHEN nth = 1 THEN 'counted'
    WHEN first = value THEN 'duplicate'
    ELSE 'conflicting' END
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
INSERT_TICK = "INSERT INTO ticks (seq, at, outage) VALUES (?, ?, ?)"
LAST = """
SELECT coalesce(max(seq), 0), coalesce(max(at), 0) FROM (
    SELECT * FROM (SELECT seq, at FROM decisions ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM rewards ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM changes ORDER BY seq DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT seq, at FROM ticks ORDER BY seq DESC LIMIT 1)
)
"""
_BEFORE = """id, context, arms, scores, seed, version, catalogue, until - at, default_reward,
    adds_up, explored, epsilon, propensities"""
_AFTER = "degraded, decided_by, other, offered, made_at, subject"
DECISION = f"SELECT {_BEFORE}, eligible, {_AFTER}, eligible_hash, seq, at FROM decisions"
ARCHIVED_DECISION = f"""
SELECT {_BEFORE},
    coalesce(eligible, (SELECT content FROM eligible_lists WHERE hash = eligible_hash)),
    {_AFTER}, seq, at
FROM decisions
"""
UNUSED_LISTS = """
SELECT hash FROM eligible_lists
WHERE NOT EXISTS (SELECT 1 FROM decisions WHERE eligible_hash = eligible_lists.hash)
"""
DELETE_LISTS = """
DELETE FROM eligible_lists
WHERE hash IN (SELECT value FROM json_each(?))
    AND NOT EXISTS (SELECT 1 FROM decisions WHERE eligible_hash = eligible_lists.hash)
"""
REWARD = "SELECT decision, value, arm, part, status, seq, at FROM rewards"
CHANGE = "SELECT upserted, discarded, seq, at FROM changes"
TICK = "SELECT outage, seq, at FROM ticks"
OUTAGES = f"{TICK} WHERE outage > 0 AND seq > ? ORDER BY seq"
KINDS = (DECISION, REWARD, CHANGE, TICK)
IDENTITY = "SELECT identity FROM about"
ANCHOR = "SELECT boot, ahead, skew FROM about WHERE boot IS NOT NULL"
SAVE_ANCHOR = "UPDATE about SET boot = ?, ahead = ?, skew = ?"
LAST_CHANGE = "SELECT coalesce(max(seq), 0) FROM changes"
SOME = " WHERE seq > ? ORDER BY seq LIMIT ?"
