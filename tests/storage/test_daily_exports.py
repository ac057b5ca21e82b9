"""An export by day goes on where it stopped, and writes no decision twice."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as parquet

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


def _decisions(path: Path) -> list[str]:
    found: list[str] = parquet.read_table(path)["decision"].to_pylist()
    return found
