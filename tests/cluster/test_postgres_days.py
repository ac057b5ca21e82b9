"""Days of a log in PostgreSQL: made ahead, never needed, and dropped once they are learned."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from msgspec import structs
from shared_days import drop_before

from fastbandit.errors import InputError
from fastbandit.storage.events import DecisionMade, Outcome, RewardCame, TimePassed
from fastbandit.storage.postgres_days import DAY
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.testing.logs import Clock


def made(id: str) -> DecisionMade:
    return DecisionMade(id, [0.5], ["x", "y"], [1.0, 0.5], 1, 0, 0, 10 * DAY)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(url: str, schema: str, clock: Clock) -> Iterator[PostgresLog]:
    log = PostgresLog(url, schema=schema, clock=clock)
    log._opened()  # which makes the days from now on
    yield log
    log.close()


def rows_of(url: str, schema: str) -> dict[str, int]:
    """Count the decisions in each partition."""
    counted = f"SELECT tableoid::regclass::text, count(*) FROM {schema}.decisions GROUP BY 1"
    with psycopg.connect(url) as connection:
        found = connection.execute(counted.encode()).fetchall()
    return {str(name).rpartition("_")[2]: int(count) for name, count in found}


def test_days_are_made_ahead_as_time_goes_on(
    log: PostgresLog, clock: Clock, url: str, schema: str
) -> None:
    for day in range(5):
        clock.time = day * DAY + 7
        log.append([made(f"{day}")])

    names = [f"1970010{day}" for day in range(1, 6)]
    assert rows_of(url, schema) == dict.fromkeys(names, 1)
    assert [event.seq for event in log.read()] == [1, 2, 3, 4, 5]


def test_an_event_of_a_day_that_was_not_made_is_kept_with_the_rest(
    log: PostgresLog, clock: Clock, url: str, schema: str
) -> None:
    clock.time = 100 * DAY
    for id in ("a", "b"):
        log.append([made(id), RewardCame(id, 1.0)])
    clock.time = 101 * DAY
    log.append([made("c"), RewardCame("b", 1.0)])

    assert rows_of(url, schema) == {"rest": 2, "19700412": 1}
    statuses = [event.status for event in log.read() if isinstance(event, RewardCame)]
    assert statuses == ["counted", "counted", "duplicate"]


def test_a_day_is_made_later_where_someone_reads_for_long(
    log: PostgresLog, clock: Clock, url: str, schema: str
) -> None:
    with psycopg.connect(url) as reader:
        reader.execute(f"SELECT FROM {schema}.decisions".encode())
        clock.time = 1 * DAY
        assert log.append([made("a")]) == [Outcome(1, "written")]

    log._try_days = 0.0
    log.append([made("b")])
    clock.time = 3 * DAY
    log.append([made("c")])
    assert rows_of(url, schema) == {"19700102": 2, "19700104": 1}


def test_old_days_are_dropped_with_all_that_is_known_of_them(
    log: PostgresLog, clock: Clock, url: str, schema: str
) -> None:
    for day in range(4):
        clock.time = day * DAY
        log.append([made(f"{day}"), RewardCame(f"{day}", 1.0), TimePassed()])

    assert drop_before(log, 2 * DAY + 5, learned=9) == 2

    assert [event.seq for event in log.read()] == [7, 8, 9, 10, 11, 12]
    assert (log.decision("0"), log.last) == (None, 12)
    assert log.append([RewardCame("1", 1.0), RewardCame("2", 1.0)]) == [
        Outcome(13, "unknown"),
        Outcome(14, "duplicate"),
    ]


def test_a_day_that_no_snapshot_has_learned_is_not_dropped(log: PostgresLog, clock: Clock) -> None:
    for day in range(3):
        clock.time = day * DAY
        log.append([made(f"{day}")])

    with pytest.raises(InputError, match="holds event 2, and snapshots have learned up to 1"):
        drop_before(log, 2 * DAY, learned=1)

    assert [event.seq for event in log.read()] == [1, 2, 3]


def test_what_lies_with_the_rest_is_dropped_as_far_as_it_is_learned(
    log: PostgresLog, clock: Clock
) -> None:
    clock.time = 100 * DAY
    log.append([made("a"), made("b"), RewardCame("a", 1.0)])
    clock.time = 102 * DAY
    log.append([made("c")])

    drop_before(log, 101 * DAY, learned=1)

    assert [event.seq for event in log.read()] == [2, 3, 4]


def test_eligible_arms_go_with_the_last_day_that_needs_them(
    log: PostgresLog, clock: Clock, url: str, schema: str
) -> None:
    arms = [[f"arm {n} {kind}" for n in range(50)] for kind in range(2)]
    for day in range(6):
        clock.time = day * DAY
        log.append([structs.replace(made(f"{day}"), eligible=arms[day == 0])])

    drop_before(log, 4 * DAY, learned=4)

    with psycopg.connect(url) as connection:
        lists = connection.execute(f"SELECT day FROM {schema}.eligible_lists".encode()).fetchall()
    assert lists == [(5,)]
    found = log.decision("4")
    assert found is not None
    assert found.eligible == arms[0]


def test_a_day_that_somebody_reads_stays_and_the_others_go(
    log: PostgresLog, clock: Clock, url: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.storage.postgres_days._PAUSE_SECONDS", 0.01)
    for day in range(4):
        clock.time = day * DAY
        log.append([made(f"{day}"), RewardCame(f"{day}", 1.0)])
    with psycopg.connect(url) as reader:
        reader.execute(f"SELECT * FROM {schema}.rewards_19700101".encode()).fetchall()

        assert drop_before(log, 2 * DAY, learned=4) == 1
        assert log.append([TimePassed()])

    assert drop_before(log, 2 * DAY, learned=4) == 1
    assert [event.seq for event in log.read()] == [5, 6, 7, 8, 9]


def test_eligible_arms_stay_where_the_log_is_ahead_of_the_clocks(
    log: PostgresLog, clock: Clock, url: str, schema: str
) -> None:
    clock.time += 10 * DAY
    log.append([TimePassed()])
    clock.time -= 10 * DAY
    with psycopg.connect(url, autocommit=True) as connection:  # as after a step back
        connection.execute(f"UPDATE {schema}.head SET skew = {-10 * DAY}".encode())
    arms = [f"arm {n}" for n in range(50)]
    for day in range(3):
        log.append([structs.replace(made(f"d{day}"), eligible=[*arms, f"arm {day}"])])
        clock.time += DAY

    drop_before(log, log.last_at, learned=3)

    found = log.decision("d2")
    assert found is not None
    assert found.eligible == [*arms, "arm 2"]
