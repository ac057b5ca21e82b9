"""What only the log in PostgreSQL has to bear: many writers, limits of the server, secrets."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from msgspec import structs

from fastbandit.errors import InputError, LogError, LogUnavailableError, SettingError
from fastbandit.storage import postgres_sql as sql
from fastbandit.storage.events import (
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    TimePassed,
)
from fastbandit.storage.memory_log import MemoryLog
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.testing.logs import Clock


def made(id: str, *, wait: int = 1_000, adds_up: bool = False) -> DecisionMade:
    return DecisionMade(id, [0.5], ["x", "y"], [1.0, 0.5], 1, 0, 0, wait, adds_up=adds_up)


@pytest.fixture
def log(url: str, schema: str) -> Iterator[PostgresLog]:
    log = PostgresLog(url, schema=schema, clock=Clock())
    yield log
    log.close()


# -- many writers, any readers

APPEND = """
import sys
from fastbandit.storage.events import RewardCame
from fastbandit.storage.postgres_log import PostgresLog
from test_postgres_log import made

url, schema, name = sys.argv[1:]
log = PostgresLog(url, schema=schema)
for number in range(40):
    events = [made(f"{name} {number} {one}", wait=10**9) for one in range(3)]
    log.append([*events, RewardCame(f"{name} {number} 0", 1.0), RewardCame("shared", 1.0)])
log.close()
"""
OPEN = """
import sys
from fastbandit.storage.postgres_log import PostgresLog
print(PostgresLog(sys.argv[1], schema=sys.argv[2]).last)
"""


def started(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([os.getcwd(), os.path.dirname(__file__)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment)


def test_a_reader_misses_no_event_of_writers_that_append_at_once(url: str, schema: str) -> None:
    log = PostgresLog(url, schema=schema)
    log.append([made("shared", wait=10**9)])
    log.close()
    reader = PostgresLog(url, schema=schema, is_reader=True)
    writers = [started(APPEND, url, schema, name) for name in ("one", "two", "three")]
    events: list[Event] = []
    deadline = time.monotonic() + 60
    while len(events) < 601 and time.monotonic() < deadline:
        events += reader.read(after=events[-1].seq if events else 0, limit=50)

    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [event.seq for event in events] == list(range(1, 602))
    assert all(one.at <= two.at for one, two in pairwise(events))
    statuses = Counter(event.status for event in events if isinstance(event, RewardCame))
    assert statuses == {"counted": 121, "duplicate": 119}
    reader.close()


def test_logs_that_open_at_once_make_the_tables_once(url: str, schema: str) -> None:
    opening = [started(OPEN, url, schema) for _ in range(4)]

    assert [one.wait() for one in opening] == [0] * 4


def test_a_reader_cannot_write(url: str, schema: str, log: PostgresLog) -> None:
    reader = PostgresLog(url, schema=schema, is_reader=True)

    with pytest.raises(LogError, match="opened to be read"):
        reader.append([TimePassed()])
    reader.close()


def test_the_clock_is_the_servers_unless_another_is_named(url: str, schema: str) -> None:
    log = PostgresLog(url, schema=schema)
    before = time.time_ns() // 1000
    log.append([TimePassed()])

    assert before - 10**6 <= log.last_at <= time.time_ns() // 1000 + 10**6
    log.close()


# -- what it takes


def test_text_that_the_server_cannot_hold_is_refused_by_name(log: PostgresLog) -> None:
    with pytest.raises(InputError, match="the character 0"):
        log.append([made("a\0b")])
    with pytest.raises(InputError, match="Unicode"):
        log.append([made("\ud800")])
    with pytest.raises(InputError, match="JSON"):
        log.append([DecisionMade("a", [], [], [], 1, 0, 0, 0, eligible=object())])

    assert log.last == 0


def test_many_rewards_of_one_decision_are_judged_one_after_the_other(log: PostgresLog) -> None:
    log.append([made("a", adds_up=True)])
    parts = [RewardCame("a", 1.0, part=f"{number // 2}") for number in range(100)]

    outcomes = log.append(parts)

    assert [one.status for one in outcomes] == ["counted", "duplicate"] * 50


@pytest.mark.parametrize("adds_up", [False, True])
@pytest.mark.parametrize("arms", [2, 300])
def test_many_rewards_are_judged_alike_among_few_arms_and_many(
    url: str, schema: str, arms: int, adds_up: bool
) -> None:
    clock = Clock()
    log, memory = PostgresLog(url, schema=schema, clock=clock), MemoryLog(clock=clock)
    decision = structs.replace(
        made("a", adds_up=adds_up), arms=[f"arm {n}" for n in range(arms)], scores=[0.0] * arms
    )
    told = [RewardCame("a", 1.0, f"arm {n}", f"{n % 3}") for n in (0, 1, arms - 1, arms, 1)]
    told += [RewardCame("a", value, part="0") for value in (1.0, 2.0)]
    told += [RewardCame(id, 1.0, "arm 1") for id in ("b", "nobody")]

    for events in [[decision], [structs.replace(decision, id="b"), *told], told]:
        assert log.append(events) == memory.append(events)

    assert log.read() == memory.read()
    log.close()


def test_arms_of_many_rewards_are_looked_through_before_others_wait(log: PostgresLog) -> None:
    many = [f"arm {n}" for n in range(300)]
    log.append([structs.replace(made("a"), arms=many, scores=[0.0] * 300)])
    found = list[object]()

    def look(step: str) -> None:
        if step == "copied":
            staged = "SELECT first_arm, has_arm FROM staged_rewards ORDER BY position"
            found.extend(log._opened().execute(staged).fetchall())

    log._reached = look
    log.append([RewardCame("a", 1.0, arm) for arm in [None, "arm 7", "other", *many[8:]]])

    assert found[:3] == [('"arm 0"', True), ('"arm 0"', True), ('"arm 0"', False)]


def test_a_reward_that_adds_up_is_looked_up_by_its_part(log: PostgresLog) -> None:
    log.append([made("a")])
    connection = log._opened()
    with connection.transaction():
        plan = "\n".join(str(*row) for row in connection.execute(f"EXPLAIN {sql.INSERT_REWARDS}"))

    looked_up = [line for line in plan.splitlines() if "Index Cond" in line and "decision" in line]
    assert any("part = nth.part" in line for line in looked_up), plan  # not among all parts of one


def test_the_staging_tables_are_emptied_now_and_then(
    log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.storage.postgres_log._MOST_STAGED", 5)

    for number in range(20):
        outcomes = log.append([made(f"{number}"), RewardCame(f"{number}", 1.0)])
        assert outcomes == [
            Outcome(2 * number + 1, "written"),
            Outcome(2 * number + 2, "counted"),
        ]


def test_decisions_among_arms_of_their_requests_are_read_by_themselves(log: PostgresLog) -> None:
    offering = structs.replace(made("b"), offered=[Arm("x", {"price": 1 / 3})])
    log.append([made("a"), offering, made("c"), structs.replace(offering, id="d")])

    assert [one.seq for one in log.offers(after=0, until=4)] == [2, 4]
    (found,) = log.offers(after=2, until=4)
    assert found.offered == offering.offered


def test_the_changes_of_the_arms_are_read_by_themselves(log: PostgresLog) -> None:
    assert (log.changes(), log.last_change()) == ([], 0)
    log.append([ArmsChanged([Arm("x", [0.1 + 0.2])]), made("a"), ArmsChanged(discarded=[7])])

    assert [change.seq for change in log.changes()] == [1, 3]
    assert log.changes(after=1) == [ArmsChanged([], [7], 3, 1_000_000)]
    assert log.last_change() == 3


# -- anything that can happen, against the log in memory

IDS = some.sampled_from(["a", "b", "c"])
DECISIONS = some.builds(
    lambda id, arms, wait, adds_up: DecisionMade(
        id, [1.0], arms, [0.0], 1, 0, 0, wait, adds_up=adds_up
    ),
    IDS,
    some.sampled_from([["x"], ["x", "y"], ["y", 1, "1"]]),
    some.sampled_from([0, 3, 20]),
    some.booleans(),
)
REWARDS = some.builds(
    RewardCame,
    some.sampled_from(["a", "b", "c", "nobody"]),
    some.sampled_from([0.0, 0.25]),
    some.sampled_from([None, "x", "y", 1, "1", "z"]),
    some.sampled_from(["", "more"]),
)
OTHERS = some.sampled_from([ArmsChanged([Arm("x", [1.0])], ["y"]), TimePassed()])
APPENDS = some.lists(some.lists(DECISIONS | REWARDS | REWARDS | OTHERS, max_size=6), max_size=8)


@given(appends=APPENDS, moves=some.lists(some.integers(-20, 25), min_size=8, max_size=8))
@settings(
    max_examples=int(os.environ.get("FASTBANDIT_LOG_RUNS", "20")),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_events_come_to_the_same_as_in_memory(
    url: str, next_schema: Callable[[], str], appends: list[list[Event]], moves: list[int]
) -> None:
    clock = Clock()
    log, memory = PostgresLog(url, schema=next_schema(), clock=clock), MemoryLog(clock=clock)

    for events, move in zip(appends, moves, strict=False):
        assert log.append(events) == memory.append(events)
        clock.time += move

    assert log.read() == memory.read()
    assert (log.last, log.last_at) == (memory.last, memory.last_at)
    log.close()


# -- servers that will not do


def told(log: PostgresLog) -> int:
    """Use a log for the first time, and close it."""
    with closing(log):
        return log.last


def test_a_server_that_is_not_there_is_told_from_other_trouble() -> None:
    with pytest.raises(LogUnavailableError, match="cannot be reached"):
        told(PostgresLog("postgresql://me@127.0.0.1:9/postgres"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:9/postgres",
        "postgresql://me:hunter2@127.0.0.1:nine/postgres",
        "postgresql://me:hunter2@127.0.0.1/postgres?hunter2=1",
        "hunter2",
    ],
)
def test_no_error_tells_the_password(url: str) -> None:
    with pytest.raises(LogError) as caught:
        told(PostgresLog(url))

    error: BaseException | None = caught.value
    while error is not None:
        assert "hunter2" not in str(error)
        error = None if error.__suppress_context__ and not error.__cause__ else error.__cause__


@pytest.mark.parametrize("setting", ["synchronous_commit"])
def test_a_server_that_does_not_sync_is_refused(url: str, schema: str, setting: str) -> None:
    with pytest.raises(LogError, match=f"{setting} = off"):
        told(PostgresLog(f"{url}&options=-c%20{setting}%3Doff", schema=schema))


def test_a_schema_needs_a_plain_name(url: str) -> None:
    with pytest.raises(SettingError, match="small letters"):
        PostgresLog(url, schema='x"; DROP TABLE head; --')
