"""The command `rollback`: an earlier version is served again."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_data import invoke

from fastbandit.cli.rollback import command
from fastbandit.errors import SnapshotError
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Snapshot
from tests.little_versions import publish


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SnapshotStore:
    """A store of four versions, of which the third, the parent of the last, cannot be served."""
    store = SnapshotStore(tmp_path / "snapshots")
    for _ in range(4):
        publish(store)

    def servable(snapshot: Snapshot) -> None:
        if snapshot.version == 2:
            raise SnapshotError("Version 2 is damaged: got an array that is too short.")

    monkeypatch.setattr("fastbandit.runtime.servable.servable", servable)
    return store


def test_a_folder_without_versions_has_none_to_go_back_to(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError):
        invoke(command, "--data-dir", tmp_path)


def test_where_the_parent_is_damaged_the_newest_whole_one_before_it_is_served(
    store: SnapshotStore, tmp_path: Path
) -> None:
    said = invoke(command, "--data-dir", tmp_path).output

    assert "Version 2 cannot be served" in said
    assert "Version 1 is served now." in said
    current = store.current()
    assert current is not None
    assert current.version == 1


def test_a_damaged_version_that_was_named_is_not_replaced_by_another(
    store: SnapshotStore, tmp_path: Path
) -> None:
    with pytest.raises(SnapshotError, match="Version 2 is damaged"):
        invoke(command, 2, "--data-dir", tmp_path)

    current = store.current()
    assert current is not None
    assert current.version == 3
