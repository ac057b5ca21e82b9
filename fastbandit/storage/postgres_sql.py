"""What the event log says to PostgreSQL, in SQL.

An append has its rows in `staged_decisions` and `staged_rewards`, with their positions in it, from
1 on. The number of an event is its position after the last number, which `head` holds. Rewards are
judged all at once: of those of one arm, or part, in an append, the first may count.
"""

from __future__ import annotations

from fastbandit.storage.column_marks import DROPPED as DROPPED
from fastbandit.storage.column_marks import FORGOTTEN as FORGOTTEN
from fastbandit.storage.column_marks import SECRET_COLUMNS as SECRET_COLUMNS
from fastbandit.storage.event_rows import DECISION_COLUMNS

_NAMES = ", ".join([*(column.name for column in DECISION_COLUMNS), "eligible_hash"])
_TYPED = ", ".join(f"{column.name} {column.kind}" for column in DECISION_COLUMNS)
STAGING = f"""
CREATE TEMPORARY TABLE staged_decisions (position bigint, {_TYPED}, eligible_hash text);
CREATE TEMPORARY TABLE staged_rewards (
    position bigint, decision text, arm text, part text, value double precision,
    first_arm text, has_arm boolean
);
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
SELECT FROM counted, changes, ticks, rewards, decisions, terms, eligible_lists LIMIT 0;
"""  # all tables are there; a plan made while tables were small would go on to read all of them
COPY_DECISIONS = f"COPY staged_decisions (position, {_NAMES}) FROM STDIN"
COPY_REWARDS = "COPY staged_rewards (position, decision, arm, part, value) FROM STDIN"
INSERT_LIST = """
INSERT INTO eligible_lists (hash, day, content)
SELECT %s, greatest(%s, at / 86400000000), %s FROM head
ON CONFLICT (hash) DO UPDATE SET day = excluded.day WHERE eligible_lists.day < excluded.day
"""
INSERT_SECRET = """
INSERT INTO secret_columns (owner, name) VALUES (%s, %s) ON CONFLICT DO NOTHING
"""
LISTS = "SELECT hash, content FROM eligible_lists WHERE hash = ANY(%s)"
LOCK = """
UPDATE head SET at = greatest(at, read - skew), outage = least(%s, greatest(0, read - skew - at)),
    outages = outages + least(%s, greatest(0, read - skew - at))
FROM (
    SELECT coalesce(%s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS read
) clock
RETURNING last, at, read - skew, steps, skew
"""
READ_CLOCK = """
SELECT coalesce(%s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) - skew, steps, skew
FROM head
"""
STEP = "UPDATE head SET skew = skew + %s, steps = steps + 1 WHERE steps = %s"
INSERT_DECISIONS = f"""
WITH fresh AS MATERIALIZED (
    SELECT head.last + position AS seq, head.at, head.outages, {_NAMES}
    FROM head, staged_decisions made
    WHERE NOT EXISTS (SELECT FROM terms WHERE terms.id = made.id)
), remembered AS (
    INSERT INTO terms (id, seq, at, until, adds_up, arms)
    SELECT id, seq, at, at - outages + wait, adds_up, arms FROM fresh
)
INSERT INTO decisions (seq, at, {_NAMES}) SELECT seq, at, {_NAMES} FROM fresh
"""
KNOWN = """
SELECT made.position, terms.seq FROM head, staged_decisions made JOIN terms ON terms.id = made.id
WHERE terms.seq <= head.last
"""
FIND_ARMS = """
WITH asked AS MATERIALIZED (
    SELECT decision, array_agg(DISTINCT arm) AS named FROM staged_rewards GROUP BY decision
), found AS MATERIALIZED (
    SELECT decision, (arms -> 0)::text AS first, ARRAY(
        SELECT one::text FROM json_array_elements(arms) one INTERSECT SELECT unnest(named)
    ) AS known
    FROM asked JOIN terms ON terms.id = decision WHERE pg_column_size(arms) > 200
)
UPDATE staged_rewards came
SET first_arm = first, has_arm = arm IS NULL AND first IS NOT NULL OR arm = ANY(known)
FROM found WHERE found.decision = came.decision
"""  # goes through many arms once, before anyone waits; a decision keeps them until it is forgotten
INSERT_REWARDS = """
WITH met AS (
    SELECT came.*, head.last + came.position AS seq, head.at, terms.id IS NOT NULL AS is_met,
        head.at - head.outages > terms.until AS is_late, terms.adds_up, terms.arms,
        coalesce(
            came.arm, CASE WHEN terms.id IS NOT NULL THEN first_arm END, (terms.arms -> 0)::text
        ) AS named
    FROM head CROSS JOIN staged_rewards came
    LEFT JOIN terms ON terms.id = came.decision AND terms.seq < head.last + came.position
), nth AS (
    SELECT met.*, row_number() OVER same AS nth, first_value(value) OVER same AS first
    FROM met WINDOW same AS (
        PARTITION BY decision, is_met, named, CASE WHEN adds_up THEN part END ORDER BY position
    )
), firsts AS MATERIALIZED (
    SELECT nth.*, CASE WHEN nth = 1 AND is_met THEN coalesce(has_arm, EXISTS (
        SELECT FROM json_array_elements(arms) one WHERE one::text = named
    )) END AS is_of_it, CASE WHEN nth = 1 AND is_met AND adds_up THEN (
        SELECT earlier.value FROM counted earlier
        WHERE earlier.decision = nth.decision AND earlier.arm = nth.named
            AND earlier.part = nth.part
    ) WHEN nth = 1 AND is_met THEN (
        SELECT earlier.value FROM counted earlier
        WHERE earlier.decision = nth.decision AND earlier.arm = nth.named LIMIT 1
    ) END AS counted
    FROM nth
), judged AS MATERIALIZED (
    SELECT firsts.*, first_value(is_of_it) OVER same AS is_known,
        first_value(counted) OVER same AS earlier
    FROM firsts WINDOW same AS (
        PARTITION BY decision, is_met, named, CASE WHEN adds_up THEN part END ORDER BY nth
    )
), written AS (
    INSERT INTO rewards (seq, at, decision, arm, part, value, status)
    SELECT seq, at, decision, named, part, value, CASE
        WHEN NOT is_met THEN 'unknown'
        WHEN NOT is_known THEN 'unknown arm'
        WHEN earlier = value THEN 'duplicate'
        WHEN earlier IS NOT NULL THEN 'conflicting'
        WHEN is_late THEN 'late'
        WHEN nth = 1 THEN 'counted'
        WHEN first = value THEN 'duplicate'
        ELSE 'conflicting' END
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
INSERT_TICK = """
INSERT INTO ticks (seq, at, outage)
SELECT last + %s, at, CASE WHEN %s THEN outage ELSE 0 END FROM head
"""
_HASH = "encode(sha256(convert_to(salt || {}, 'UTF8')), 'hex')"
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
REMEMBER_SUBJECT = f"""
INSERT INTO forgotten_subjects (hash, at) SELECT {_HASH.format("%s::text")}, {_NOW} FROM identity
ON CONFLICT (hash) DO UPDATE SET at = excluded.at
"""
FORGET_STAGED = f"""
UPDATE staged_decisions made SET id = 'forgotten-' || left({_HASH.format("made.id")}, 24),
    context = '[]', seed = 0, propensities = NULL, eligible = NULL, eligible_hash = NULL,
    other = NULL, offered = NULL, subject = NULL,
    arms = (SELECT coalesce(json_agg(n), '[]')
        FROM generate_series(0, json_array_length(made.arms) - 1) n),
    scores = (SELECT coalesce(json_agg(0.0), '[]')
        FROM generate_series(1, json_array_length(made.arms)) n)
FROM identity, forgotten_subjects gone
WHERE gone.hash = {_HASH.format("made.subject")} AND made.made_at <= gone.at + 300000000
"""  # a spooled decision keeps the time of its machine, whose clock may be ahead
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
DECISION = f"SELECT {_READ_NAMES}, eligible_hash, seq, at FROM decisions"
_CASTS = {"json": "::text", "boolean": "::int"}
_ARCHIVED_NAMES = ", ".join(
    f"{column.name}{_CASTS.get(column.kind, '')}"
    if column.name != "eligible"
    else "coalesce(eligible::text, (SELECT content FROM eligible_lists WHERE hash = eligible_hash))"
    for column in DECISION_COLUMNS
)
ARCHIVED_DECISION = f"SELECT {_ARCHIVED_NAMES}, seq, at FROM decisions"
POSITION_OF = "SELECT seq, at FROM terms WHERE id = %s"
DECISION_AT = f"{DECISION} WHERE seq = %s AND at = %s"
REWARD = "SELECT decision, value, arm, part, status, seq, at FROM rewards"
CHANGE = "SELECT upserted::text, discarded::text, seq, at FROM changes"
TICK = "SELECT outage, seq, at FROM ticks"
OUTAGES = f"{TICK} WHERE outage > 0 AND seq > %s ORDER BY seq"
KINDS = (DECISION, REWARD, CHANGE, TICK)
SOME = " WHERE seq > %s AND at >= %s ORDER BY seq LIMIT %s"
