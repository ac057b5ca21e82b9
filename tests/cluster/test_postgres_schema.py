"""Upgrades of a log in PostgreSQL: interrupted anywhere they complete later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from fastbandit.errors import LogError
from fastbandit.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.log_checks import Clock
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.postgres_schema import STEPS, VERSION

OPEN_AND_DIE = """
import os, signal, sys
from fastbandit.log_checks import Clock
from fastbandit.storage.postgres_log import PostgresLog

def reached(step):
    if step == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

PostgresLog(sys.argv[1], schema=sys.argv[2], clock=Clock(), reached=reached)
"""
OLD_EVENTS = """
INSERT INTO changes VALUES (1, 1000, '[["x",[0.5],null],["y",[0.25],{"price":3}]]', '[]');
INSERT INTO decisions VALUES (2, 1001, 'a', '[0.1,0.30000000000000004]', '["x",7]', '[0.5,0.25]',
    9223372036854775807, 3, 1, 1000, 0, false, true, 0.1, '[0.75,0.25]',
    '{"price":{"<=":10}}', false);
INSERT INTO terms VALUES ('a', 2, 1001, 2001, false, '["x",7]');
INSERT INTO rewards VALUES (3, 1002, 'a', '7', '', 0.30000000000000004, 'counted');
INSERT INTO ticks VALUES (4, 1003);
UPDATE head SET last = 4, at = 1003;
"""
EVENTS: list[Event] = [
    ArmsChanged([Arm("x", [0.5]), Arm("y", [0.25], {"price": 3})], [], 1, 1000),
    DecisionMade(
        "a",
        context=[0.1, 0.1 + 0.2],
        arms=["x", 7],
        scores=[0.5, 0.25],
        seed=2**63 - 1,
        version=3,
        catalogue=1,
        wait=1000,
        floor=0.1,
        propensities=[0.75, 0.25],
        eligible={"price": {"<=": 10}},
        seq=2,
        at=1001,
    ),
    RewardCame("a", 0.1 + 0.2, 7, "", "counted", 3, 1002),
    TimePassed(4, 1003),
]
TABLES = """
SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
WHERE table_schema = %s ORDER BY 1, 2
"""
INDEXES = "SELECT indexname FROM pg_indexes WHERE schemaname = %s ORDER BY 1"


def ask(url: str, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(query.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


def make_old(url: str, schema: str, version: int) -> str:
    """Make a log of an early version, with an event of each kind."""
    steps = "".join(sql for _, sql in STEPS[:version])
    mark = f"CREATE TABLE fastbandit_log AS SELECT {version}::bigint AS version;"
    into = f"CREATE SCHEMA {schema}; SET search_path = {schema};"
    counted = "INSERT INTO counted VALUES ('a', '7', '', 0.30000000000000004);"
    ask(url, into + mark + steps + OLD_EVENTS + (counted if version > 1 else ""))
    return schema


def shape_of(url: str, schema: str) -> list[tuple[Any, ...]]:
    return ask(url, TABLES, schema) + ask(url, INDEXES, schema)


def kill_at(step: str, url: str, schema: str) -> None:
    command = [sys.executable, "-c", OPEN_AND_DIE, url, schema, step]
    assert subprocess.run(command, env=os.environ).returncode == -signal.SIGKILL


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_log_is_read_as_it_was_written(url: str, schema: str, version: int) -> None:
    log = PostgresLog(url, schema=make_old(url, schema, version), clock=Clock(1500))

    assert log.read() == EVENTS
    log.append([RewardCame("a", 0.1 + 0.2, 7)])
    assert log.read(after=4) == [RewardCame("a", 0.1 + 0.2, 7, "", "duplicate", 5, 1500)]
    log.close()


def test_a_log_that_is_killed_at_any_step_is_made_later(
    url: str, next_schema: Callable[[], str]
) -> None:
    steps: list[str] = []
    wanted = next_schema()
    PostgresLog(url, schema=wanted, clock=Clock(), reached=steps.append).close()
    assert steps == [
        f"{when} step {number + 1}"
        for number in range(VERSION)
        for when in ("before", "within", "after")
    ]
    for step in steps:
        schema = next_schema()
        kill_at(step, url, schema)

        PostgresLog(url, schema=schema, clock=Clock()).close()
        assert shape_of(url, schema) == shape_of(url, wanted), step


def test_an_upgrade_that_is_killed_within_a_step_completes_later(url: str, schema: str) -> None:
    kill_at("within step 2", url, make_old(url, schema, 1))

    log = PostgresLog(url, schema=schema, clock=Clock(1500))
    assert log.read() == EVENTS
    log.close()


def test_a_log_of_a_newer_version_is_refused(url: str, schema: str) -> None:
    PostgresLog(url, schema=schema).close()
    ask(url, f"UPDATE {schema}.fastbandit_log SET version = {VERSION + 1}")

    for is_reader in (True, False):
        with pytest.raises(LogError, match=f"has version {VERSION + 1}. Install a newer"):
            PostgresLog(url, schema=schema, is_reader=is_reader)


def test_a_reader_of_no_log_asks_for_a_writer_and_makes_none(url: str, schema: str) -> None:
    with pytest.raises(LogError, match="start the service"):
        PostgresLog(url, schema=schema, is_reader=True)

    assert ask(url, "SELECT to_regnamespace(%s)", schema) == [(None,)]


def test_a_schema_of_others_is_refused_and_left_as_it_is(url: str, schema: str) -> None:
    ask(url, f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.notes (text text);")

    with pytest.raises(LogError, match="schema of its own"):
        PostgresLog(url, schema=schema)

    assert {row[0] for row in ask(url, TABLES, schema)} == {"notes"}
