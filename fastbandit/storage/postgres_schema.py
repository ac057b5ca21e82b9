"""The tables of the event log in PostgreSQL, and the steps from each version to the next.

A step is one transaction that ends by writing the new version, so a step that is interrupted
has not begun. Steps wait for one another: where several start at once, each is done once.

Decisions and rewards lie in partitions of a day each. What must be found by the id of a
decision, whatever its day, lies beside: in `terms` when it was made and how its rewards are
judged, in `counted` those that counted; in `eligible_lists` the eligible arms of requests, by hash,
with the last day that needs them. `archived_days` names the files of days that left; up to the
number `gone` in `identity` they are lost. Of subjects that were forgotten there is a hash, salted
with what `identity` holds. `head` holds the last number and time, the outage before the last event,
and the sum of all: deadlines in `terms` are in time less that sum. It holds, too, how far the
clock of the server is ahead of the time of the log, after so many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from fastbandit.errors import LogError
from fastbandit.storage.postgres_connection import Connection, Server, rows, sql, taking_its_time

STEPS: tuple[str, ...] = (
    """
    -- tables of events
    CREATE TABLE head (
        is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), last bigint NOT NULL,
        at bigint NOT NULL
    );
    INSERT INTO head (last, at) VALUES (0, 0);
    CREATE TABLE writers (id uuid PRIMARY KEY, appends bigint NOT NULL, at bigint NOT NULL);
    CREATE TABLE terms (
        id text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, at bigint NOT NULL,
        until bigint NOT NULL, sums boolean NOT NULL, arms json NOT NULL
    );
    CREATE TABLE decisions (
        seq bigint NOT NULL, at bigint NOT NULL, id text COLLATE "C" NOT NULL,
        context json NOT NULL, arms json NOT NULL, scores json NOT NULL,
        seed bigint NOT NULL, version bigint NOT NULL, catalogue bigint NOT NULL,
        wait bigint NOT NULL, otherwise double precision NOT NULL, sums boolean NOT NULL,
        explored boolean NOT NULL, floor double precision NOT NULL, propensities json,
        eligible json, degraded boolean NOT NULL, PRIMARY KEY (seq, at)
    ) PARTITION BY RANGE (at);
    CREATE TABLE decisions_rest PARTITION OF decisions DEFAULT;
    CREATE TABLE rewards (
        seq bigint NOT NULL, at bigint NOT NULL, decision text COLLATE "C" NOT NULL,
        arm text COLLATE "C", part text COLLATE "C" NOT NULL,
        value double precision NOT NULL, status text NOT NULL, PRIMARY KEY (seq, at)
    ) PARTITION BY RANGE (at);
    CREATE TABLE rewards_rest PARTITION OF rewards DEFAULT;
    CREATE TABLE changes (
        seq bigint PRIMARY KEY, at bigint NOT NULL, put json NOT NULL, taken json NOT NULL
    );
    CREATE TABLE ticks (seq bigint PRIMARY KEY, at bigint NOT NULL);
    """,
    """
    -- counted rewards by their decision
    CREATE TABLE counted (
        decision text COLLATE "C", arm text COLLATE "C", part text COLLATE "C",
        value double precision NOT NULL, PRIMARY KEY (decision, arm, part)
    );
    INSERT INTO counted SELECT decision, arm, part, value FROM rewards
    WHERE status = 'counted';
    """,
    """
    -- who decided, and the arm of the other
    ALTER TABLE decisions ADD COLUMN decided_by text NOT NULL DEFAULT 'bandit',
        ADD COLUMN other json;
    """,
    """
    -- registry of snapshots
    CREATE TABLE snapshots (
        version bigint PRIMARY KEY, parent bigint, hash text NOT NULL, place text NOT NULL,
        files json NOT NULL, made_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE pointer (
        is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), version bigint NOT NULL,
        moved_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE refused (version bigint PRIMARY KEY, report json NOT NULL);
    """,
    """
    -- who decides in shadow mode
    CREATE TABLE decides (
        is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), who text NOT NULL,
        since timestamptz NOT NULL DEFAULT now(), version bigint
    );
    INSERT INTO decides (who) VALUES ('baseline');
    """,
    """
    -- the newest delta of the version that is served
    CREATE TABLE deltas (
        is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), version bigint NOT NULL,
        seq bigint NOT NULL, content bytea NOT NULL,
        made_at timestamptz NOT NULL DEFAULT now()
    );
    """,
    """
    -- columns named as the field names them
    ALTER TABLE decisions RENAME COLUMN otherwise TO default_reward;
    ALTER TABLE decisions RENAME COLUMN sums TO adds_up;
    ALTER TABLE decisions RENAME COLUMN floor TO epsilon;
    ALTER TABLE terms RENAME COLUMN sums TO adds_up;
    ALTER TABLE changes RENAME COLUMN put TO upserted;
    ALTER TABLE changes RENAME COLUMN taken TO discarded;
    ALTER TABLE snapshots RENAME COLUMN place TO url;
    """,
    """
    -- arms that came with requests
    ALTER TABLE decisions ADD COLUMN offered json;
    CREATE INDEX offering_decisions ON decisions (seq) WHERE offered IS NOT NULL;
    """,
    """
    -- eligible arms stored once, own times of spooled decisions, outages, lease, identity
    CREATE TABLE eligible_lists (
        hash text COLLATE "C" PRIMARY KEY, day bigint NOT NULL, content text NOT NULL
    );
    CREATE INDEX eligible_days ON eligible_lists (day);
    ALTER TABLE decisions ADD COLUMN made_at bigint, ADD COLUMN eligible_hash text COLLATE "C";
    ALTER TABLE ticks ADD COLUMN outage bigint NOT NULL DEFAULT 0;
    CREATE INDEX outages ON ticks (seq) WHERE outage > 0;
    ALTER TABLE head ADD COLUMN outage bigint NOT NULL DEFAULT 0,
        ADD COLUMN outages bigint NOT NULL DEFAULT 0;
    CREATE TABLE lease (
        is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one), session bigint NOT NULL,
        until timestamptz NOT NULL
    );
    CREATE TABLE identity (
        is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one),
        id uuid NOT NULL DEFAULT gen_random_uuid()
    );
    INSERT INTO identity DEFAULT VALUES;
    """,
    """
    -- whom decisions are about
    ALTER TABLE decisions ADD COLUMN subject text COLLATE "C";
    CREATE INDEX decisions_of_subjects ON decisions (subject) WHERE subject IS NOT NULL;
    """,
    """
    -- columns that are secret, or dropped up to a number; who and what was forgotten; the clock
    CREATE TABLE secret_columns (
        owner text COLLATE "C", name text COLLATE "C", PRIMARY KEY (owner, name)
    );
    CREATE TABLE dropped_columns (name text COLLATE "C" PRIMARY KEY, until bigint NOT NULL);
    CREATE TABLE forgotten_decisions (seq bigint PRIMARY KEY);
    CREATE TABLE forgotten_subjects (hash text COLLATE "C" PRIMARY KEY, at bigint NOT NULL);
    ALTER TABLE identity ADD COLUMN gone bigint NOT NULL DEFAULT 0, ADD COLUMN salt text NOT NULL
        DEFAULT gen_random_uuid()::text || gen_random_uuid()::text;
    ALTER TABLE head ADD COLUMN skew bigint NOT NULL DEFAULT 0,
        ADD COLUMN steps bigint NOT NULL DEFAULT 0;
    CREATE TABLE archived_days (
        day text COLLATE "C" PRIMARY KEY, first bigint NOT NULL, last bigint NOT NULL,
        url text NOT NULL, files json NOT NULL
    );
    """,
    """
    -- what the leader says of itself
    ALTER TABLE lease ADD COLUMN report json, ADD COLUMN reported_at timestamptz;
    """,
)
"""What each version added to the one before; the first version is 1."""
VERSION = len(STEPS)
_TABLES = "SELECT count(*) FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace(%s)"


def prepare(
    connection: Connection, server: Server, *, reached: Callable[[str], None] = lambda step: None
) -> None:
    """Bring the log of a schema to today's version, or say why that cannot be."""
    number = version_of(connection, server)
    while number < VERSION:
        reached(f"before step {number + 1}")
        with taking_its_time(connection):  # an index over a large log is not made in a moment
            lock = crc32(server.schema.encode())
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
            number = version_of(connection, server)  # another may have been faster
            if number < VERSION:
                number += 1
                if number == 1:
                    named = sql.Identifier(server.schema)
                    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(named))
                    connection.execute("CREATE TABLE fastbandit_log (version bigint NOT NULL)")
                    connection.execute("INSERT INTO fastbandit_log VALUES (0)")
                connection.execute(STEPS[number - 1], prepare=False)
                connection.execute("UPDATE fastbandit_log SET version = %s", (number,))
                reached(f"within step {number}")
        reached(f"after step {number}")


class NoLogError(LogError):
    """A database has no log yet."""


def check_version(connection: Connection, server: Server) -> None:
    found = version_of(connection, server)
    if not found:
        raise NoLogError(
            f"Reading needs a log: {server.name} has none yet. Start a service or a learner, which "
            f"makes it."
        )
    if found != VERSION:
        raise LogError(
            f"Reading needs a log of version {VERSION}: {server.name} has version {found}. Open it "
            f"for writing once, which upgrades it: start the service."
        )


def version_of(connection: Connection, server: Server) -> int:
    """Return the version of the tables in a schema: 0 where there are none."""
    schema, name = server.schema, server.name
    ((tables,),) = rows(connection, _TABLES, schema)
    if not tables:
        return 0
    ((mark,),) = rows(connection, "SELECT to_regclass(%s) IS NOT NULL", f"{schema}.fastbandit_log")
    if not mark:
        raise LogError(
            f"A log needs a schema of its own: {name} holds {tables} other tables and indexes. "
            f"Name another schema."
        )
    ((version,),) = rows(connection, "SELECT version FROM fastbandit_log")
    if version > VERSION:
        raise LogError(
            f"This version reads logs of version {VERSION} and older: {name} has version "
            f"{version}. Install a newer fastbandit."
        )
    return int(version)
