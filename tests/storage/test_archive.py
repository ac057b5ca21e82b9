"""Days that left a log are read back as they were, and can be changed row by row."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.errors import DataError
from fastbandit.storage.archive import DAY_FILE, Archive
from fastbandit.storage.events import RewardCame, TimePassed

REWARDS = [("a", 0.5, '"x"', "", "counted", 1, 10), ("b", 1.0, None, "p", "late", 3, 11)]
TICKS = [(0, 2, 10), (0, 4, 12)]


def rows_of(kind: str) -> Iterable[Any]:
    return {"rewards": REWARDS, "ticks": TICKS}.get(kind, ())


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    found = Archive(tmp_path / "archive")
    found.write_day("2026-01-31", (1, 4), rows_of)
    return found


def test_events_come_back_in_their_order(archive: Archive) -> None:
    events = list(archive.events(after=0, until=9))

    assert events == [
        RewardCame("a", 0.5, "x", "", "counted", 1, 10),
        TimePassed(2, 10),
        RewardCame("b", 1.0, None, "p", "late", 3, 11),
        TimePassed(4, 12),
    ]
    assert [event.seq for event in archive.events(after=1, until=3)] == [2, 3]
    assert (archive.days(), archive.last) == (["2026-01-31"], 4)


def test_all_of_a_day_is_synced_before_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[int, int] = {}  # how much of each file
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        sync(descriptor)
        found = os.fstat(descriptor)
        synced[found.st_ino] = found.st_size

    monkeypatch.setattr(os, "fsync", recorded)
    Archive(tmp_path).write_day("2026-01-31", (1, 4), rows_of)

    files = [path.stat() for path in (tmp_path / "2026-01-31").iterdir()]
    assert len(files) == 4
    assert all(synced[one.st_ino] == one.st_size for one in files)
    assert (tmp_path / "2026-01-31").stat().st_ino in synced
    assert tmp_path.stat().st_ino in synced


def test_rows_are_found_and_changed(archive: Archive) -> None:
    (found,) = archive.find("2026-01-31", "rewards", "decision", ["b", "c"])
    archive.rewrite("2026-01-31", "rewards", {3: {**found, "value": 0.0}})

    assert [row[1] for row in archive.rows("2026-01-31", "rewards")] == [0.5, 0.0]


def test_none_is_empty_and_a_damaged_day_is_an_error(archive: Archive, tmp_path: Path) -> None:
    assert Archive(tmp_path / "none").last == 0
    assert list(Archive(tmp_path / "none").events(after=0, until=9)) == []
    (archive.folder / "2026-01-31" / DAY_FILE).write_text("{}")

    with pytest.raises(DataError, match="Restore it from a backup"):
        archive.last  # noqa: B018


def test_a_draft_of_a_process_that_died_is_no_day(archive: Archive, tmp_path: Path) -> None:
    draft = archive.folder / ".2026-01-31-0a1b2c3d.part"
    shutil.copytree(archive.folder / "2026-01-31", draft)

    assert archive.days() == ["2026-01-31"]
    assert [event.seq for event in archive.events(after=0, until=9)] == [1, 2, 3, 4]
    archive.remove_drafts()
    assert not draft.exists()


def test_a_bit_that_turned_in_a_page_is_an_error_that_names_the_file(
    archive: Archive, numbers: np.random.Generator
) -> None:
    rows = [(f"decision {n}", float(n), '"x"', "", "counted", n, n) for n in range(1, 400)]
    archive.write_day("2026-02-01", (1, 400), lambda kind: rows if kind == "rewards" else ())
    path = archive.folder / "2026-02-01" / "rewards.parquet"
    whole = path.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    changed = []
    for at in numbers.integers(4, len(whole) - footer - 8, size=100).tolist():
        content = bytearray(whole)
        content[at] ^= 1 << int(numbers.integers(8))
        path.write_bytes(content)
        with suppress(DataError):
            changed.append([*archive.rows("2026-02-01", "rewards")] != rows)
    assert not any(changed)
    assert len(changed) < 10  # a header of a page may hold bits that say nothing

    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"rewards\.parquet is not .*Restore it from a backup"):
        archive.find("2026-02-01", "rewards", "decision", ["decision 1"])
