"""Versions are whole or not there, and the pointer names one that is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from little_versions import Killed, publish

from fastbandit.errors import FormatError, SettingError, SnapshotError
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


LOSSES: dict[str, Callable[[Path], object]] = {
    "it is gone": Path.unlink,
    "it is empty": lambda path: path.write_bytes(b""),
    "it is no JSON": lambda path: path.write_text("{"),
    "a bit of its number is flipped": lambda path: path.write_bytes(
        path.read_bytes().replace(b'"version": 2', b'"version": 0')
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_pointer_is_written_anew_and_says_so_until_a_version_is_published(
    store: SnapshotStore, loss: str
) -> None:
    published(store, 4)
    store.rollback(2)
    LOSSES[loss](store.pointer)

    store.recover()

    current, again = store.current(), SnapshotStore(store.folder).current()
    assert current is not None
    assert current == again
    assert current.version == 2
    assert "was missing or damaged" in current.fell_back
    assert publish(store).parent == 2
    assert (store.current() or current).fell_back == ""


def test_without_a_pointer_the_newest_version_that_is_whole_is_loaded(store: SnapshotStore) -> None:
    published(store, 4)
    store.pointer.unlink()

    found = store.load(rejecting(3))

    assert found is not None
    assert (found[1], found[0].fell_back) == (2, "Version 3 does not fit.")
    assert store.pointer.exists()


def test_a_lost_pointer_without_any_version_stays_lost(store: SnapshotStore) -> None:
    store.recover()

    assert store.mend_pointer() is None
    assert store.current() is None


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

    store.recover()

    current = store.current()
    assert current is not None
    assert (current.version, current.fell_back) == (0, "")


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


# -- what is damaged


def rejecting(*versions: int) -> Callable[[Snapshot], int]:
    """Return what reads the number of a version, and finds some damaged."""

    def read(snapshot: Snapshot) -> int:
        if snapshot.version in versions:
            raise SnapshotError(f"Version {snapshot.version} does not fit.")
        return snapshot.version

    return read


def test_one_that_cannot_be_loaded_is_set_aside_and_an_older_one_stands_in(
    store: SnapshotStore,
) -> None:
    published(store, 4)

    found = store.load(rejecting(2, 3))

    assert found is not None
    assert (found[0].version, found[1]) == (1, 1)
    assert found[0].fell_back == "Version 3 does not fit."
    assert store.versions() == [0, 1]
    for version in (2, 3):
        assert (store.folder / f"damaged-{version:06d}" / "snapshot.json").exists()
        assert "does not fit" in (store.folder / f"damaged-{version:06d}.json").read_text()


def test_all_who_ask_later_hear_why(store: SnapshotStore) -> None:
    published(store, 2)
    store.load(rejecting(1))
    current = SnapshotStore(store.folder).current()

    assert current is not None
    assert (current.version, current.fell_back) == (0, "Version 1 does not fit.")


def test_the_number_of_one_set_aside_is_not_used_again(store: SnapshotStore) -> None:
    published(store, 2)
    store.load(rejecting(1))
    shutil.rmtree(store.folder / "damaged-000001")
    following = publish(store)

    assert (following.version, following.parent) == (2, 0)
    assert following.fell_back == ""


def test_nothing_is_set_aside_where_nothing_would_be_left(store: SnapshotStore) -> None:
    published(store, 2)

    with pytest.raises(SnapshotError, match="Version 1 does not fit"):
        store.load(rejecting(0, 1))
    assert store.versions() == [0, 1]


def test_looking_sets_nothing_aside(store: SnapshotStore) -> None:
    published(store, 2)
    current = store.current(rejecting(1))

    assert current is not None
    assert current.version == 0
    assert store.versions() == [0, 1]


def test_one_that_others_may_read_stays(store: SnapshotStore) -> None:
    published(store, 2)

    def read(snapshot: Snapshot) -> None:
        if snapshot.version == 1:
            raise FormatError("Format 9.")

    found = store.load(read)

    assert found is not None
    assert found[0].fell_back == "Format 9."
    assert store.versions() == [0, 1]


def test_one_that_was_brought_anew_meanwhile_stays(store: SnapshotStore) -> None:
    published(store, 2)

    def read(snapshot: Snapshot) -> None:
        if snapshot.version == 1:
            notes = (snapshot.folder / "snapshot.json").read_bytes()
            (snapshot.folder / "snapshot.json").unlink()
            (snapshot.folder / "again").write_bytes(notes)
            (snapshot.folder / "again").rename(snapshot.folder / "snapshot.json")
            raise SnapshotError("It was half-written.")

    assert store.load(read) is not None
    assert store.versions() == [0, 1]


def test_one_that_is_restored_and_damaged_again_is_set_aside_beside_the_first(
    store: SnapshotStore,
) -> None:
    published(store, 2)
    shutil.copytree(store.folder / "000001", store.folder.parent / "backup")
    store.load(rejecting(1))
    shutil.copytree(store.folder.parent / "backup", store.folder / "000001")
    assert served(store) == 1
    store.load(rejecting(1))

    assert (store.folder / "damaged-000001").exists()
    assert (store.folder / "damaged-000001-2").exists()


@pytest.mark.parametrize("is_set_aside", [True, False])
def test_a_rollback_of_what_stands_in_makes_that_final(
    store: SnapshotStore, is_set_aside: bool
) -> None:
    newest = published(store, 4)[-1]
    content = shutil.copytree(newest.folder, store.folder.parent / "backup")
    (newest.folder / "snapshot.json").unlink()
    if is_set_aside:
        store.load(rejecting())

    rolled = store.rollback()
    shutil.rmtree(newest.folder, ignore_errors=True)
    shutil.copytree(content, newest.folder)
    store.recover()

    assert rolled.version == served(store) == 2
    assert [report["version"] for report in store.refused()] == [3]
    assert (store.current() or newest).fell_back == ""


def test_a_rollback_after_a_lost_pointer_ends_what_is_said(store: SnapshotStore) -> None:
    published(store, 2)
    store.pointer.unlink()

    assert store.rollback().version == 1
    assert (store.current() or store.get(0)).fell_back == ""


def test_a_rollback_to_one_that_does_not_pass_changes_nothing(store: SnapshotStore) -> None:
    published(store, 2)

    with pytest.raises(SnapshotError, match="does not fit"):
        store.rollback(0, check=rejecting(0))
    assert served(store) == 1


def test_signed_versions_are_read_by_their_key_alone(tmp_path: Path) -> None:
    signed = SnapshotStore(tmp_path, keys=[b"k" * 16])
    publish(SnapshotStore(tmp_path))
    with pytest.raises(SnapshotError, match="signature"):
        signed.current()
    shutil.rmtree(tmp_path / "000000")
    (tmp_path / "current.json").unlink()
    publish(signed)

    assert served(signed) == 0
    assert served(SnapshotStore(tmp_path)) == 0
    with pytest.raises(SnapshotError, match="signature"):
        SnapshotStore(tmp_path, keys=[b"other" * 4]).current()


def test_a_cut_that_is_moved_stays_signed(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, keys=[b"k" * 16])
    publish(store)

    store.move_cut(publish(store), Cut(seq=3))

    current = store.current()
    assert current is not None
    assert (current.version, current.cut, current.fell_back) == (1, Cut(seq=3), "")


def test_versions_that_are_there_can_be_signed(store: SnapshotStore) -> None:
    first, second = published(store, 2)
    signing = SnapshotStore(store.folder, keys=[b"k" * 16])

    assert signing.sign() == [0, 1]
    assert signing.list() == [first, second]
    with pytest.raises(SettingError, match="signing_key_file"):
        store.sign()
