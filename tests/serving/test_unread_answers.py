"""Who asks much and reads no answer holds up nobody, holds little, and is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from fastbandit.serving import arrivals
from fastbandit.settings.limits import LimitsConfig
from lab.faults.garbage import status_of
from tests.serving.little_server import LARGE, Client, Waiting, post, serving

GET = b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n"
NO_KEY = b"authorization: no\r\n"


@pytest.fixture(autouse=True)
def _sweeping_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_SWEEP_SECONDS", 0.01)


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.001)


async def unread(app: Waiting, connect: Any, request: bytes = GET, count: int = 100) -> Client:
    """Ask very often, until answers are no longer read."""
    client, before = await connect(), len(app.arrivals.unread)
    client.writer.transport.pause_reading()
    client.writer.write(request * count)
    now = asyncio.get_running_loop().time

    def is_stuck() -> bool:
        since = app.arrivals.unread.values()
        return len(since) > before and now() - max(since) > 0.05

    await until(is_stuck)
    return client


def test_answers_that_are_not_read_take_no_capacity() -> None:
    async def run() -> None:
        async with serving(most=4) as (app, connect):
            for _ in range(5):
                await unread(app, connect)
            assert app.capacity.under_way == 0
            assert status_of(await (await connect()).ask(post(b"abc"))) == 200

    uvloop.run(run())


@pytest.mark.parametrize("request_", [GET, post(b"abc", more=NO_KEY)])
def test_only_so_many_bytes_wait_to_be_read(request_: bytes) -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await unread(app, connect, request_, 4_000)
            (one,) = app.arrivals.unread
            assert one.transport.get_write_buffer_size() < 2**16
            assert app.arrivals.bytes > 0

    uvloop.run(run())


def test_rejections_under_overload_are_not_sent_to_who_does_not_read() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            app.capacity.under_way = 1
            client = await connect()
            client.writer.transport.pause_reading()
            for _ in range(2_000):
                client.writer.write(post(b"abc"))
                await asyncio.sleep(0)
            await until(lambda: app.arrivals.unread)
            (one,) = app.arrivals.unread
            assert one.transport.get_write_buffer_size() < 2**16
            app.capacity.under_way = 0

    uvloop.run(run())


def test_who_reads_late_gets_all_answers_in_their_order() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            client = await unread(app, connect, GET + post(b"abc", more=NO_KEY), 60)
            transport: Any = client.writer.transport
            transport.resume_reading()
            for _ in range(60):
                assert (await client.answer()).endswith(LARGE)
                assert status_of(await client.answer()) == 401
            assert app.arrivals.bytes == 0
            assert not app.arrivals.unread
            assert (await client.ask(post(b"abc"))).endswith(b"\r\n\r\n3")

    uvloop.run(run())


def test_who_reads_no_answer_is_ended() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(body_seconds=0.3)) as (app, connect):
            await unread(app, connect)
            (one,) = app.arrivals.unread
            await until(lambda: one.transport.is_closing() and not app.arrivals.bytes)
            assert not app.arrivals.unread

    uvloop.run(run())


def test_a_last_answer_that_is_not_read_is_ended_too() -> None:
    async def run() -> None:
        last = post(b"abc", more=NO_KEY + b"connection: close\r\n")
        async with serving(limits=LimitsConfig(body_seconds=0.3)) as (app, connect):
            client = await connect()
            client.writer.transport.pause_reading()
            sent = 0
            while not app.arrivals.unread:  # until a few bytes more than the kernel takes
                one = next(iter([*app.arrivals.idle, *app.arrivals.headers]), None)
                await client.send(last if one and one.transport.get_write_buffer_size() else GET)
                sent += 1
            assert one is not None
            assert one.transport.is_closing()
            assert one.transport.get_write_buffer_size() > 0
            await until(lambda: not app.arrivals.unread)

    uvloop.run(run())


def test_a_new_connection_takes_the_place_of_one_that_reads_no_answer() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(connections=2)) as (app, connect):
            await unread(app, connect)
            (one,) = app.arrivals.unread
            later: Client = await connect()
            assert status_of(await later.ask(post(b"abc"))) == 200
            assert status_of(await (await connect()).ask(post(b"abc"))) == 200
            assert one is not None
            assert one.transport.is_closing()
            assert status_of(await later.ask(post(b"abc"))) == 200

    uvloop.run(run())


def test_requests_that_wait_their_turn_hold_so_many_bytes_in_all() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(buffered_bytes=1_500)) as (app, connect):
            client = await connect()
            await client.send(post(b"wait"), post(b"x" * 900) * 2)
            app.barrier.set()
            assert status_of(await client.answer()) == 503
            assert app.arrivals.bytes == 0

    uvloop.run(run())


def test_pipelined_requests_are_no_long_header() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(header_bytes=200)) as (_, connect):
            client: Client = await connect()
            await client.send(GET * 20 + GET[:-20], GET[-20:])
            answers = [await client.answer() for _ in range(21)]
            assert {status_of(answer) for answer in answers} == {200}
            await client.send((post(b"x" * 100) + GET) * 5 + GET[:9], GET[9:])
            answers = [await client.answer() for _ in range(11)]
            assert {status_of(answer) for answer in answers} == {200}

    uvloop.run(run())


def test_a_long_header_behind_others_is_rejected() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(header_bytes=200)) as (_, connect):
            client: Client = await connect()
            await client.send(GET + GET[:-2] + b"x: " + b"y" * 100, b"y" * 100)
            assert [status_of(await client.answer()) for _ in range(2)] == [200, 431]

    uvloop.run(run())


def test_pipelined_requests_without_a_key_leave_the_connection_open() -> None:
    async def run() -> None:
        async with serving() as (_, connect):
            client: Client = await connect()
            await client.send(post(b"abc", more=NO_KEY) * 3 + post(b"abc"))
            answers = [status_of(await client.answer()) for _ in range(4)]
            assert answers == [401, 401, 401, 200]

    uvloop.run(run())


def test_a_pipelined_body_may_come_later() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            client, late = await connect(), post(b"x" * 50)
            await client.send(post(b"wait"), post(b"a") + late[:-20])
            app.barrier.set()
            assert (await client.answer()).endswith(b"4")
            assert (await client.answer()).endswith(b"1")
            assert (await client.ask(late[-20:])).endswith(b"50")

    uvloop.run(run())


class _Behind:
    """A connection with requests that wait."""

    def __init__(self, read: list[_Behind]) -> None:
        self.go_on = lambda: read.append(self)


def test_pipelined_requests_of_many_connections_are_read_in_turns() -> None:
    turns: list[Any] = []
    loop: Any = SimpleNamespace(call_later=lambda _, turn, given: turns.append(lambda: turn(given)))
    found, read = arrivals.Arrivals(LimitsConfig()), list[_Behind]()
    behind: list[Any] = [_Behind(read) for _ in range(20)]
    for one in behind:
        found.read_on(one, loop)
    counts = []
    while turns:
        turns.pop()()
        counts.append(len(read))
    assert counts == [8, 16, 20]
    assert read == behind
