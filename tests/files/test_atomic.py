"""A file or folder is there whole, or as it was before."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from fastbandit.files.atomic import (
    file_digest,
    making_folder,
    replacing,
    write_atomic,
    write_synced,
)


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_takes_the_place_of_another(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    write_atomic(path, b"new", sync=sync)

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_raises_leaves_the_old_file_and_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def stop_half_way() -> None:
        with replacing(path) as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_half_way()

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_file_and_name_are_synced_only_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    write_atomic(tmp_path / "one", b"", sync=False)
    assert synced == []
    write_atomic(tmp_path / "two", b"")
    assert len(synced) == 2


def test_a_folder_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    with making_folder(tmp_path / "folder") as beside:
        (beside / "file").touch()
        assert not (tmp_path / "folder").exists()

    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "file"]


def test_a_folder_that_fails_leaves_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), making_folder(tmp_path / "folder"):
        raise OSError("full")

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()

    with pytest.raises(OSError, match="not empty"), making_folder(tmp_path / "folder"):
        pass

    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "mine"]


def test_a_long_file_is_written_in_pieces_with_its_size_and_hash(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000  # more than is synced at once

    written = write_synced(tmp_path / "file", [b"head", memoryview(content)])

    assert (tmp_path / "file").read_bytes() == b"head" + content
    assert written == (len(content) + 4, hashlib.sha256(b"head" + content).hexdigest())
    assert file_digest(tmp_path / "file") == written[1]


def test_a_file_that_cannot_be_finished_is_removed(tmp_path: Path) -> None:
    def pieces() -> list[bytes]:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_synced(tmp_path / "file", (piece for piece in pieces()))

    assert list(tmp_path.iterdir()) == []
