"""Versions are whole or not there, and the pointer names one that is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from little_versions import Killed, publish

from fastbandit.errors import SnapshotError
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut, Snapshot


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots")


def published(store: SnapshotStore, count: int) -> list[Snapshot]:
    return [publish(store) for _ in range(count)]


def served(store: SnapshotStore) -> int:
    current = store.current()
    assert current is not None
    return current.version


def test_an_empty_store_serves_nothing(store: SnapshotStore) -> None:
    assert store.current() is None
    assert store.list() == []


def test_what_was_published_last_is_served(store: SnapshotStore) -> None:
    first, second = published(store, 2)

    assert store.current() == second
    assert store.list() == [first, second]
    assert (second.version, second.parent, second.cut) == (1, 0, Cut(seq=10, interactions=1))
    assert second.notes == {"arms": 3}


def test_the_hash_is_told_by_the_content_alone(store: SnapshotStore, tmp_path: Path) -> None:
    ours, theirs = published(store, 2), published(SnapshotStore(tmp_path / "elsewhere"), 2)

    assert [one.hash for one in ours] == [one.hash for one in theirs]
    assert ours[0].hash != ours[1].hash


def test_a_draft_that_is_not_published_goes_away(store: SnapshotStore) -> None:
    with store.drafting() as draft:
        (draft / "note").write_text("half a version")

    assert not draft.exists()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "the folder is gone": shutil.rmtree,
    "its notes are gone": lambda folder: (folder / "snapshot.json").unlink(),
    "a bit of its notes is flipped": lambda folder: flip(folder / "snapshot.json"),
    "a bit of a manifest is flipped": lambda folder: flip(folder / "frozen" / "manifest.json"),
    "arrays are cut short": lambda folder: truncate(next(folder.glob("bandit/*.safetensors"))),
    "arrays are gone": lambda folder: next(folder.glob("frozen/*.safetensors")).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_older_version_stands_in_for_a_damaged_one(store: SnapshotStore, damage: str) -> None:
    published(store, 3)
    DAMAGES[damage](store.folder / "000002")

    current = store.current()

    assert current is not None
    assert current.version == 1
    assert "000002" in current.fell_back


def test_a_version_that_was_rolled_back_does_not_stand_in(store: SnapshotStore) -> None:
    published(store, 2)
    store.rollback()
    newest = publish(store)
    shutil.rmtree(newest.folder)

    assert served(store) == 0


def test_where_nothing_is_whole_that_is_said(store: SnapshotStore) -> None:
    snapshot = publish(store)
    truncate(next(snapshot.frozen.glob("*.safetensors")))

    with pytest.raises(SnapshotError, match="as it was written"):
        store.current()


def test_a_damaged_pointer_does_not_matter(store: SnapshotStore) -> None:
    published(store, 2)
    store.pointer.write_text("{")

    assert served(store) == 1


@pytest.mark.parametrize("step", ["noted", "renamed", "published"])
def test_one_killed_while_publishing_leaves_a_whole_version(
    store: SnapshotStore, step: str
) -> None:
    publish(store)
    with pytest.raises(Killed):
        publish(store, kill_at=step)

    assert served(store) == (1 if step == "published" else 0)
    store.recover()
    assert served(store) == (0 if step == "noted" else 1)


def test_a_first_version_that_was_only_renamed_is_published_later(store: SnapshotStore) -> None:
    with pytest.raises(Killed):
        publish(store, kill_at="renamed")
    assert store.current() is None

    store.recover()

    assert served(store) == 0


def test_the_drafts_of_the_dead_are_swept(store: SnapshotStore) -> None:
    publish(store)
    live = store.folder / f".draft-{os.getppid()}-1"
    dead = [store.folder / name for name in (".draft-999999999-1", ".draft-x", ".gone-7")]
    for folder in (live, *dead):
        folder.mkdir()

    store.recover()

    assert live.exists()
    assert not any(folder.exists() for folder in dead)


def test_a_rollback_goes_to_the_parent(store: SnapshotStore) -> None:
    published(store, 3)

    assert store.rollback().version == 1
    assert served(store) == 1


def test_a_rollback_goes_to_a_version_by_its_number(store: SnapshotStore) -> None:
    published(store, 3)
    store.rollback(0)

    assert served(store) == 0
    assert [report["version"] for report in store.refused()] == [1, 2]
    assert "Rolled back to version 0" in store.refused()[0]["reason"]


def test_after_a_rollback_a_new_version_has_a_new_number(store: SnapshotStore) -> None:
    published(store, 3)
    store.rollback()
    fresh = publish(store)

    assert (fresh.version, fresh.parent) == (3, 1)


def test_a_rollback_is_not_undone_by_a_recovery(store: SnapshotStore) -> None:
    published(store, 2)
    store.rollback()
    store.recover()

    assert served(store) == 0


def test_a_rollback_can_be_taken_back(store: SnapshotStore) -> None:
    published(store, 2)
    store.rollback()
    store.rollback(1)

    assert served(store) == 1
    assert store.refused() == []


@pytest.mark.parametrize(
    ("version", "told"), [(None, "is the first"), (7, "got 7, and .* holds 0. Name one of them")]
)
def test_a_rollback_to_nowhere_says_so(
    store: SnapshotStore, version: int | None, told: str
) -> None:
    publish(store)

    with pytest.raises(SnapshotError, match=told):
        store.rollback(version)
    assert served(store) == 0


def test_a_rollback_without_any_version_names_the_folder_and_makes_none(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere" / "snapshots"

    with pytest.raises(SnapshotError, match="nowhere/snapshots holds none"):
        SnapshotStore(folder).rollback()
    assert not folder.exists()


def test_what_was_made_from_another_version_is_not_published(store: SnapshotStore) -> None:
    published(store, 2)
    parent = store.current()
    store.rollback()

    with store.drafting() as draft, pytest.raises(SnapshotError, match="follow the current one"):
        store.publish(draft, {}, version=2, parent=parent, cut=Cut())
    assert served(store) == 0


def test_a_refused_version_leaves_its_report_and_its_number(store: SnapshotStore) -> None:
    publish(store)
    store.refuse(1, {"reason": "It guesses."})

    assert store.refused() == [{"reason": "It guesses.", "version": 1}]
    assert store.next_version() == 2


def test_refusals_in_a_row_end_with_a_version_and_leave_out_rollbacks(
    store: SnapshotStore,
) -> None:
    published(store, 2)
    store.refuse(2, {"reason": "It guesses."})
    store.refuse(3, {"reason": "It guesses."})
    assert [one["version"] for one in store.refusals()] == [2, 3]

    store.rollback(0)
    assert [one["version"] for one in store.refusals()] == [2, 3]
    publish(store)
    assert store.refusals() == []


@pytest.mark.parametrize(("keep", "kept"), [(1, [3, 4]), (3, [2, 3, 4]), (9, [0, 1, 2, 3, 4])])
def test_old_versions_are_pruned(store: SnapshotStore, keep: int, kept: list[int]) -> None:
    published(store, 5)
    store.prune(keep)

    assert [one.version for one in store.list()] == kept


def test_versions_younger_than_the_pointer_and_its_parent_are_never_pruned(
    store: SnapshotStore,
) -> None:
    published(store, 5)
    store.rollback(2)
    store.prune(1)

    assert [one.version for one in store.list()] == [1, 2, 3, 4]


def test_a_folder_that_cannot_be_written_to_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(SnapshotError, match="written to"):
        publish(SnapshotStore(tmp_path / "file" / "snapshots"))
