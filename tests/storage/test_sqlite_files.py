"""Pages of a log carry checksums: a bit that turned is an error, never an answer."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from fastbandit.errors import LogError
from fastbandit.storage import sqlite_files
from fastbandit.storage.events import Arm, ArmsChanged, TimePassed
from fastbandit.storage.sqlite_files import checksums, connect, has_checksums, is_damage
from fastbandit.storage.sqlite_log import SqliteLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a log whose last arm is easily found in its file."""
    log = SqliteLog(tmp_path / "events.db")
    log.append([ArmsChanged([Arm("needle", [0.5])])])
    log.close()
    return tmp_path / "events.db"


def turn_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.rindex(b"needle")] ^= 1
    path.write_bytes(content)


def test_a_new_log_has_checksums(path: Path) -> None:
    assert has_checksums(path)


def test_other_files_of_the_process_are_opened_as_before() -> None:
    assert checksums() == "cksmvfs"
    assert apsw.vfs_names()[0] != "cksmvfs"


def test_a_bit_that_turned_is_an_error(path: Path) -> None:
    turn_a_bit(path)

    with pytest.raises(LogError, match="is damaged"):
        SqliteLog(path, is_reader=True).read()


def test_a_log_of_before_is_written_without(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    old = apsw.Connection(str(path))
    old.execute("PRAGMA journal_mode = WAL").fetchall()
    old.execute("CREATE TABLE a (b); DROP TABLE a")
    old.close()
    log = SqliteLog(path)
    log.append([TimePassed()])
    log.close()

    assert not has_checksums(path)


def test_without_the_extension_a_log_with_checksums_is_only_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_files, "checksums", lambda: None)

    assert SqliteLog(path, is_reader=True).last == 1
    with pytest.raises(LogError, match="pip install -U apsw"):
        SqliteLog(path)


def test_an_error_of_the_disk_is_no_damage() -> None:
    assert is_damage(apsw.CorruptError("no"))
    assert not is_damage(apsw.FullError("full"))


def test_a_reader_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(apsw.CantOpenError):
        connect(tmp_path / "none.db", is_reader=True)

    assert not list(tmp_path.iterdir())
