"""Servers that stop, crash or hang under a log: what was acknowledged is there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from fastbandit.errors import LogUnavailableError
from fastbandit.storage.events import DecisionMade, Event, Outcome, RewardCame, TimePassed
from fastbandit.storage.postgres_log import PostgresLog
from fastbandit.storage.spooled_log import SpooledLog
from lab.postgres_server import LittleServer


def made(id: str) -> DecisionMade:
    return DecisionMade(id, [0.5], ["x", "y"], [1.0, 0.5], 1, 0, 0, 10**12, adds_up=True)


class AtStep:
    """Does something once, when a step is reached."""

    def __init__(self, step: str, do: Callable[[], None]) -> None:
        self._step, self._do, self.is_armed = step, do, False

    def __call__(self, step: str) -> None:
        if self.is_armed and step == self._step:
            self.is_armed = False
            self._do()


def opened(
    server: LittleServer,
    schema: str,
    *,
    is_reader: bool = False,
    reached: Callable[[str], None] = lambda step: None,
) -> PostgresLog:
    return PostgresLog(
        server.url, schema=schema, is_reader=is_reader, reached=reached, timeout_seconds=2.0
    )


def restart(server: LittleServer, how: signal.Signals) -> None:
    server.stop(how)
    server.start()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
def test_after_a_restart_the_next_calls_work(
    own_server: LittleServer, schema: str, how: signal.Signals
) -> None:
    log, reader = opened(own_server, schema), opened(own_server, schema, is_reader=True)
    log.append([made("a")])

    restart(own_server, how)

    assert log.append([made("b")]) == [Outcome(2, "written")]
    assert [event.seq for event in reader.read()] == [1, 2]
    assert reader.decision("a") is not None
    log.close()
    reader.close()


def test_a_server_that_crashes_at_any_step_of_an_append_makes_it_neither_lost_nor_double(
    own_server: LittleServer, schema: str
) -> None:
    events: list[Event] = [RewardCame("a", 1.0), TimePassed()]
    for number, step in enumerate(["copied", "written", "committing"]):
        crash = AtStep(step, lambda: restart(own_server, signal.SIGKILL))
        log = opened(own_server, schema, reached=crash)
        crash.is_armed = True

        outcomes = log.append([made(f"{number}"), *events])

        assert [one.seq for one in outcomes] == [3 * number + 1, 3 * number + 2, 3 * number + 3]
        assert [event.seq for event in log.read()] == list(range(1, 3 * number + 4)), step
        log.close()


def test_an_answer_that_is_lost_after_the_commit_is_asked_for_again(
    own_server: LittleServer, schema: str
) -> None:
    def lose() -> None:
        raise psycopg.OperationalError("the connection is lost")

    lost = AtStep("committed", lose)
    log = opened(own_server, schema, reached=lost)
    lost.is_armed = True

    assert log.append([made("a"), RewardCame("a", 1.0)]) == [
        Outcome(1, "written"),
        Outcome(2, "counted"),
    ]
    assert log.last == 2
    log.close()


def test_where_the_server_stays_away_after_the_commit_a_retry_writes_nothing_twice(
    own_server: LittleServer, schema: str
) -> None:
    def crash() -> None:
        own_server.kill()
        raise psycopg.OperationalError("the connection is lost")

    crashing = AtStep("committed", crash)
    log = opened(own_server, schema, reached=crashing)
    crashing.is_armed = True

    with pytest.raises(LogUnavailableError, match="shows when it is back"):
        log.append([made("a"), RewardCame("a", 1.0)])
    own_server.start()

    outcomes = log.append([made("a"), RewardCame("a", 1.0)])
    assert outcomes == [Outcome(1, "repeated"), Outcome(4, "duplicate")]
    log.close()


def test_a_server_that_hangs_is_given_up_in_time(own_server: LittleServer, schema: str) -> None:
    log = opened(own_server, schema)
    log.append([made("a")])

    with hanging(own_server):
        started = time.monotonic()
        with pytest.raises(LogUnavailableError):
            log.append([made("b")])
        took = time.monotonic() - started

    assert took < 20
    assert log.append([made("b")])[0].status in ("written", "repeated")
    log.close()


def test_a_server_that_hangs_while_it_commits_is_not_asked_again(
    own_server: LittleServer, schema: str
) -> None:
    with ExitStack() as stack:
        hangs = AtStep("committing", lambda: stack.enter_context(hanging(own_server)))
        log = opened(own_server, schema, reached=hangs)
        hangs.is_armed = True
        with pytest.raises(LogUnavailableError, match="shows when it is back"):
            log.append([made("a")])

    assert log.append([made("a")])[0].status in ("written", "repeated")
    assert len(log.read()) == 1
    log.close()


@contextmanager
def hanging(server: LittleServer) -> Iterator[None]:
    """Stop all processes of a server for a while."""
    with psycopg.connect(server.url) as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
    processes = [server.process, *(process for (process,) in found)]
    for process in processes:
        with suppress(ProcessLookupError):  # that of the question itself
            os.kill(process, signal.SIGSTOP)
    yield
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


# -- writers that die or stall

APPEND_AND_DIE = """
import os, signal, sys
from fastbandit.storage.events import RewardCame
from fastbandit.storage.postgres_log import PostgresLog
from test_postgres_restart import made

def reached(step):
    if step == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

log = PostgresLog(sys.argv[1], schema=sys.argv[2], reached=reached)
log.append([made("a"), RewardCame("a", 1.0)])
"""


@pytest.mark.parametrize("step", ["copied", "written", "committing", "committed"])
def test_a_writer_that_is_killed_at_any_step_leaves_all_or_nothing(
    url: str, schema: str, step: str
) -> None:
    path = os.pathsep.join([os.getcwd(), os.path.dirname(__file__)])
    command = [sys.executable, "-c", APPEND_AND_DIE, url, schema, step]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == -signal.SIGKILL

    log = PostgresLog(url, schema=schema)
    kept = 2 if step == "committed" else 0
    assert log.append([made("b")]) == [Outcome(kept + 1, "written")]
    assert [event.seq for event in log.read()] == list(range(1, kept + 2))
    log.close()


def test_a_writer_that_stalls_within_an_append_does_not_hold_up_others(
    own_server: LittleServer, schema: str
) -> None:
    is_other_done, has_lock = threading.Event(), threading.Event()

    def stall() -> None:
        has_lock.set()
        is_other_done.wait(60)

    stalling = AtStep("written", stall)
    slow, quick = opened(own_server, schema, reached=stalling), opened(own_server, schema)
    stalling.is_armed = True
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.extend(slow.append([made("slow")])))
    thread.start()
    has_lock.wait(60)

    assert quick.append([made("quick")]) == [Outcome(1, "written")]
    is_other_done.set()
    thread.join()

    assert found == [Outcome(2, "written")]
    slow.close()
    quick.close()


# -- under load


def test_crashes_under_load_lose_and_double_nothing_that_was_acknowledged(
    own_server: LittleServer, schema: str, tmp_path: Path
) -> None:
    log = SpooledLog(opened(own_server, schema), tmp_path / "spool.db", pauses=(0.05, 0.2))
    said: dict[str, str] = {}
    rewarded: set[str] = set()
    is_over = threading.Event()

    def load() -> None:
        number = 0
        while not is_over.is_set():
            ids = [f"{number} {one}" for one in range(4)]
            outcomes = log.append([made(id) for id in ids])
            said.update({id: it.status for id, it in zip(ids, outcomes, strict=True)})
            try:
                log.append([RewardCame(ids[0], 1.0)])
            except LogUnavailableError:
                pass
            else:
                rewarded.add(ids[0])
            number += 1

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for how in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGQUIT):
            own_server.stop(how)
            wait_for_more(said, 20)
            own_server.start()
            wait_for_more(rewarded, 5)
        is_over.set()
        thread.join()
        wait_until(lambda: log.unavailable is None)
        events = log.read(limit=10**6)
    finally:
        is_over.set()
        thread.join()
        log.close()
    ids = [event.id for event in events if isinstance(event, DecisionMade)]
    counted = [
        event.decision
        for event in events
        if isinstance(event, RewardCame) and event.status == "counted"
    ]
    assert len(set(ids)) == len(ids)
    assert set(ids) == set(said)
    assert len(set(counted)) == len(counted)
    assert set(counted) >= rewarded
    assert {"written", "spooled"} <= set(said.values())
    numbers = [event.seq for event in events]
    assert numbers == sorted(set(numbers))


def wait_for_more(found: Sized, count: int) -> None:
    before = len(found)
    wait_until(lambda: len(found) >= before + count)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)
