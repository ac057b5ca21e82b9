"""What the log says to SQLite fits the tables that it makes."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from fastbandit.storage import sqlite_sql
from fastbandit.storage.sqlite_log import SqliteLog

STATEMENTS = {name: sql for name, sql in vars(sqlite_sql).items() if isinstance(sql, str)}
STATEMENTS = {name: sql for name, sql in STATEMENTS.items() if name.isupper() and name[0] != "_"}


@pytest.mark.parametrize("name", sorted(set(STATEMENTS) - {"SOME"}))
def test_a_statement_fits_the_tables(name: str, log: SqliteLog, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "events.db"))
    sql = STATEMENTS[name]
    numbers = {int(number) for number in re.findall(r"\?(\d+)", sql)}
    count = max(numbers, default=sql.count("?"))

    assert connection.execute(f"EXPLAIN {sql}", ["[]"] * count).fetchall()
    connection.close()


@pytest.mark.parametrize("name", ["DECISION", "REWARD", "CHANGE", "TICK"])
def test_each_kind_can_be_read_page_by_page(name: str, log: SqliteLog, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "events.db"))

    assert connection.execute(STATEMENTS[name] + sqlite_sql.SOME, (0, 10)).fetchall() == []
    connection.close()
