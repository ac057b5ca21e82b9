"""A shared log as a file: the same events, however often the copy is broken off."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from random_events import fill
from shared_days import drop_before

from fastbandit.cli.main import main
from fastbandit.errors import LogError
from fastbandit.storage.events import DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.local_copy import copy_log
from fastbandit.storage.postgres_days import DAY
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(url: str, schema: str, clock: Clock) -> Iterator[PostgresLog]:
    with closing(PostgresLog(url, schema=schema, clock=clock)) as log:
        yield log


def copied(folder: Path) -> list[Event]:
    with closing(SqliteLog(folder / "events.db", is_reader=True)) as log:
        return log.read(limit=10**6)


def test_a_copy_has_the_same_events(log: PostgresLog, clock: Clock, tmp_path: Path) -> None:
    fill(log, clock, groups=60, seed=1)

    made = copy_log(log, tmp_path, page=7)

    events = log.read(limit=10**6)
    assert copied(tmp_path) == events
    assert (made.events, made.last) == (len(events), log.last)
    assert {event.status for event in events if isinstance(event, RewardCame)} == {
        "counted", "duplicate", "conflicting", "late", "unknown", "unknown arm",
    }  # fmt: skip


def test_a_copy_that_was_broken_off_goes_on(log: PostgresLog, clock: Clock, tmp_path: Path) -> None:
    fill(log, clock, groups=30, seed=2)

    class StoppedError(Exception):
        pass

    def stop(done: int, steps: int, doing: str) -> None:
        if done > steps / 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        copy_log(log, tmp_path, page=5, progress=stop)
    some = len(copied(tmp_path))
    fill(log, clock, groups=5, seed=3)
    made = copy_log(log, tmp_path, page=5)

    assert 0 < some == len(log.read(limit=10**6)) - made.events
    assert copied(tmp_path) == log.read(limit=10**6)
    assert copy_log(log, tmp_path).events == 0


def test_a_copy_can_be_written_on(log: PostgresLog, clock: Clock, tmp_path: Path) -> None:
    log.append([DecisionMade("a", [0.5], ["x"], [1.0], 1, 0, 0, 1_000)])
    copy_log(log, tmp_path)

    with closing(SqliteLog(tmp_path / "events.db", clock=clock)) as copy:
        (outcome,) = copy.append([RewardCame("a", 1.0)])

    assert (outcome.seq, outcome.status) == (2, "counted")


def test_rewards_of_days_that_were_dropped_stay_as_judged(
    log: PostgresLog, clock: Clock, tmp_path: Path
) -> None:
    log.append([DecisionMade("a", [0.5], ["x"], [1.0], 1, 0, 0, 9 * DAY)])
    clock.time += 3 * DAY
    log.append([RewardCame("a", 1.0)])
    assert drop_before(log, clock.time - DAY, learned=1) >= 1

    copy_log(log, tmp_path)

    (came,) = copied(tmp_path)
    assert (came.seq, came.at) == (2, clock.time)
    assert isinstance(came, RewardCame)
    assert came.status == "counted"


def test_a_folder_of_another_log_is_refused(
    log: PostgresLog, clock: Clock, url: str, next_schema: Callable[[], str], tmp_path: Path
) -> None:
    fill(log, clock, groups=3, seed=4)
    copy_log(log, tmp_path)
    with closing(PostgresLog(url, schema=next_schema(), clock=clock)) as other:
        fill(other, clock, groups=9, seed=5)

        with pytest.raises(LogError, match="Name an empty folder"):
            copy_log(other, tmp_path)


def test_the_command_copies_the_log_of_a_url(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(PostgresLog(database)) as log:
        log.append([TimePassed(), TimePassed()])

    with pytest.raises(SystemExit) as ended:
        main(["copy-log", "--url", database, "--out", str(tmp_path / "copy"), "--json"])

    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["events"] == 2
    assert len(copied(tmp_path / "copy")) == 2
