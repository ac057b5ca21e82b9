"""Under too much load a service rejects quickly and correctly, and finishes what it began."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest
import uvloop

from fastbandit.serving.overload import is_whole_select
from lab.faults.garbage import status_of
from lab.faults.overload import overload
from lab.faults.pinning import cores_apart
from tests.serving.little_server import HEAD, Client, Waiting, post, serving


async def filled(app: Waiting, connect: Any) -> Client:
    """Let a request be under way that fills the capacity."""
    client: Client = await connect()
    await client.send(post(b"wait"))
    while not app.begun:
        await asyncio.sleep(0.001)
    return client


def test_a_select_beyond_the_capacity_is_rejected_with_a_time_to_retry() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            first, second = await filled(app, connect), await connect()
            rejected = await second.ask(post(b"abc"))
            problem = msgspec.json.decode(rejected.partition(b"\r\n\r\n")[2])
            assert (status_of(rejected), problem["status"]) == (503, 503)
            assert b"\r\nretry-after: 1\r\n" in rejected
            app.barrier.set()
            assert status_of(await first.answer()) == 200
            assert (await second.ask(post(b"abc"))).endswith(b"\r\n\r\n3")
            assert app.service.metrics.rejected == 1
            assert app.service.metrics.answers == {("/v1/select", 503): 1}

    uvloop.run(run())


def test_a_select_waits_in_line_for_room_and_keeps_its_turn() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            first, second, third = await filled(app, connect), await connect(), await connect()
            await second.send(post(b"abc") + post(b"abcd"))
            await third.send(post(b"ab"))
            await third.send(post(b"abcde"))  # before the first of them was answered
            app.barrier.set()
            assert status_of(await first.answer()) == 200
            answers = [await third.answer(), await third.answer()]
            assert [answer.rpartition(b"\n")[2] for answer in answers] == [b"2", b"5"]
            assert app.service.metrics.rejected == 2  # those that came at once cannot wait so

    uvloop.run(run())


def test_who_leaves_the_line_holds_nothing() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await filled(app, connect)
            client = await connect()
            await client.send(post(b"abc"))
            waiting = app.arrivals.bytes
            client.writer.transport.abort()
            await asyncio.sleep(0.01)
            assert app.arrivals.bytes == waiting - len(post(b"abc"))
            await asyncio.sleep(0.1)  # its turn would have come, or been lost
            assert app.service.metrics.rejected == 0

    uvloop.run(run())


def test_a_request_is_under_way_until_its_answer_is_sent_or_nobody_waits_for_it() -> None:
    async def run() -> None:
        async with serving(most=4) as (app, connect):
            answered, gone = await filled(app, connect), await connect()
            await gone.send(post(b"wait"))
            assert app.capacity.under_way == 2
            gone.writer.close()
            app.barrier.set()
            assert status_of(await answered.answer()) == 200
            assert app.capacity.under_way == 0

    uvloop.run(run())


def test_a_rejected_request_may_come_in_pieces() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await filled(app, connect)
            client, request = await connect(), post(b"x" * 50)
            pieces = [request[:10], request[10:90], request[90:-20], request[-20:]]
            assert status_of(await client.ask(*pieces)) == 503
            chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n"
            assert status_of(await client.ask(chunked, b"3\r\nabc\r\n", b"0\r\n\r\n")) == 503
            app.barrier.set()
            assert (await client.ask(*pieces)).endswith(b"\r\n\r\n50")

    uvloop.run(run())


def test_a_request_may_come_in_pieces_and_in_chunks() -> None:
    async def run() -> None:
        async with serving() as (_, connect):
            client, request = await connect(), post(b"x" * 50)
            assert (await client.ask(request[:30], request[30:-9], request[-9:])).endswith(b"50")
            chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n"
            answer = await client.ask(chunked, b"3\r\nabc\r\n", b"4\r\ndefg\r\n0\r\n\r\n")
            assert answer.endswith(b"\r\n\r\n7")

    uvloop.run(run())


def test_a_body_that_comes_slowly_takes_no_capacity() -> None:
    async def run() -> None:
        async with serving() as (_, connect):
            slow, quick = await connect(), await connect()
            await slow.send(post(b"slowly")[:-3])
            assert status_of(await quick.ask(post(b"abc"))) == 200
            assert (await slow.ask(b"wly")).endswith(b"\r\n\r\n6")

    uvloop.run(run())


def test_who_asks_before_sending_a_body_may_go_on_or_is_rejected_at_once() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            client, request = await connect(), post(b"abc", more=b"expect: 100-continue\r\n")
            went_on = await client.ask(request[:-3])
            assert went_on.startswith(b"HTTP/1.1 100 ")
            assert (await client.ask(b"abc")).endswith(b"\r\n\r\n3")
            app.begun = 0
            await filled(app, connect)
            rejected = await client.ask(request[:-3])
            assert status_of(rejected) == 503
            assert b"\r\nconnection: close\r\n" in rejected
            assert await client.is_closed()

    uvloop.run(run())


def test_pipelined_requests_are_answered_in_their_order_even_when_the_capacity_is_full() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            client = await connect()
            await client.send(post(b"wait") + post(b"a") + post(b"ab"))
            await client.send(post(b"abc"))
            app.barrier.set()
            answers = [await client.answer() for _ in range(4)]
            assert [answer.rpartition(b"\n")[2] for answer in answers] == [b"4", b"1", b"2", b"3"]

    uvloop.run(run())


def test_pipelined_requests_are_each_rejected_when_the_capacity_is_full() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await filled(app, connect)
            client = await connect()
            await client.send(post(b"a") + post(b"ab"))
            assert [status_of(await client.answer()) for _ in range(2)] == [503, 503]

    uvloop.run(run())


def test_a_rejection_ends_the_connection_where_that_was_asked_for() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await filled(app, connect)
            for request in (
                post(b"abc", more=b"connection: close\r\n"),
                post(b"abc").replace(b"HTTP/1.1", b"HTTP/1.0"),
            ):
                client = await connect()
                rejected = await client.ask(request)
                assert status_of(rejected) == 503
                assert b"\r\nconnection: close\r\n" in rejected
                assert await client.is_closed()

    uvloop.run(run())


def test_rewards_are_taken_when_selects_are_rejected() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await filled(app, connect)
            client = await connect()
            assert status_of(await client.ask(post(b"abc", path=b"/v1/select?a=1"))) == 503
            assert status_of(await client.ask(post(b"abc", path=b"/v1/reward"))) == 200

    uvloop.run(run())


def test_rewards_are_rejected_when_twice_as_many_requests_are_under_way() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await filled(app, connect)
            second, third = await connect(), await connect()
            await second.send(post(b"wait", path=b"/v1/reward"))
            assert status_of(await third.ask(post(b"abc", path=b"/v1/reward"))) == 503
            assert app.service.metrics.answers == {("/v1/reward", 503): 1}

    uvloop.run(run())


def test_connections_that_were_rejected_often_are_read_again() -> None:
    async def run() -> None:
        async with serving() as (app, connect):
            await filled(app, connect)
            clients = [await connect() for _ in range(30)]
            for _ in range(3):
                answers = await asyncio.gather(*(one.ask(post(b"abc")) for one in clients))
                assert {status_of(answer) for answer in answers} == {503}

    uvloop.run(run())


def test_a_client_that_disconnects_leaves_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with serving(most=4) as (app, connect):
            for request in (
                post(b"wait"),
                post(b"wait") + post(b"a"),
                post(b"abcdef")[:-3],
                post(b"wait") + b"no HTTP at all\r\n\r\n",
            ):
                client = await connect()
                await client.send(request)
                client.writer.transport.abort()
            await asyncio.sleep(0.02)
            app.barrier.set()
            await asyncio.sleep(0.02)
            assert status_of(await (await connect()).ask(post(b"abc"))) == 200

    with caplog.at_level(logging.ERROR):
        uvloop.run(run())
    assert not caplog.records


def test_what_is_no_http_is_rejected(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with serving() as (_, connect):
            client = await connect()
            answer = await client.ask(b"\x16\x03\x01 no HTTP\r\n\r\n")
            problem = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])
            assert (status_of(answer), problem["field"]) == (400, "request")
            assert problem["fix"]
            assert await client.is_closed()

    uvloop.run(run())


@pytest.mark.parametrize(
    ("data", "is_whole"),
    [
        (post(b"abc"), True),
        (post(b""), True),
        (post(b"abc", more=b"Connection: Keep-Alive\r\n"), True),
        (post(b"abc", more=b"connection: close\r\n"), False),
        (post(b"abc", more=b"Expect: 100-continue\r\n"), False),
        (post(b"abc", more=b"transfer-encoding: chunked\r\n"), False),
        (post(b"abc")[:-1], False),
        (post(b"abc") + b"P", False),
        (post(b"abc", path=b"/v1/reward"), False),
        (HEAD + b"content-length: -3\r\n\r\nabc", False),
        (HEAD + b"\r\n", False),
        (HEAD, False),
        (b"", False),
    ],
)
def test_only_one_whole_and_plain_select_is_rejected_unread(data: bytes, is_whole: bool) -> None:
    assert is_whole_select(data) == is_whole


@pytest.mark.slow
def test_a_service_bears_too_many_requests() -> None:
    report = overload(
        40, seconds=0.4, rounds=1, connections=48, settings={"server.max_waiting": 16}
    )
    ways = [False] if cores_apart() is None else [False, True]
    expected = [(apart, contexts) for apart in ways for contexts in (1, 32)]
    assert [(one.apart, one.contexts) for one in report.pressed] == expected
    assert all(one.goodput > 0 for one in report.pressed)
    assert sum(one.refused for one in report.pressed) > 0
    assert all(one.failed == one.blunt == 0 for one in report.pressed)
    assert report.takes_rewards
    assert report.rss_most >= report.rss_before > 0
