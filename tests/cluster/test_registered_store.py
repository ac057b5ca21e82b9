"""Versions that machines share: published once, fetched whole, moved by one trainer at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from little_versions import Killed, publish

from fastbandit.errors import SnapshotError
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
