"""A log remembers which columns are secret, and tells its copies."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from fastbandit.storage.column_marks import NOTHING, SecretNames
from fastbandit.storage.events import Arm
from fastbandit.storage.local_copy import copy_log
from fastbandit.storage.sqlite_log import SqliteLog

SECRET = SecretNames(frozenset({"salary", "name"}), frozenset({"cost"}))


def test_a_column_that_was_secret_once_stays_so_in_its_log(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "events.db", secret=SECRET).close()
    SqliteLog(tmp_path / "events.db", secret=SecretNames(frozenset({"age"}))).close()

    with closing(SqliteLog(tmp_path / "events.db", is_reader=True)) as log:
        assert log.secret() == SecretNames(frozenset({"age", "salary", "name"}), SECRET.arms)


def test_a_copy_of_a_log_knows_what_is_secret(tmp_path: Path) -> None:
    with closing(SqliteLog(tmp_path / "events.db", secret=SECRET)) as log:
        copy_log(log, tmp_path / "copy")

    with closing(SqliteLog(tmp_path / "copy" / "events.db", is_reader=True)) as copy:
        assert copy.secret() == SECRET


def test_what_is_secret_is_taken_out_by_name() -> None:
    offers = [Arm("a", {"cost": 1.0, "price": 2.0}), Arm("b", [1.0])]

    assert SECRET.public_context({"salary": 3, "age": 4}) == {"age": 4}
    assert SECRET.public_context([1.0, 2.0]) == [1.0, 2.0]
    assert SECRET.public_offers(offers) == [Arm("a", {"price": 2.0}), Arm("b", [1.0])]
    assert NOTHING.public_offers(offers) is offers
    assert SecretNames.read(SECRET.rows) == SECRET
