"""The command `copy-log`: it needs a log that services share."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_data import fill, invoke

from fastbandit.cli import copy_log
from fastbandit.errors import SettingError
from fastbandit.storage.sqlite_log import SqliteLog


def test_without_a_url_there_is_nothing_to_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SettingError, match="neither --url nor a setting"):
        invoke(copy_log.command, "--out", tmp_path / "copy")


def test_it_says_how_many_events_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = fill(tmp_path / "data") / "events.db"
    monkeypatch.setattr(
        copy_log, "open_log", lambda *_, **options: SqliteLog(source, is_reader=True)
    )

    done = invoke(copy_log.command, "--out", tmp_path / "copy", "--url", "postgresql://x/y")

    assert done.stdout.startswith("3 events copied, up to number 3")
