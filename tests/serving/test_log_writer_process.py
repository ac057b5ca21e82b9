"""The one writer of a log: what it acknowledges is in the log, whoever sent it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from fastbandit.errors import LogError
from fastbandit.serving.log_watch import LogWatch
from fastbandit.storage.events import Arm, ArmsChanged, Event, Outcome, RewardCame
from fastbandit.storage.log_clock import LogClock, Machine
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_workers import decision, joined, leave, writing


def test_events_of_several_workers_are_in_one_log(tmp_path: Path) -> None:
    async def story(writer: socket.socket) -> list[list[Outcome]]:
        clients = [await joined(writer) for _ in range(3)]
        made = [[decision(f"{n}-{row}") for row in range(4)] for n in range(3)]
        outcomes = await asyncio.gather(
            *(client.submit(some) for client, some in zip(clients, made, strict=True))
        )
        await leave(*clients)
        return outcomes

    with writing(SqliteLog(tmp_path / "events.db")) as writer:
        outcomes = asyncio.run(story(writer))

    with closing(SqliteLog(tmp_path / "events.db", is_reader=True)) as log:
        assert log.last == 12
        stored = [[log.decision(f"{n}-{row}") for row in range(4)] for n in range(3)]
    assert [[one and one.seq for one in some] for some in stored] == [
        [one.seq for one in some] for some in outcomes
    ]


def test_small_requests_do_not_wait_for_large_ones_that_came_with_them(tmp_path: Path) -> None:
    async def story(writer: socket.socket) -> list[list[Outcome]]:
        client = await joined(writer)
        many = [[decision(f"{n}-{row}") for row in range(300)] for n in range(2)]
        written = [client.submit(some) for some in (*many, [decision("small")])]
        outcomes = await asyncio.gather(*written)
        await leave(client)
        return outcomes

    with writing(SqliteLog(tmp_path / "events.db")) as writer:
        first, second, small = asyncio.run(story(writer))

    assert small[0].seq < second[0].seq
    for some in (first, second):  # each is one append
        assert [one.seq for one in some] == [*range(some[0].seq, some[0].seq + 300)]


def test_a_retry_with_another_worker_is_known_and_its_reward_a_duplicate(tmp_path: Path) -> None:
    async def story(writer: socket.socket) -> list[str]:
        first, second = await joined(writer), await joined(writer)
        written = await first.submit([decision("a")])
        repeated = await second.submit([decision("a")])
        rewards = [await one.submit([RewardCame("a", 1.0)]) for one in (second, first)]
        assert repeated[0].seq == written[0].seq
        await leave(first, second)
        return [one[0].status for one in (written, repeated, *rewards)]

    with writing(SqliteLog(tmp_path / "events.db")) as writer:
        assert asyncio.run(story(writer)) == ["written", "repeated", "counted", "duplicate"]


def test_all_workers_hear_of_changed_arms(tmp_path: Path) -> None:
    async def story(writer: socket.socket) -> bool:
        clients = [await joined(writer), await joined(writer)]
        for one in clients:
            one.changed.clear()
        await clients[0].submit([decision("a")])
        assert not any(one.changed.is_set() for one in clients)
        await clients[0].submit([ArmsChanged([Arm("new", [1.0])])])
        for one in clients:
            await asyncio.wait_for(one.changed.wait(), 60)
        await leave(*clients)
        return True

    with writing(SqliteLog(tmp_path / "events.db")) as writer:
        assert asyncio.run(story(writer))


def test_workers_hear_of_steps_of_the_clock(tmp_path: Path) -> None:
    off = [0]
    clock = LogClock(Machine(wall=lambda: 10**15 + off[0], run=lambda: 0))

    async def story(writer: socket.socket) -> None:
        client = await joined(writer)
        await client.submit([decision("a")])
        assert not client.seen.has_stepped
        off[0] = 3_600_000_000
        await client.submit([decision("b")])
        late = await joined(writer)
        await late.submit([decision("c")])
        for one in (client, late):
            assert (one.seen.steps, one.seen.skew_seconds) == (1, 3600.0)
            assert one.seen.has_stepped
        watch = LogWatch(tmp_path, is_shared=False)
        watch.clock = client
        assert "stepped 1 times, and is 3600 s ahead" in watch.problems()[0].detail
        await leave(client, late)

    with writing(SqliteLog(tmp_path / "events.db", clock=clock)) as writer:
        asyncio.run(story(writer))


class _Full:
    """A log without room, until it has some."""

    def __init__(self) -> None:
        self.last, self.is_full = 0, True

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        if self.is_full:
            raise LogError("No room.")
        return [Outcome(1, "written") for _ in events]

    def close(self) -> None:
        """Hold nothing."""


def test_a_log_that_cannot_be_written_refuses_until_it_can() -> None:
    log = _Full()

    async def story(writer: socket.socket) -> None:
        client = await joined(writer)
        with pytest.raises(LogError, match=r"No room\."):
            await client.submit([decision("a")])
        assert str(client.problem) == "No room."
        log.is_full = False
        assert await client.submit([decision("a")]) == [Outcome(1, "written")]
        assert client.problem is None
        await leave(client)

    with writing(log) as writer:
        asyncio.run(story(writer))


def test_a_worker_that_ends_is_forgotten(tmp_path: Path) -> None:
    async def story(writer: socket.socket) -> None:
        first, second = await joined(writer), await joined(writer)
        await leave(first)
        assert (await second.submit([decision("a")]))[0].status == "written"
        await second.submit([ArmsChanged([Arm("new", [1.0])])])
        await leave(second)

    with writing(SqliteLog(tmp_path / "events.db")) as writer:
        asyncio.run(story(writer))


def test_the_process_says_why_it_cannot_start(tmp_path: Path) -> None:
    own, its = socket.socketpair()
    with own, its, closing(SqliteLog(tmp_path / "events.db")):
        command = [sys.executable, "-m", "fastbandit.serving.log_writer_process"]
        command += [str(its.fileno()), str(tmp_path / "events.db")]
        done = subprocess.run(command, pass_fds=[its.fileno()], check=False)
        assert (done.returncode, own.recv(1)) == (2, b"-")
        assert b"one writer" in own.recv(2**16)
