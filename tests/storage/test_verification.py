"""All of a log and its snapshots is read, and what is damaged is named."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np
import pytest
from little_versions import publish

from fastbandit.storage.archive import Archive
from fastbandit.storage.events import DecisionMade, RewardCame, TimePassed
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.sqlite_files import connect
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.storage.verification import verify_archive, verify_log, verify_snapshots


def made(number: int) -> DecisionMade:
    return DecisionMade(f"decision {number}", [0.5] * 30, ["x"], [0.0], 1, 0, 0, 1000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a log of many pages, and close it."""
    log = SqliteLog(tmp_path / "events.db")
    for number in range(200):
        log.append([made(number), RewardCame(f"decision {number}", 1.0), TimePassed()])
    log.close()
    return tmp_path / "events.db"


def test_nothing_is_wrong_with_a_whole_log(path: Path) -> None:
    assert list(verify_log(path)) == []


def test_a_log_that_is_written_meanwhile_is_whole(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "events.db")
    log.append([made(1)])

    assert list(verify_log(tmp_path / "events.db")) == []
    log.close()


def test_every_bit_that_turned_is_noticed(path: Path, numbers: np.random.Generator) -> None:
    whole = path.read_bytes()
    for at in numbers.integers(len(whole), size=100).tolist():
        content = bytearray(whole)
        content[at] ^= 1 << int(numbers.integers(8))
        path.write_bytes(content)

        assert list(verify_log(path)), at


def test_the_page_and_the_events_are_named(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = content.index(b"decision 90[0.5")
    content[at + 3] ^= 1
    path.write_bytes(content)

    found = [(one.where, one.what) for one in verify_log(path)]
    assert (f"page {at // 4096 + 1}", "has a wrong checksum") in found
    (events,) = [where for where, _ in found if where.startswith("decisions, events")]
    first, last = (int(word) for word in events.split() if word.isdigit())
    assert first <= 3 * 90 + 1 <= last < first + 100


def test_without_checksums_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    apsw.Connection(str(path)).execute("PRAGMA journal_mode = WAL").fetchall()
    log = SqliteLog(path)
    log.append([made(1), made(2), TimePassed()])
    log.close()
    connection = connect(path)
    connection.execute("UPDATE decisions SET arms = '[' WHERE seq = 2")
    connection.execute("INSERT INTO ticks (seq, at) VALUES (4, 0)")
    connection.close()

    found = [one.where for one in verify_log(path)]
    assert found == ["decisions, event 2", "ticks, event 4"]


def test_a_file_that_is_no_log_is_damaged(path: Path) -> None:
    path.write_bytes(b"nothing of the kind" * 999)

    assert list(verify_log(path))


def test_a_version_whose_arrays_changed_is_named(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    publish(store)
    publish(store)
    assert list(verify_snapshots(tmp_path)) == []
    (arrays,) = (tmp_path / "000001" / "frozen").glob("arrays-*")
    content = bytearray(arrays.read_bytes())
    content[-1] ^= 1
    arrays.write_bytes(content)
    (tmp_path / "000000" / "snapshot.json").write_text("{}")

    first, second = verify_snapshots(tmp_path)
    assert (Path(first.path).name, Path(second.path).name) == ("000000", "000001")
    assert f"The arrays in {arrays.parent} are not the ones that were saved" in second.what


def test_a_file_of_the_archive_that_changed_is_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    ticks = [(0, n, n) for n in range(1, 9)]
    for day in ("2026-01-30", "2026-01-31", "2026-02-01"):
        archive.write_day(day, (1, 8), lambda kind: ticks if kind == "ticks" else ())
    assert list(verify_archive(tmp_path)) == []
    path = tmp_path / "2026-01-31" / "ticks.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    (tmp_path / "2026-02-01" / "day.json").write_text('{"first": 2}')

    found = [(Path(one.path).parent.name, Path(one.path).name) for one in verify_archive(tmp_path)]
    kinds = ("decisions.parquet", "rewards.parquet", "ticks.parquet")
    assert found == [("2026-01-31", "ticks.parquet"), *(("2026-02-01", kind) for kind in kinds)]
