"""One moment of a log, read while the service writes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_exports import made

from fastbandit.errors import LogError
from fastbandit.storage.log_reader import check_integrity, one_moment_of
from fastbandit.storage.sqlite_log import SqliteLog


def test_what_is_written_later_is_not_seen(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one")])

    with one_moment_of(tmp_path / "events.db") as moment:
        assert moment.execute("SELECT count(*) FROM decisions").fetchall() == [(1,)]
        log.append([made("two")])
        assert moment.execute("SELECT count(*) FROM decisions").fetchall() == [(1,)]


def test_a_folder_without_a_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="found none"), one_moment_of(tmp_path / "events.db"):
        pass


def test_a_file_that_is_no_log_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "events.db").write_bytes(b"something else" * 100)

    with pytest.raises(LogError, match="can be read"):
        check_integrity(tmp_path / "events.db")


def test_a_whole_log_passes(log: SqliteLog, tmp_path: Path) -> None:
    log.append([made("one")])

    check_integrity(tmp_path / "events.db")
