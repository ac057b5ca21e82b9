"""What a version says of itself, in words of today and of before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from little_versions import publish

from fastbandit.errors import SnapshotError
from fastbandit.files.manifest import SNAPSHOT, write_manifest
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import FORMAT, NOTES, Cut, Snapshot, read_snapshot


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return publish(SnapshotStore(tmp_path))


def rewrite(snapshot: Snapshot, **changes: Any) -> None:
    """Change what a version says, and its hash."""
    notes = json.loads((snapshot.folder / NOTES).read_text())
    own = {key: value for key, value in notes.items() if key not in ("sha256", "format", "kind")}
    write_manifest(snapshot.folder / NOTES, {**own, **changes}, kind=SNAPSHOT, format=FORMAT)


def test_a_version_is_read_as_it_was_published(snapshot: Snapshot) -> None:
    assert read_snapshot(snapshot.folder, check=True) == snapshot


def test_a_cut_is_read_by_the_names_of_before(snapshot: Snapshot) -> None:
    rewrite(snapshot, cut={"seq": 5, "at": 6, "since": 4, "pairs": 3, "held": 2})

    assert read_snapshot(snapshot.folder).cut == Cut(5, 6, 4, interactions=3, held=2)


def test_a_version_whose_parts_are_gone_says_so_only_when_checked(snapshot: Snapshot) -> None:
    next(snapshot.frozen.glob("arrays*")).unlink()

    assert read_snapshot(snapshot.folder).version == 0
    with pytest.raises(SnapshotError, match="as it was written"):
        read_snapshot(snapshot.folder, check=True)


def test_notes_that_lack_something_are_an_error(snapshot: Snapshot) -> None:
    rewrite(snapshot, cut={"unknown": 1})

    with pytest.raises(SnapshotError, match="does not fit together"):
        read_snapshot(snapshot.folder)
