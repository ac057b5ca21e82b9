"""A log whose server goes away and comes back: what was acknowledged is written once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from fastbandit.errors import LogError, LogTooSlowError, LogUnavailableError
from fastbandit.storage.events import DecisionMade, Event, EventLog, Outcome, RewardCame, TimePassed
from fastbandit.storage.log_clock import wall_time as now
from fastbandit.storage.memory_log import MemoryLog
from fastbandit.storage.spooled_log import SpooledLog
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import LAWS, Clock, LogBackend

NEVER = (600.0, 600.0)
"""Pauses so long that only the test itself replays."""


def made(id: str, *arms: str) -> DecisionMade:
    return DecisionMade(id, [0.5], list(arms or ("x", "y")), [1.0, 0.5], 1, 0, 0, 1_000)


class Remote:
    """A log in memory that can be away, before or after it has written."""

    def __init__(self) -> None:
        self.log = MemoryLog(clock=Clock())
        self.is_unavailable = False
        self.asked = 0
        self.loses_answer = False

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        self.asked += 1
        if self.is_unavailable:
            raise LogUnavailableError("away")
        outcomes = self.log.append(events)
        if self.loses_answer:
            raise LogUnavailableError("away while it committed")
        return outcomes

    def decision(self, id: str) -> DecisionMade | None:
        return self.log.decision(id)

    def read(self, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        return self.log.read(after=after, limit=limit)

    @property
    def last(self) -> int:
        if self.is_unavailable:
            raise LogUnavailableError("away")
        return self.log.last

    def close(self) -> None:
        self.log.close()

    def ids(self) -> list[str]:
        events = self.log.read(limit=10**6)
        return [event.id for event in events if isinstance(event, DecisionMade)]


@pytest.fixture
def remote() -> Remote:
    return Remote()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


@pytest.fixture
def log(remote: Remote, path: Path) -> Iterator[SpooledLog]:
    log = SpooledLog(remote, path, pauses=NEVER, most=5)
    yield log
    log.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)


# -- while the remote is there


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law.__name__))
def test_with_its_server_it_keeps_the_laws_of_a_log(
    law: Callable[[LogBackend], None], path: Path
) -> None:
    def make(clock: Clock) -> EventLog:
        return SpooledLog(MemoryLog(clock=clock), path)

    law(LogBackend(make, lambda log: log, lambda log: log))
    assert not path.exists()


# -- while it is away


def test_decisions_are_kept_as_degraded_and_told_as_spooled(
    log: SpooledLog, remote: Remote
) -> None:
    remote.is_unavailable = True

    assert log.append([made("a"), made("b")]) == [Outcome(0, "spooled")] * 2

    assert log.decision("a") == structs.replace(made("a"), degraded=True, seq=1, at=log_at(log))
    assert log.waiting == 2
    assert isinstance(log.unavailable, LogUnavailableError)


def log_at(log: SpooledLog) -> int:
    found = log.decision("a")
    assert found is not None
    return found.at


def test_other_events_are_refused_and_leave_no_trace(log: SpooledLog, remote: Remote) -> None:
    remote.is_unavailable = True

    refused: list[list[Event]] = [[RewardCame("a", 1.0)], [made("a"), TimePassed()]]
    for events in refused:
        with pytest.raises(LogUnavailableError):
            log.append(events)

    assert (log.waiting, log.decision("a")) == (0, None)


def test_the_remote_is_not_tried_at_each_append(log: SpooledLog, remote: Remote) -> None:
    remote.is_unavailable = True

    for number in range(5):
        log.append([made(f"{number}")])

    assert remote.asked == 1


def test_a_retry_gets_the_decision_that_is_spooled(log: SpooledLog, remote: Remote) -> None:
    remote.is_unavailable = True
    log.append([made("a")])

    assert log.append([made("a", "z")]) == [Outcome(0, "repeated")]
    found = log.decision("a")
    assert found is not None
    assert found.arms == ["x", "y"]


def test_a_full_spool_refuses_more(log: SpooledLog, remote: Remote) -> None:
    remote.is_unavailable = True
    log.append([made(f"{number}") for number in range(5)])

    with pytest.raises(LogError, match="may hold 5"):
        log.append([made("more")])

    remote.is_unavailable = False
    log.replay()
    assert len(remote.ids()) == 5


def test_a_log_that_begins_away_keeps_decisions_from_the_start(remote: Remote, path: Path) -> None:
    remote.is_unavailable = True
    log = SpooledLog(remote, path, pauses=(0.01, 0.02))

    assert isinstance(log.unavailable, LogUnavailableError)
    assert log.append([made("a")]) == [Outcome(0, "spooled")]
    assert log.last == 0

    remote.is_unavailable = False
    wait_until(lambda: log.unavailable is None)
    assert (remote.ids(), log.last) == (["a"], 2)
    log.close()


def test_no_append_waits_while_the_remote_is_tried(
    remote: Remote, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_tried, goes_on = threading.Event(), threading.Event()

    def hang(events: Sequence[Event]) -> list[Outcome]:
        is_tried.set()
        goes_on.wait(20)
        raise LogUnavailableError("it hangs")

    remote.is_unavailable = True
    log = SpooledLog(remote, path, pauses=(0.01, 0.01))
    log.append([made("a")])
    monkeypatch.setattr(remote, "append", hang)
    remote.is_unavailable = False
    is_tried.wait(20)

    assert log.append([made("b")]) == [Outcome(0, "spooled")]
    assert log.waiting == 2

    monkeypatch.undo()
    goes_on.set()
    wait_until(lambda: log.unavailable is None)
    assert remote.ids() == ["a", "b"]
    log.close()


# -- when it is back


def test_what_is_spooled_comes_before_anything_else(
    log: SpooledLog, remote: Remote, path: Path
) -> None:
    log.append([made("a")])
    remote.is_unavailable = True
    log.append([made("b"), made("c")])
    remote.is_unavailable = False

    log.replay()
    log.append([made("d"), RewardCame("b", 1.0)])

    assert remote.ids() == ["a", "b", "c", "d"]
    assert remote.log.read()[-1] == RewardCame("b", 1.0, "x", "", "counted", 6, 1_000_000)
    assert (log.unavailable, log.waiting, path.exists()) == (None, 0, False)


def test_a_thread_of_its_own_notices_that_the_remote_is_back(remote: Remote, path: Path) -> None:
    log = SpooledLog(remote, path, pauses=(0.01, 0.02))
    remote.is_unavailable = True
    log.append([made(f"{number}") for number in range(300)])
    wait_until(lambda: remote.asked > 3)

    remote.is_unavailable = False
    wait_until(lambda: log.unavailable is None)

    log.append([made("after")])
    assert remote.ids() == [*(f"{number}" for number in range(300)), "after"]
    log.close()


def test_decisions_that_come_while_it_is_replayed_are_all_written_in_order(
    remote: Remote, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastbandit.storage.spooled_log._GROUP", 8)
    log = SpooledLog(remote, path, pauses=(0.001, 0.001))
    sent = 0
    for outage in range(5):
        remote.is_unavailable = True
        for step in range(20):
            remote.is_unavailable = remote.is_unavailable and step < 10
            log.append([made(f"{sent + number}") for number in range(5)])
            sent += 5
        wait_until(lambda: log.unavailable is None)
        assert remote.ids() == [f"{number}" for number in range(sent)], outage
    log.close()


def test_a_decision_that_was_written_after_all_is_not_written_twice(
    log: SpooledLog, remote: Remote
) -> None:
    remote.loses_answer = True
    assert log.append([made("a")]) == [Outcome(0, "spooled")]
    remote.loses_answer = False

    log.replay()

    assert (remote.ids(), log.conflicts) == (["a"], 0)


def test_a_decision_that_was_made_otherwise_elsewhere_is_counted(
    log: SpooledLog, remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    remote.is_unavailable = True
    log.append([made("a"), made("b")])
    remote.is_unavailable = False
    remote.append([made("a", "z")])

    log.replay()

    assert (remote.ids(), log.conflicts) == (["a", "b"], 1)
    assert "made differently elsewhere" in caplog.text


def test_a_spool_of_an_earlier_life_is_replayed_when_it_is_opened(
    remote: Remote, path: Path
) -> None:
    remote.is_unavailable = True
    first = SpooledLog(remote, path, pauses=NEVER)
    first.append([made("a")])
    first.close()

    remote.is_unavailable = False
    second = SpooledLog(remote, path, pauses=NEVER)

    assert (remote.ids(), second.unavailable, path.exists()) == (["a"], None, False)
    second.close()


def test_a_spool_of_an_earlier_life_waits_while_the_remote_is_away(
    remote: Remote, path: Path
) -> None:
    remote.is_unavailable = True
    first = SpooledLog(remote, path, pauses=NEVER)
    first.append([made("a")])
    first.close()

    second = SpooledLog(remote, path, pauses=NEVER)

    assert second.append([made("b")]) == [Outcome(0, "spooled")]
    assert second.waiting == 2
    second.close()


# -- what does not fit


class Narrow(Remote):
    """A log that takes no more than so many eligible arms in time."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        size = sum(len(it.eligible or ()) for it in events if isinstance(it, DecisionMade))
        if size > self.most:
            raise LogTooSlowError("no answer within 2 s")
        return super().append(events)


def large(id: str, size: int) -> DecisionMade:
    return structs.replace(made(id), eligible=["arm"] * size)


def test_a_group_that_does_not_fit_is_halved_until_it_does(path: Path) -> None:
    remote = Narrow(10)
    log = SpooledLog(remote, path, pauses=NEVER)
    assert log.append([large(f"{n}", 4) for n in range(50)])[0].status == "spooled"

    log.replay()

    assert remote.ids() == [f"{n}" for n in range(50)]
    assert (log.unavailable, log.set_aside, path.exists()) == (None, [], False)
    log.close()


def test_one_that_does_not_fit_is_given_more_time(path: Path) -> None:
    remote, patient = Narrow(10), Narrow(1000)
    patient.log = remote.log
    log = SpooledLog(remote, path, pauses=NEVER, patient=patient)
    log.append([made("a"), large("b", 100), made("c")])

    log.replay()

    assert (remote.ids(), log.set_aside) == (["a", "b", "c"], [])
    log.close()


def test_one_that_never_fits_is_set_aside_and_holds_up_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remote = Narrow(10)
    log = SpooledLog(remote, path, pauses=NEVER)
    log.append([made("a"), large("b", 100), made("c")])

    log.replay()

    assert (remote.ids(), log.set_aside) == (["a", "c"], ["spool-set-aside.db"])
    assert "was set aside" in caplog.text
    aside = SqliteLog(path.with_name("spool-set-aside.db"), is_reader=True)
    found = aside.decision("b")
    assert found is not None
    assert found.eligible == ["arm"] * 100
    aside.close()
    assert log.append([made("d")])[0].status == "written"
    log.close()


def test_nothing_is_set_aside_while_the_remote_takes_nothing(path: Path) -> None:
    remote = Narrow(10)
    log = SpooledLog(remote, path, pauses=NEVER)
    log.append([large("a", 100)])
    remote.is_unavailable = True

    with pytest.raises(LogUnavailableError):
        log.replay()

    assert (log.waiting, log.set_aside) == (1, [])
    log.close()


# -- times


def test_a_spooled_decision_keeps_its_time_and_the_outage_is_no_time_for_rewards(
    path: Path,
) -> None:
    remote, clock = Remote(), Clock(now())
    remote.log = MemoryLog(clock=clock)
    log = SpooledLog(remote, path, pauses=NEVER)
    log.append([structs.replace(made("before"), wait=60_000_000)])
    remote.is_unavailable = True
    began = now()
    log.append([made("within")])
    remote.is_unavailable = False
    clock.time += 3600_000_000
    log._since = began - 3600_000_000  # an hour ago

    log.replay()

    _, tick, within = remote.log.read()
    assert isinstance(tick, TimePassed)
    assert tick.outage == 3600_000_000
    assert isinstance(within, DecisionMade)
    assert within.at == clock.time
    assert began <= (within.made_at or 0) <= now()
    assert [it.status for it in log.append([RewardCame("before", 1.0)])] == ["counted"]
    log.close()


def test_an_outage_that_somebody_else_noticed_is_told_first(path: Path) -> None:
    remote = Remote()
    log = SpooledLog(remote, path, pauses=NEVER)
    log.notice(LogUnavailableError("away"))

    assert isinstance(log.unavailable, LogUnavailableError)
    log.replay()
    log.append([made("a")])

    assert isinstance(remote.log.read()[0], TimePassed)
    log.close()


# -- a spool that is damaged


def test_a_damaged_spool_is_set_aside_whole_and_the_log_opens(
    remote: Remote, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(b"not a database, but longer than a header of one would have to be" * 99)

    log = SpooledLog(remote, path, pauses=NEVER)

    (name,) = log.set_aside
    assert name.startswith("spool-damaged-")
    assert path.with_name(name).read_bytes().startswith(b"not a database")
    assert "damaged spool was set aside" in caplog.text
    remote.is_unavailable = True
    assert log.append([made("a")]) == [Outcome(0, "spooled")]
    log.close()


def test_a_spool_whose_pages_are_damaged_is_set_aside(remote: Remote, path: Path) -> None:
    remote.is_unavailable = True
    first = SpooledLog(remote, path, pauses=NEVER)
    first.append([made(f"{n}") for n in range(2_000)])
    first.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    remote.is_unavailable = False

    log = SpooledLog(remote, path, pauses=NEVER)

    assert (log.unavailable, len(log.set_aside), path.exists()) == (None, 1, False)
    log.close()


# -- killed anywhere

SPOOL_AND_DIE = """
import os, signal, sys
from fastbandit.errors import LogUnavailableError
from fastbandit.storage.spooled_log import SpooledLog
from fastbandit.storage.sqlite_log import SqliteLog
from test_spooled_log import NEVER, made

path, step, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
remote = SqliteLog(path + ".remote")
append = remote.append

def away(events):
    raise LogUnavailableError("away")

def reached(found):
    global times
    times -= found == step
    if times == 0 and found == step:
        os.kill(os.getpid(), signal.SIGKILL)

remote.append = away
log = SpooledLog(remote, path, pauses=NEVER, reached=reached)
log.append([made(f"{number}") for number in range(1500)])
log.append([made(f"{number}") for number in range(1500, 2500)])
print("acknowledged", flush=True)
remote.append = append
log.replay()
log.close()
"""
STEPS = [("spooled", 1), ("spooled", 2), ("sent", 1), ("sent", 2), ("sent", 3)]


@pytest.mark.parametrize(("step", "times"), [*STEPS, ("closed", 1), ("removed", 1)])
def test_a_process_that_is_killed_at_any_step_loses_and_doubles_nothing(
    path: Path, step: str, times: int
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SPOOL_AND_DIE, str(path), step, f"{times}"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([os.getcwd(), str(Path(__file__).parent)]),
        },
        stdout=subprocess.PIPE,
    )
    assert told.returncode == -signal.SIGKILL

    remote = SqliteLog(f"{path}.remote")
    SpooledLog(remote, path, pauses=NEVER).append([made("after")])

    ids = [event.id for event in remote.read() if isinstance(event, DecisionMade)]
    kept = 1500 if (step, times) == ("spooled", 1) else 2500
    assert ids == [*(f"{number}" for number in range(kept)), "after"]
    assert not path.exists()
    remote.close()


# -- under load


class SlowRemote(Remote):
    """Takes less in a second than a spool does."""

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        time.sleep(0.0005 * len(events))
        return super().append(events)


def test_the_spool_empties_while_decisions_come_faster_than_the_server_takes_them(
    path: Path,
) -> None:
    remote, is_over = SlowRemote(), threading.Event()
    log = SpooledLog(remote, path, pauses=(0.01, 0.01))
    remote.is_unavailable = True
    said = [f"before {number}" for number in range(1_000)]
    log.append([made(id) for id in said])
    longest = 0

    def load() -> None:
        nonlocal longest
        while not is_over.is_set():
            ids = [f"{len(said)} {one}" for one in range(8)]
            log.append([made(id) for id in ids])
            said.extend(ids)
            longest = max(longest, log.waiting)

    thread = threading.Thread(target=load)
    thread.start()
    remote.is_unavailable = False
    try:
        wait_until(lambda: log.unavailable is None)
    finally:
        is_over.set()
        thread.join()
        wait_until(lambda: log.unavailable is None)
        log.close()

    assert longest < 2_000
    assert sorted(remote.ids()) == sorted(said)
