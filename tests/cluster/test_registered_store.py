"""Versions that machines share: published once, fetched whole, moved by one trainer at a time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from little_versions import Killed, publish

from fastbandit.errors import SnapshotError
from fastbandit.storage.deltas import Delta
from fastbandit.storage.registered_store import RegisteredStore

Machine = Callable[[str], RegisteredStore]


def served(store: RegisteredStore) -> Any:
    current = store.current()
    return current and (current.version, current.hash)


def test_what_one_machine_publishes_another_serves(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    first = publish(one)

    assert two.pull() == 0

    assert served(two) == (0, first.hash)


def test_a_second_version_replaces_the_first(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    publish(one)
    two.pull()
    publish(one)

    assert two.pull() == 1

    assert served(two) == served(one)


def test_without_any_version_there_is_nothing_to_serve(machine: Machine) -> None:
    assert machine("one").pull() is None


@pytest.mark.parametrize("step", ["noted", "renamed"])
def test_a_version_whose_trainer_was_killed_is_made_anew(machine: Machine, step: str) -> None:
    one = machine("one")
    publish(one)
    with pytest.raises(Killed):
        publish(one, kill_at=step)

    one.recover()
    publish(one)

    assert served(one)[0] == 1
    assert machine("two").pull() == 1


def test_a_version_that_was_pointed_to_before_the_kill_stands(machine: Machine) -> None:
    one = machine("one")
    publish(one)
    with pytest.raises(Killed):
        publish(one, kill_at="published")

    one.recover()

    assert served(one)[0] == 1


def test_a_file_that_changed_in_the_store_is_refused(machine: Machine, tmp_path: Path) -> None:
    publish(machine("one"))
    two = machine("two")
    (file,) = (tmp_path / "shared").rglob("frozen/arrays*")
    file.write_bytes(b"x" * file.stat().st_size)

    with pytest.raises(SnapshotError, match="another SHA-256"):
        two.pull()

    assert two.current() is None


def test_what_was_fetched_half_is_fetched_again(machine: Machine) -> None:
    publish(machine("one"))
    two = machine("two")
    fetch, two.registry.fetch = two.registry.fetch, broken  # type: ignore[method-assign]
    with pytest.raises(Killed):
        two.pull()
    two.registry.fetch = fetch  # type: ignore[method-assign]

    assert two.pull() == 0


def broken(row: Any, folder: Path) -> None:
    (folder / "snapshot.json").write_text("{")
    raise Killed


def test_a_local_version_of_another_trainer_gives_way(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    publish(one)
    two.pull()
    with pytest.raises(Killed):
        publish(two, kill_at="renamed")
    mine = publish(one)

    two.pull()

    assert served(two) == (1, mine.hash)


def test_of_two_that_follow_the_same_version_one_is_refused(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    publish(one)
    two.pull()
    publish(one)

    with pytest.raises(SnapshotError, match="1 is served by now"):
        publish(two)


def test_a_rollback_reaches_all_with_its_reason(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    publish(one)
    publish(one)
    two.pull()

    one.rollback()
    two.pull()

    assert served(two)[0] == 0
    assert [report["version"] for report in two.refused()] == [1]
    assert publish(one).version == 2


def test_old_versions_leave_the_store(machine: Machine, tmp_path: Path) -> None:
    one = machine("one")
    for _ in range(4):
        publish(one)

    one.prune(2)

    assert sorted(path.name[:6] for path in (tmp_path / "shared").iterdir()) == ["000002", "000003"]
    assert machine("two").pull() == 3


# -- versions that are damaged or missing in the store


def damage(tmp_path: Path, version: int, how: str) -> None:
    (folder,) = (tmp_path / "shared").glob(f"{version:06d}-*")
    if how == "deleted":
        shutil.rmtree(folder)
        return
    (file,) = folder.rglob("frozen/arrays*")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("how", ["flipped", "deleted"])
@pytest.mark.parametrize("damaged", [[2], [2, 1]])
def test_an_empty_machine_serves_the_newest_version_that_is_whole(
    machine: Machine, tmp_path: Path, damaged: list[int], how: str
) -> None:
    one, two = machine("one"), machine("two")
    whole = [publish(one) for _ in range(3)]
    for version in damaged:
        damage(tmp_path, version, how)

    two.pull()

    current = two.current()
    assert current is not None
    assert current.hash == whole[min(damaged) - 1].hash
    assert ("SHA-256" if how == "flipped" else "can be used") in current.fell_back


@pytest.mark.parametrize("how", ["flipped", "deleted"])
def test_an_empty_learner_goes_on_from_the_newest_version_that_is_whole(
    machine: Machine, tmp_path: Path, how: str
) -> None:
    one, two = machine("one"), machine("two")
    for _ in range(2):
        publish(one)
    damage(tmp_path, 1, how)

    two.acquire_lease()
    two.recover()
    made = publish(two)

    assert (made.version, made.parent) == (2, 0)
    assert machine("three").pull() == 2


def test_a_version_that_was_damaged_is_fetched_again(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.storage.registered_store._AGAIN_SECONDS", 0.0)
    one, two = machine("one"), machine("two")
    publish(one)
    second = publish(one)
    (file,) = (tmp_path / "shared").glob("000001-*/frozen/arrays*")
    content = file.read_bytes()
    damage(tmp_path, 1, "flipped")
    two.pull()
    pointer = two.pointer.stat()

    file.write_bytes(content)
    two._again = 0.0
    two.pull()

    assert served(two) == (1, second.hash)
    assert two.pointer.stat().st_ino != pointer.st_ino  # so that who serves looks again


def test_a_version_that_cannot_be_loaded_is_fetched_again_once(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    first = publish(one)
    two.pull()
    (file,) = two.folder.glob("000000/frozen/arrays*")
    file.write_bytes(b"x" * file.stat().st_size)

    two.fetch_again(0)
    two.pull()

    assert file.read_bytes() != b"x" * file.stat().st_size
    assert served(two) == (0, first.hash)
    file.write_bytes(b"y" * file.stat().st_size)
    two.fetch_again(0)
    assert file.exists()


@pytest.mark.parametrize("content", [None, "", "{"])
def test_a_lost_pointer_is_written_anew_from_the_registry(
    machine: Machine, content: str | None
) -> None:
    one = machine("one")
    publish(one)
    second = publish(one)
    one.pointer.unlink()
    if content is not None:
        one.pointer.write_text(content)

    one.pull()

    assert served(one) == (1, second.hash)
    assert (one.current() or second).fell_back == ""
    assert json.loads(one.pointer.read_text())["version"] == 1


def test_a_delta_that_is_not_signed_is_refused_by_who_has_keys(
    machine: Machine, tmp_path: Path
) -> None:
    one = machine("one")
    first = publish(one)
    rows, numbers = np.zeros(1, np.int32), np.ones(1, np.float32)
    delta = Delta(0, first.hash, 1, 9, 1, rows, numbers, numbers)
    signing = RegisteredStore(tmp_path / "one", one.registry, keys=[b"k" * 16])

    one.publish_delta(delta)
    with pytest.raises(SnapshotError, match="signing_key_file"):
        signing.newest_delta(first)
    with pytest.raises(SnapshotError, match="signing_key_file"):
        signing.follow_delta()
    signing.publish_delta(delta)

    found = signing.newest_delta(first)
    assert found is not None
    assert found.number == 1


@pytest.mark.parametrize("how", ["flipped", "deleted"])
@pytest.mark.parametrize("version", [None, 0, 1])
def test_a_rollback_and_a_list_need_no_damaged_version(
    machine: Machine, tmp_path: Path, how: str, version: int | None
) -> None:
    one, two = machine("one"), machine("two")
    for _ in range(3):
        publish(one)
    damage(tmp_path, 2, how)

    listed = [found.version for found in two.list()]
    snapshot = two.rollback(version)

    assert listed == ([0, 1, 2] if how == "flipped" else [0, 1])
    assert snapshot.version == (1 if version is None else version)
    assert machine("three").pull() == snapshot.version
    assert max(report["version"] for report in two.refused()) == 2
    assert not (two.current() or snapshot).fell_back
