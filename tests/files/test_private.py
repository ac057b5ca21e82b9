"""Data folders that only their owner can read."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastbandit.files.private import make_private, private_file, privately


@pytest.fixture(autouse=True)
def _usual_modes() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_folder_and_all_that_is_written_to_it_is_private(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    make_private(folder)
    (folder / "snapshots").mkdir()
    (folder / "events.db").write_bytes(b"")
    assert [mode(one) for one in (folder, folder / "snapshots", folder / "events.db")] == [
        0o700,
        0o700,
        0o600,
    ]
    assert not caplog.records


def test_a_folder_that_others_could_read_is_tightened_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    (folder / "snapshots" / "v1").mkdir(parents=True)
    (folder / "archive" / "2026-01-31").mkdir(parents=True)
    names = (
        "events.db",
        "events.db-wal",
        "snapshots/v1/manifest.json",
        "archive/2026-01-31/a.parquet",
    )
    own = [folder / name for name in names]
    other = folder / "mine.txt"
    for path in [*own, other]:
        path.write_bytes(b"x")
    with caplog.at_level(logging.WARNING):
        make_private(folder)
    assert {mode(path) for path in own} == {0o600}
    assert {mode(one) for one in (folder, own[2].parent, own[3].parent)} == {0o700}
    assert mode(other) == 0o644
    assert len(caplog.records) == 1
    caplog.clear()
    make_private(folder)
    assert not caplog.records


def test_what_is_written_for_a_while_is_private(tmp_path: Path) -> None:
    with privately():
        (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert (mode(tmp_path / "a"), mode(tmp_path / "b")) == (0o600, 0o644)


def test_links_are_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o755)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "snapshots").symlink_to(target)

    make_private(tmp_path / "data")

    assert mode(target) == 0o755


def test_what_may_not_be_changed_is_said_and_nothing_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise PermissionError("not yours")

    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    with caplog.at_level(logging.WARNING):
        make_private(tmp_path)
    assert [record.message for record in caplog.records] == [
        "other users may read what is in the data folder"
    ]


def test_a_private_file_is_made_once(tmp_path: Path) -> None:
    private_file(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o600
    (tmp_path / "a").write_bytes(b"x")
    private_file(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"x"
    private_file(tmp_path / "none" / "b")
    assert not (tmp_path / "none").exists()
