"""A worker reports to its service, takes what it is handed, and ends when the service does."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from pathlib import Path

import msgspec

from fastbandit.serving.metrics import Metrics, Window
from fastbandit.serving.worker_link import (
    OF_CLIENT,
    TO_WRITER,
    Answer,
    Report,
    WorkerLink,
    report_error,
)
from fastbandit.storage.events import Arm, ArmsChanged
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_workers import writing


class _Parent:
    """The service's side of a worker, which answers each report in the same way."""

    def __init__(self) -> None:
        self.reports, its_reports = socket.socketpair()
        self.handed, its_handed = socket.socketpair(type=socket.SOCK_DGRAM)
        self.link = WorkerLink(its_reports, its_handed)
        self.heard: list[Report] = []
        self.answer = Answer(2, 2, False)

    async def hear(self) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=self.reports)
        while line := await reader.readline():
            self.heard.append(msgspec.json.decode(line, type=Report))
            writer.write(msgspec.json.encode(self.answer) + b"\n")
        writer.close()

    async def end(self) -> None:
        """Let go of the worker, and of this end of it."""
        await self.link.log.stop()
        self.link.close()
        self.handed.close()
        await asyncio.sleep(0.05)

    def hand(self, kind: bytes, one: socket.socket) -> None:
        socket.send_fds(self.handed, [kind], [one.fileno()])
        one.close()


def test_a_worker_reports_its_counts_and_answers_for_all() -> None:
    async def story() -> None:
        parent, metrics = _Parent(), Metrics()
        metrics.decisions = 3
        metrics.windows.append(Window(1_000, 2, 0.1, 0.2))
        hearing = asyncio.ensure_future(parent.hear())
        await parent.link.start(metrics)
        parent.answer = Answer(2, 1, True, 5, {"decisions": 7}, [Window(1, 1, 0.1, 0.1)])
        total = await parent.link.totals()
        assert total.decisions == 7
        assert [*total.windows] == [Window(1, 1, 0.1, 0.1)]
        assert [one.name for one in parent.link.problems()] == ["workers", "learner"]
        assert parent.link.problems()[0].detail == "1 of 2 workers run."
        gauges = parent.link.gauges()
        assert gauges == {"workers": 2, "workers_running": 1, "waiting_for_log": 5.0}
        assert parent.heard[-1].counts["decisions"] == 3
        assert sum(len(one.windows) for one in parent.heard) == 1  # each is sent once
        assert not parent.heard[-1].has_started
        parent.link.begin()
        await parent.link.totals()
        assert parent.heard[-1].has_started
        await parent.end()
        await hearing

    asyncio.run(story())


def test_a_worker_takes_connections_and_a_writer(tmp_path: Path) -> None:
    async def story(writer: socket.socket) -> None:
        parent, taken = _Parent(), asyncio.get_running_loop().create_future()
        hearing = asyncio.ensure_future(parent.hear())

        async def take(one: socket.socket) -> None:
            taken.set_result(one)

        parent.link.take = take
        await parent.link.start(Metrics())
        starting = asyncio.ensure_future(parent.link.log.start())
        one, other = socket.socketpair()
        socket.send_fds(writer, [TO_WRITER], [other.fileno()])
        other.close()
        parent.hand(TO_WRITER, one)
        assert await starting == 0
        client, its = socket.socketpair()
        parent.hand(OF_CLIENT, its)
        with closing(await taken) as found, client:
            client.sendall(b"hello")
            assert await asyncio.get_running_loop().sock_recv(found, 9) == b"hello"
        await parent.link.totals()
        assert parent.heard[-1].is_joined
        await parent.end()
        await hearing

    with writing(SqliteLog(tmp_path / "events.db")) as writer:
        asyncio.run(story(writer))


class _Follower:
    """Catches up with a log, and remembers how far."""

    def __init__(self) -> None:
        self.changing, self.seen = asyncio.Lock(), asyncio.Event()
        self.loop, self.changes = asyncio.get_running_loop(), list[ArmsChanged]()

    def catch_up(self, reader: SqliteLog) -> None:
        self.changes = reader.changes()
        self.loop.call_soon_threadsafe(self.seen.set)


def test_changes_that_came_through_others_are_followed(tmp_path: Path) -> None:
    async def story() -> None:
        with closing(SqliteLog(tmp_path / "events.db")) as log:
            log.append([ArmsChanged([Arm("new", [1.0])])])
        parent, follower = _Parent(), _Follower()
        hearing, link = asyncio.ensure_future(parent.hear()), parent.link
        await link.start(Metrics())
        following = asyncio.ensure_future(link.follow(follower, tmp_path))  # type: ignore[arg-type]
        link.log.changed.set()
        await asyncio.wait_for(follower.seen.wait(), 60)
        assert [arm.id for one in follower.changes for arm in one.upserted] == ["new"]
        assert not link.log.changed.is_set()
        following.cancel()
        await parent.end()
        await hearing

    asyncio.run(story())


def test_a_worker_ends_with_its_service() -> None:
    async def story() -> None:
        parent, ended = _Parent(), asyncio.Event()
        parent.link.end = ended.set
        await parent.link.start(Metrics())
        await asyncio.sleep(0)
        assert not ended.is_set()
        parent.reports.close()
        assert await asyncio.wait_for(ended.wait(), 60)
        await parent.end()

    asyncio.run(story())


def test_a_worker_says_why_it_cannot_start() -> None:
    own, its = socket.socketpair()
    with own, its:
        report_error(its, ValueError("no  key"))
        assert msgspec.json.decode(own.recv(2**16), type=Report).error == "no key"
