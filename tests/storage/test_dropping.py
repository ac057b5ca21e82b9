"""Values of a column leave a log after some days: no byte of them is left in the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.features.schema import Schema
from fastbandit.storage.archive import Archive
from fastbandit.storage.dropping import Dropped, drop_columns, without_value
from fastbandit.storage.events import DecisionMade, TimePassed
from fastbandit.storage.history_files import HistoryFiles, Learned
from fastbandit.storage.retention import DAY, retain
from fastbandit.storage.snapshot_store import SnapshotStore
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog
from tests.little_versions import publish

FIRST = 20_000 * DAY
VALUE = "Xenophon-of-Athens"
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"kind": "number"},
            "home": {"kind": "category", "hashed": 4, "drop_after_days": 2},
        }
    }
)
CONTEXT: dict[str, Any] = {"age": 31.0, "home": VALUE}


def write(folder: Path, *, days: int) -> SqliteLog:
    """Write a decision a day, and one that lacks the value."""
    at = FIRST
    log = SqliteLog(folder / "events.db", clock=lambda: at)
    for day in range(days):
        at = FIRST + day * DAY
        terms: dict[str, Any] = {"scores": [0.0], "seed": 0, "version": 0, "catalogue": 0}
        for n, context in enumerate((CONTEXT, {"age": 5.0, "home": None})):
            made = DecisionMade(id=f"d{day}-{n}", context=context, arms=["x"], wait=1, **terms)
            log.append([made])
        log.append([TimePassed()])
    return log


def history(folder: Path, seqs: list[int]) -> HistoryFiles:
    """Write training data of some decisions, as a version that is published learned them."""
    files, cut = HistoryFiles(folder / "history"), Cut(seq=12, at=0, since=12)
    keys = np.array([[seq + 1, seq, 0] for seq in seqs], dtype=np.int64)
    contexts = np.stack([SCHEMA.encode_one(CONTEXT)] * len(seqs))
    rows, rewards = np.zeros(len(seqs), np.int64), np.zeros(len(seqs), np.float32)
    files.write(Cut(), cut, Learned(keys, contexts, rows, rewards))
    publish(SnapshotStore(folder / "snapshots"), cut=cut)
    return files


def dropped(folder: Path, *, day: int) -> Dropped:
    days = SCHEMA.drops
    now = FIRST + day * DAY + 1
    return drop_columns(folder, folder / "events.db", days, SCHEMA, now=now)["home"]


def bytes_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def contexts_of(log: SqliteLog) -> list[Any]:
    return [event.context for event in log.read() if isinstance(event, DecisionMade)]


def test_no_byte_of_a_dropped_value_is_left(tmp_path: Path) -> None:
    log = write(tmp_path, days=4)
    files = history(tmp_path, [1, 4, 7, 10])
    retain(tmp_path, tmp_path / "events.db", days=2, is_archived=True, now=FIRST + 3 * DAY)
    assert Archive(tmp_path / "archive").days() == ["2024-10-04"]
    assert VALUE.encode() in bytes_in(tmp_path)

    found = dropped(tmp_path, day=10)

    log.close()
    assert found == Dropped(log=3, archive=1, interactions=4)
    assert VALUE.encode() not in bytes_in(tmp_path)
    archive = Archive(tmp_path / "archive")
    rows = list(archive.rows("2024-10-04", "decisions"))
    assert not any(VALUE in str(row) for row in rows)
    learned = files.read(Cut(seq=12, at=0, since=12))
    assert learned is not None
    missing = SCHEMA.encode_one({**CONTEXT, "home": None})
    assert (learned.contexts == missing).all()
    assert dropped(tmp_path, day=10) == Dropped()


def test_only_values_that_are_old_enough_leave(tmp_path: Path) -> None:
    log = write(tmp_path, days=4)

    found = dropped(tmp_path, day=3)

    gone = {"age": 31.0, "home": None}
    assert found.log == 2
    assert contexts_of(log)[::2] == [gone, gone, CONTEXT, CONTEXT]
    assert contexts_of(log)[1::2] == [{"age": 5.0, "home": None}] * 4
    assert log.marks().dropped["home"] == 6
    assert dropped(tmp_path, day=4).log == 1
    log.close()


def test_values_of_an_archived_day_stay_until_they_are_old_enough(tmp_path: Path) -> None:
    log = write(tmp_path, days=4)
    history(tmp_path, [1])
    retain(tmp_path, tmp_path / "events.db", days=1, is_archived=True, now=FIRST + 3 * DAY)
    assert len(Archive(tmp_path / "archive").days()) == 2

    found = dropped(tmp_path, day=3)

    log.close()
    assert found.archive == 1


def test_a_run_that_was_stopped_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path, days=4)
    with monkeypatch.context() as patch:
        patch.setattr("fastbandit.storage.dropping.drop_learned", _stopped)
        with pytest.raises(KeyboardInterrupt):
            dropped(tmp_path, day=10)
    files = history(tmp_path, [1, 4])

    dropped(tmp_path, day=11)
    dropped(tmp_path, day=12)

    log.close()
    assert VALUE.encode() not in bytes_in(tmp_path)
    assert files.dropped() == {"home": 12}


def _stopped(*args: object) -> int:
    raise KeyboardInterrupt


def test_what_is_written_later_of_old_decisions_is_held_as_missing(tmp_path: Path) -> None:
    files = history(tmp_path, [1])
    files.drop("home", until=5, span=SCHEMA.spans["home"], missing=SCHEMA.missing("home"))
    before, cut = Cut(seq=12, at=0, since=12), Cut(seq=20, at=0, since=20)
    row = SCHEMA.encode_one(CONTEXT)[None]
    keys = np.array([[9, 4, 0], [9, 6, 0]], dtype=np.int64)
    both = Learned(keys, np.concatenate([row, row]), np.zeros(2, np.int64), np.zeros(2, np.float32))

    files.write(before, cut, both)

    learned = files.read(cut)
    assert learned is not None
    gone = SCHEMA.encode_one({**CONTEXT, "home": None})
    assert (learned.contexts == np.stack([gone, gone, row[0]])).all()


def test_a_context_without_the_name_is_left_alone() -> None:
    assert without_value('{"age":1}', "home") is None
    assert without_value("[1.0,2.0]", "home") is None
    assert without_value('{"home":null}', "home") is None
    assert without_value('{"home":"x","age":1}', "home") == '{"home":null,"age":1}'
