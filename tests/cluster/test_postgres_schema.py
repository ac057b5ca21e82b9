"""Upgrades of a log in PostgreSQL: interrupted anywhere they complete later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from little_events import EVENTS

from fastbandit.cli.doctor import check_shared_log
from fastbandit.errors import LogError
from fastbandit.serving.shared_promotion import SharedPromotion
from fastbandit.storage.events import RewardCame
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.postgres_schema import STEPS, VERSION
from fastbandit.testing.logs import Clock

OPEN_AND_DIE = """
import os, signal, sys
from fastbandit.testing.logs import Clock
from fastbandit.storage.postgres_log import PostgresLog

def reached(step):
    if step == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

PostgresLog(sys.argv[1], schema=sys.argv[2], clock=Clock(), reached=reached).last
"""
OLD_EVENTS = """
INSERT INTO changes VALUES (1, 1000, '[["x",[0.5],null],["y",[0.25],{"price":3}]]', '[]');
INSERT INTO decisions VALUES (2, 1001, 'a', '[0.1,0.30000000000000004]', '["x",7]', '[0.5,0.25]',
    9223372036854775807, 3, 1, 1000, 0, false, true, 0.1, '[0.75,0.25]',
    '{"price":{"<=":10}}', false);
INSERT INTO terms VALUES ('a', 2, 1001, 2001, false, '["x",7]');
INSERT INTO rewards VALUES (3, 1002, 'a', '"x"', '', 0.30000000000000004, 'counted'),
    (4, 1002, 'a', '7', '', 1, 'counted'), (5, 1003, 'nobody', NULL, '', 1, 'unknown');
INSERT INTO ticks VALUES (6, 1004);
UPDATE head SET last = 6, at = 1004;
"""
OLD_COUNTED = """
INSERT INTO counted VALUES ('a', '"x"', '', 0.30000000000000004), ('a', '7', '', 1);
"""
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
    steps = "".join(STEPS[:version])
    mark = f"CREATE TABLE fastbandit_log AS SELECT {version}::bigint AS version;"
    into = f"CREATE SCHEMA {schema}; SET search_path = {schema};"
    ask(url, into + mark + steps + OLD_EVENTS + (OLD_COUNTED if version > 1 else ""))
    return schema


def shape_of(url: str, schema: str) -> list[tuple[Any, ...]]:
    return ask(url, TABLES, schema) + ask(url, INDEXES, schema)


def use(url: str, schema: str, **more: Any) -> None:
    """Open a log and use it once."""
    with closing(PostgresLog(url, schema=schema, **more)) as log:
        assert log.last >= 0


def kill_at(step: str, url: str, schema: str) -> None:
    command = [sys.executable, "-c", OPEN_AND_DIE, url, schema, step]
    assert subprocess.run(command, env=os.environ).returncode == -signal.SIGKILL


@pytest.mark.parametrize("version", range(1, VERSION))
def test_an_old_log_is_read_as_it_was_written(url: str, schema: str, version: int) -> None:
    log = PostgresLog(url, schema=make_old(url, schema, version), clock=Clock(1500))

    assert log.read() == EVENTS
    log.append([RewardCame("a", 1.0, 7)])
    assert log.read(after=6) == [RewardCame("a", 1.0, 7, "", "duplicate", 7, 1500)]
    log.close()


def test_in_a_log_that_knew_no_shadow_mode_the_baseline_decides(url: str, schema: str) -> None:
    with closing(SharedPromotion(url, schema=make_old(url, schema, 4))) as shared:
        told = shared.read()

        assert (told.decides, told.version) == ("baseline", None)
        assert shared.write("bandit").decides == "bandit"


def test_a_log_that_is_killed_at_any_step_is_made_later(
    url: str, next_schema: Callable[[], str]
) -> None:
    steps: list[str] = []
    wanted = next_schema()
    use(url, wanted, reached=steps.append)
    assert steps == [
        f"{when} step {number + 1}"
        for number in range(VERSION)
        for when in ("before", "within", "after")
    ]
    for step in steps:
        schema = next_schema()
        kill_at(step, url, schema)

        use(url, schema)
        assert shape_of(url, schema) == shape_of(url, wanted), step


def test_an_upgrade_that_is_killed_within_a_step_completes_later(url: str, schema: str) -> None:
    kill_at("within step 2", url, make_old(url, schema, 1))

    log = PostgresLog(url, schema=schema, clock=Clock(1500))
    assert log.read() == EVENTS
    log.close()


def test_a_log_of_a_newer_version_is_refused(url: str, schema: str) -> None:
    use(url, schema)
    ask(url, f"UPDATE {schema}.fastbandit_log SET version = {VERSION + 1}")

    for is_reader in (True, False):
        with pytest.raises(LogError, match=f"has version {VERSION + 1}. Install a newer"):
            use(url, schema, is_reader=is_reader)


def test_a_reader_of_no_log_asks_for_a_writer_and_makes_none(url: str, schema: str) -> None:
    with pytest.raises(LogError, match="Start a service"):
        use(url, schema, is_reader=True)

    assert ask(url, "SELECT to_regnamespace(%s)", schema) == [(None,)]


def test_a_schema_of_others_is_refused_and_left_as_it_is(url: str, schema: str) -> None:
    ask(url, f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.notes (text text);")

    with pytest.raises(LogError, match="schema of its own"):
        use(url, schema)

    assert {row[0] for row in ask(url, TABLES, schema)} == {"notes"}


def test_a_new_database_has_nothing_wrong_before_a_service_starts(
    database: str, tmp_path: Path
) -> None:
    found = check_shared_log(database, tmp_path)

    assert found.state == "ok"
    assert "none yet" in found.found
