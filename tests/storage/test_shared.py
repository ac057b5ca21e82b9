"""Without a URL, log and snapshots are those of the data folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from fastbandit.storage.shared import open_log, open_store
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_log import SqliteLog


def test_the_log_of_a_data_folder_is_a_file_in_it(tmp_path: Path) -> None:
    with closing(open_log("", tmp_path)) as log:
        assert isinstance(log, SqliteLog)

    assert (tmp_path / "events.db").exists()


def test_the_snapshots_of_a_data_folder_are_of_one_machine(tmp_path: Path) -> None:
    store = open_store("", "", tmp_path)

    assert type(store) is SnapshotStore
    assert store.folder == tmp_path / "snapshots"
