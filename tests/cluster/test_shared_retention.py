"""Old days leave a log that machines share, for an archive or for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from machines import Machines
from shared_days import (
    learn,
    retained,
    shared_folder,
    write_days,
)

from fastbandit.settings.service import Config
from fastbandit.storage.events import TimePassed
from fastbandit.storage.postgres_days import drop_days
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.shared_archive import SharedArchive
from fastbandit.storage.shared_retention import BeingChangedError, changing_shared
from fastbandit.testing.logs import Clock


def test_days_that_leave_are_archived_and_learned_from_again(
    shared: Machines, day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    before = day_log.read()

    left = retained(day_config)

    assert left.counts == {"decisions": 2, "rewards": 6, "ticks": 1}
    assert left.archived
    assert not left.interactions
    assert day_log.read()[0].seq == 10
    other = shared.config("another")
    local = SharedArchive(other.log.url, other.snapshots.url, Path(other.server.data_dir))
    assert [*local.followed().events(after=0, until=10**9)] == before[:9]
    assert retained(day_config).days == ()


def test_without_an_archive_learning_loses_them_everywhere(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    before = day_log.read()
    with psycopg.connect(day_config.log.url) as connection:  # older versions need all of it
        connection.execute("DELETE FROM fastbandit.snapshots WHERE version = 0")

    left = retained(shared_folder(day_config, "somewhere"), is_archived=False)

    assert left.counts == {"decisions": 2, "rewards": 6, "ticks": 1}
    assert day_log.marks().gone == before[8].seq


def test_a_run_that_ended_after_the_upload_is_finished(
    day_log: PostgresLog, day_clock: Clock, day_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    with monkeypatch.context() as patch:
        patch.setattr("fastbandit.storage.shared_retention.drop_days", _killed)
        with pytest.raises(KeyboardInterrupt):
            retained(day_config)
    assert day_log.read()[0].seq == 1

    assert retained(day_config).days == ("2024-10-04",)
    assert day_log.read()[0].seq == 10


def _killed(*args: object, **terms: object) -> None:
    raise KeyboardInterrupt


def test_what_is_not_learned_stays(
    day_log: PostgresLog, day_clock: Clock, day_config: Config
) -> None:
    write_days(day_log, day_clock)

    left = retained(day_config)

    assert left.days == ()
    assert left.why == "versions have learned up to event 0"


def test_one_at_a_time_changes_a_log(day_config: Config, day_log: PostgresLog) -> None:
    day_log.append([TimePassed()])
    with changing_shared(day_config.log.url), pytest.raises(BeingChangedError, match="nobody else"):
        retained(day_config)


def test_what_was_lost_is_known_also_where_a_run_ended_then(
    day_log: PostgresLog, day_clock: Clock, day_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_days(day_log, day_clock)
    learn(day_config)
    with psycopg.connect(day_config.log.url) as connection:  # older versions need all of it
        connection.execute("DELETE FROM fastbandit.snapshots WHERE version = 0")

    def drop_and_die(*given: Any, **terms: Any) -> None:
        drop_days(*given, **terms)
        _killed()

    monkeypatch.setattr("fastbandit.storage.shared_retention.drop_days", drop_and_die)
    with pytest.raises(KeyboardInterrupt):
        retained(day_config, is_archived=False)

    assert day_log.read()[0].seq == 10
    assert day_log.marks().gone == 9
