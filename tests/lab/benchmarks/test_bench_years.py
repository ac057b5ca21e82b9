"""The log of the benchmark of years is one that a learner joins."""

from __future__ import annotations

from pathlib import Path

from fastbandit.learning.joining import Joiner
from fastbandit.storage.retention import DAY
from fastbandit.storage.sqlite_log import SqliteLog
from lab.benchmarks.years import HEADINGS, Row, config_in, write_events


def test_each_decision_has_a_reward_and_days_follow_each_other(tmp_path: Path) -> None:
    write_events(tmp_path, 0, 100, until=200 * DAY, step=DAY)
    write_events(tmp_path, 100, 150, until=200 * DAY, step=DAY)

    log, joiner = SqliteLog(tmp_path / "events.db"), Joiner()
    events = log.read()
    for event in events:
        joiner.feed(event)
    log.close()
    assert [event.seq for event in events] == list(range(1, 301))
    assert events[0].at == 100 * DAY
    assert len(joiner.interactions) == 150
    assert {len(one.context) for one in joiner.interactions} == {config_in(tmp_path).context.dim}


def test_a_row_has_a_cell_for_each_heading() -> None:
    row = Row(10, 0.1, 1.0, 500.0, 1.0, 2.0, 3.0, 5, 0.5, 1, 4, 1000, 1001)

    assert len(row.cells()) == len(HEADINGS)
