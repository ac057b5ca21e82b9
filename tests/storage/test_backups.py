"""A backup is a copy of one moment of a running service; it is restored whole, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fastbandit.cli.backup import command as backup_command
from fastbandit.cli.restore import command as restore_command
from fastbandit.errors import DataError, FastbanditError, LogError
from fastbandit.files.manifest import digest_of, write_arrays
from fastbandit.storage import backups
from fastbandit.storage.backups import back_up, restore
from fastbandit.storage.events import ArmsChanged, DecisionMade, RewardCame
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut, Snapshot
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.storage.standing_requests import RESET_FILE, ask, asked_in


def made(id: str) -> DecisionMade:
    return DecisionMade(id, [0.5], ["a"], [0.1], seed=1, version=0, catalogue=0, wait=1_000)


def publish(store: SnapshotStore, parent: Snapshot | None) -> Snapshot:
    version = store.next_version()
    with store.drafting() as draft:
        for part, kind in (("bandit", "bandit"), ("frozen", "frozen bandit")):
            arrays = {"numbers": np.full(3, version, dtype=np.float32)}
            write_arrays(draft / part, arrays, {}, kind=kind, format=1)
        return store.publish(draft, {}, version=version, parent=parent, cut=Cut())


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Give the data of a service: three versions, and one that was refused."""
    folder = tmp_path / "data"
    store, parent = SnapshotStore(folder / "snapshots"), None
    for _ in range(3):
        parent = publish(store, parent)
    store.refuse(3, {"reason": "It was worse."})
    (folder / "keys.json").write_text("{}", encoding="utf-8")
    (folder / "keys.json").chmod(0o600)
    (folder / "decides.json").write_text('{"decides":"bandit","since":1}', encoding="utf-8")
    return folder


@pytest.fixture
def log(data_dir: Path) -> Iterator[SqliteLog]:
    """Give the log of the service, which stays open for writing."""
    log = SqliteLog(data_dir / "events.db")
    log.append([ArmsChanged(), made("one"), made("two"), RewardCame("one", 1.0)])
    yield log
    log.close()


@pytest.fixture
def backup(data_dir: Path, log: SqliteLog, tmp_path: Path) -> Path:
    return back_up(data_dir, tmp_path / "backup").folder


def events_in(folder: Path) -> list[Any]:
    log = SqliteLog(folder / "events.db")
    try:
        return log.read()
    finally:
        log.close()


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def change(backup: Path, **told: Any) -> None:
    """Change what the manifest of a backup says, and its hash."""
    path = backup / "manifest.json"
    manifest = {**json.loads(path.read_text()), **told}
    manifest.pop("sha256")
    path.write_text(json.dumps({**manifest, "sha256": digest_of(manifest)}))


# -- backing up


def test_a_restored_folder_holds_all_that_was_there(
    backup: Path, log: SqliteLog, tmp_path: Path
) -> None:
    restore(backup, tmp_path / "again")

    store = SnapshotStore(tmp_path / "again" / "snapshots")
    assert events_in(tmp_path / "again") == log.read()
    assert [snapshot.version for snapshot in store.list()] == [1, 2]
    assert json.loads(store.pointer.read_text()) == {"version": 2}
    assert store.next_version() == 4
    assert (tmp_path / "again" / "keys.json").read_text() == "{}"
    assert "bandit" in (tmp_path / "again" / "decides.json").read_text()


def test_a_reset_that_was_not_done_yet_comes_along(
    data_dir: Path, log: SqliteLog, tmp_path: Path
) -> None:
    ask(data_dir / RESET_FILE, seq=1)
    back_up(data_dir, tmp_path / "with")
    restore(tmp_path / "with", tmp_path / "again")

    assert asked_in(tmp_path / "again" / RESET_FILE) == asked_in(data_dir / RESET_FILE) is not None


def test_a_backup_tells_what_it_holds(data_dir: Path, log: SqliteLog, tmp_path: Path) -> None:
    made = back_up(data_dir, tmp_path / "backup")

    assert made.counts == {"decisions": 2, "rewards": 1, "changes": 1, "ticks": 0}
    assert (made.version, made.files + 1) == (2, len(files_in(made.folder)))


def test_a_backup_is_of_one_moment_though_the_service_writes_on(
    data_dir: Path, log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_PAGES", 1)
    before = log.read()

    def write_on(done: int, steps: int, doing: str) -> None:
        if doing == "Copying the log":
            log.append([made(f"during {log.last}"), RewardCame("two", 1.0)])

    back_up(data_dir, tmp_path / "backup", progress=write_on)

    restore(tmp_path / "backup", tmp_path / "again")
    assert events_in(tmp_path / "again") == before
    assert log.last > len(before) + 10


def test_no_snapshot_knows_of_an_event_that_the_log_lacks(
    data_dir: Path, log: SqliteLog, tmp_path: Path
) -> None:
    store = SnapshotStore(data_dir / "snapshots")

    def publish_on(done: int, steps: int, doing: str) -> None:
        if doing == "Copying the log" and store.next_version() == 4:
            log.append([made("late")])
            publish(store, store.current())

    assert back_up(data_dir, tmp_path / "backup", progress=publish_on).version == 2


def test_a_log_can_be_backed_up_before_there_are_snapshots_or_keys(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    SqliteLog(tmp_path / "data" / "events.db").close()

    made = back_up(tmp_path / "data", tmp_path / "backup")

    assert made.version is None
    assert files_in(made.folder) == {"events.db", "manifest.json"}
    assert restore(made.folder, tmp_path / "again").counts["decisions"] == 0


def test_all_of_it_can_be_read_by_its_owner_alone(
    data_dir: Path, log: SqliteLog, tmp_path: Path
) -> None:
    before = os.umask(0o022)
    try:
        back_up(data_dir, tmp_path / "backup")
        for path in (tmp_path / "backup").rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # as earlier backups had it
        restore(tmp_path / "backup", tmp_path / "again")
        back_up(data_dir, tmp_path / "another")
    finally:
        assert os.umask(before) == 0o022

    for folder in (tmp_path / "again", tmp_path / "another"):
        modes = {stat.S_IMODE(one.stat().st_mode) for one in (folder, *folder.rglob("*"))}
        assert modes == {0o600, 0o700}


def test_a_backup_never_writes_over_another(data_dir: Path, log: SqliteLog, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()

    with pytest.raises(DataError, match="is there already"):
        back_up(data_dir, tmp_path / "backup")


def test_a_backup_that_fails_leaves_nothing(data_dir: Path, log: SqliteLog, tmp_path: Path) -> None:
    def stop(done: int, steps: int, doing: str) -> None:
        if doing == "Checking":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(data_dir, tmp_path / "backup", progress=stop)

    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_folder_without_a_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"needs a log named events\.db: found none"):
        back_up(tmp_path / "nowhere", tmp_path / "backup")


def test_a_damaged_log_is_not_backed_up(data_dir: Path, log: SqliteLog, tmp_path: Path) -> None:
    log.close()
    page = bytearray((data_dir / "events.db").read_bytes())
    page[4096 * 2 : 4096 * 2 + 64] = bytes(64)
    (data_dir / "events.db").write_bytes(page)

    with pytest.raises(LogError, match=r"needs to be whole|can be read"):
        back_up(data_dir, tmp_path / "backup")

    assert not (tmp_path / "backup").exists()


def test_a_place_that_cannot_be_written_to_is_an_error(
    data_dir: Path, log: SqliteLog, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataError, match="a place that can be written to"):
        back_up(data_dir, tmp_path / "file" / "backup")


# -- restoring


def test_a_restore_leaves_a_folder_with_data_alone(
    backup: Path, data_dir: Path, log: SqliteLog
) -> None:
    before = files_in(data_dir)

    with pytest.raises(DataError, match="a folder that is empty"):
        restore(backup, data_dir)

    assert files_in(data_dir) == before


def test_a_restore_may_go_into_an_empty_folder(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()

    restore(backup, tmp_path / "again")

    assert len(events_in(tmp_path / "again")) == 4


def test_every_file_is_checked(backup: Path, tmp_path: Path) -> None:
    for name in sorted(files_in(backup)):
        path = backup / name
        whole = path.read_bytes()
        path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])

        with pytest.raises(FastbanditError, match="needs"):
            restore(backup, tmp_path / "again")

        assert not (tmp_path / "again").exists(), name
        path.write_bytes(whole)


def test_every_file_needs_to_be_there(backup: Path, tmp_path: Path) -> None:
    for name in sorted(files_in(backup)):
        path = backup / name
        whole = path.read_bytes()
        path.unlink()

        with pytest.raises(FastbanditError, match="needs"):
            restore(backup, tmp_path / "again")

        assert not (tmp_path / "again").exists(), name
        path.write_bytes(whole)


def test_a_log_that_is_not_whole_is_not_restored(backup: Path, tmp_path: Path) -> None:
    entries = json.loads((backup / "manifest.json").read_text())["files"]
    damaged = bytearray((backup / "events.db").read_bytes())
    damaged[4096 * 2 : 4096 * 2 + 64] = bytes(64)
    (backup / "events.db").write_bytes(damaged)
    digest = hashlib.sha256(damaged).hexdigest()
    entries["events.db"] = {"bytes": len(damaged), "sha256": digest}
    change(backup, files=entries)

    with pytest.raises(LogError, match=r"needs to be whole|can be read"):
        restore(backup, tmp_path / "again")


def test_a_log_with_fewer_events_than_were_backed_up_is_not_restored(
    backup: Path, tmp_path: Path
) -> None:
    change(backup, counts={"decisions": 3, "rewards": 1, "changes": 1, "ticks": 0})

    with pytest.raises(DataError, match="needs to hold what was backed up"):
        restore(backup, tmp_path / "again")


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_a_file_outside_the_folder_is_refused(name: str, backup: Path, tmp_path: Path) -> None:
    change(backup, files={name: {"bytes": 0, "sha256": ""}})

    with pytest.raises(DataError, match="as it was written"):
        restore(backup, tmp_path / "again")


@pytest.mark.parametrize("changed", [{"kind": "bandit"}, {"format": 2}])
def test_a_backup_of_another_kind_is_refused(
    changed: dict[str, Any], backup: Path, tmp_path: Path
) -> None:
    change(backup, **changed)

    with pytest.raises(DataError, match=r"holds a bandit|reads a backup of format 1"):
        restore(backup, tmp_path / "again")


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}'])
def test_a_manifest_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(DataError, match="a folder that `fastbandit backup` wrote"):
        restore(tmp_path, tmp_path / "again")


# -- commands


def test_the_commands_back_up_and_restore(data_dir: Path, log: SqliteLog, tmp_path: Path) -> None:
    backup, again = str(tmp_path / "backup"), str(tmp_path / "again")

    told = CliRunner().invoke(backup_command, [backup, "--data-dir", str(data_dir)])
    assert "Backed up 2 decisions, 1 rewards and version 2" in told.output
    told = CliRunner().invoke(restore_command, [backup, "--data-dir", again, "--json"])
    assert json.loads(told.output)["counts"]["decisions"] == 2
    assert events_in(tmp_path / "again") == log.read()
