"""An export by day goes on where it stopped, and writes no decision twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from fastbandit.storage import retention
from fastbandit.storage.daily_exports import export_days
from fastbandit.storage.events import DecisionMade, RewardCame, TimePassed
from fastbandit.storage.sqlite_log import SqliteLog

DAY = 86_400_000_000


def decide(log: SqliteLog, id: str, *, wait: int = 1) -> None:
    made = DecisionMade(id, [1.0], ["x"], [0.0], seed=0, version=0, catalogue=0, wait=wait)
    log.append([made, RewardCame(id, 1.0)])


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    at = 20_000 * DAY
    log = SqliteLog(tmp_path / "events.db", clock=lambda: at)
    for day in range(3):
        at = (20_000 + day) * DAY
        decide(log, f"a{day}")

    first = export_days(tmp_path, tmp_path / "out")
    at = 20_003 * DAY
    decide(log, "slow", wait=2 * DAY)
    log.append([TimePassed()])
    second = export_days(tmp_path, tmp_path / "out")
    at = 20_004 * DAY
    log.append([TimePassed()])
    third = export_days(tmp_path, tmp_path / "out")  # "slow" waits for its reward
    at = 20_006 * DAY
    log.append([TimePassed()])
    fourth = export_days(tmp_path, tmp_path / "out")
    log.close()

    names = [[one.file.name for one in some] for some in (first, second, third)]
    assert names == [["2024-10-04.parquet", "2024-10-05.parquet"], ["2024-10-06.parquet"], []]
    assert fourth[0].file.name == "2024-10-07.parquet"
    rows = [row for path in sorted((tmp_path / "out").iterdir()) for row in _decisions(path)]
    assert rows == ["a0", "a1", "a2", "slow"]
    assert export_days(tmp_path, tmp_path / "out") == []


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return what has four days leave a log; a reward of the last of them came a day later."""
    at = [20_000 * DAY]
    log = SqliteLog(tmp_path / "events.db", clock=lambda: at[0])
    for day in range(4):
        at[0] = (20_000 + day) * DAY + 1
        decide(log, f"a{day}")
    made = DecisionMade("late", [2.0], ["x"], [0.0], seed=0, version=0, catalogue=0, wait=DAY)
    log.append([made])
    at[0] += DAY - 1
    log.append([RewardCame("late", 7.0)])
    at[0] += DAY
    decide(log, "a5")
    log.close()
    monkeypatch.setattr(retention, "learned_by", lambda store, is_archived: 1000)

    def leave(is_archived: bool) -> None:
        terms = {"days": 2, "is_archived": is_archived, "now": 20_006 * DAY}
        gone = retention.retain(tmp_path, tmp_path / "events.db", **terms)  # type: ignore[arg-type]
        assert gone.days == ("2024-10-04", "2024-10-05", "2024-10-06", "2024-10-07")

    return leave


def test_days_that_left_are_read_from_the_archive(
    tmp_path: Path, left: Callable[[bool], None]
) -> None:
    export_days(tmp_path, tmp_path / "whole")
    notes: list[str] = []
    left(True)
    export_days(tmp_path, tmp_path / "out", warn=notes.append)
    (tmp_path / "out" / "2024-10-06.parquet").unlink()
    export_days(tmp_path, tmp_path / "out", warn=notes.append)

    whole, out = (sorted((tmp_path / name).iterdir()) for name in ("whole", "out"))
    assert [path.name for path in out] == [path.name for path in whole]
    assert all(
        parquet.read_table(one).equals(parquet.read_table(other))
        for one, other in zip(out, whole, strict=True)
    )
    rows = parquet.read_table(out[3]).to_pylist()
    assert [row["reward"] for row in rows] == [1.0, 7.0]
    assert not notes


def test_days_that_are_lost_are_named(tmp_path: Path, left: Callable[[bool], None]) -> None:
    notes: list[str] = []
    export_days(tmp_path, tmp_path / "out")
    for path in sorted((tmp_path / "out").iterdir())[2:]:
        path.unlink()
    left(False)

    export_days(tmp_path, tmp_path / "out", warn=notes.append)

    assert len(notes) == 1
    assert "holds 2024-10-06, 2024-10-07" in notes[0]


def _decisions(path: Path) -> list[str]:
    found: list[str] = parquet.read_table(path)["decision"].to_pylist()
    return found
