"""Requests that arrive slowly, are large or show no key hold up nobody and hold little."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import uvloop

from fastbandit.serving import arrivals
from fastbandit.settings.limits import LimitsConfig
from lab.faults.garbage import status_of
from tests.serving.little_server import HEAD, Client, post, serving

NO_KEY = b"authorization: no\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


@pytest.fixture(autouse=True)
def _sweeping_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_SWEEP_SECONDS", 0.01)


def ask(*pieces: bytes, **limits: Any) -> dict[str, Any]:
    """Send pieces over one connection; return the problem that is answered before its end."""

    async def run() -> dict[str, Any]:
        async with serving(limits=LimitsConfig(**limits)) as (app, connect):
            client: Client = await connect()
            answer = await client.ask(*pieces)
            assert b"\r\nconnection: close\r\n" in answer
            assert app.begun == 0
            assert app.arrivals.bytes == 0
            problem = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])
            assert problem["status"] == status_of(answer)
            assert await client.is_closed()
            return dict(problem)

    return uvloop.run(run())


def test_who_shows_no_key_is_told_so_before_the_body() -> None:
    head = post(b"x" * 500, more=NO_KEY)[:-500]

    assert ask(head)["status"] == 401
    assert ask(head, b"x" * 20)["status"] == 401


def test_a_whole_request_without_a_key_leaves_the_connection_open() -> None:
    async def run() -> None:
        async with serving() as (_, connect):
            client: Client = await connect()
            assert status_of(await client.ask(post(b"abc", more=NO_KEY))) == 401
            assert (await client.ask(post(b"abc"))).endswith(b"\r\n\r\n3")

    uvloop.run(run())


@pytest.mark.parametrize("step", [50, 100_000])
def test_headers_have_a_limit(step: int) -> None:
    head = HEAD + b"x: " + b"y" * 400 + b"\r\n"
    pieces = [head[at : at + step] for at in range(0, len(head), step)]

    problem = ask(*pieces, header_bytes=300)

    assert (problem["status"], problem["field"]) == (431, "headers")
    assert "limits.header_bytes" in problem["fix"]


def test_a_large_body_right_behind_the_headers_is_no_long_header() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(header_bytes=200)) as (_, connect):
            client: Client = await connect()
            request = post(b"x" * 900)
            assert (await client.ask(request)).endswith(b"\r\n\r\n900")
            assert (await client.ask(request[:-902], request[-902:])).endswith(b"900")

    uvloop.run(run())


def test_too_many_headers_are_rejected() -> None:
    assert ask(HEAD + b"x: y\r\n" * 300)["status"] == 431


def test_what_follows_the_last_chunk_has_the_limit_of_headers() -> None:
    trailers = [b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"] * 6

    assert ask(CHUNKED, b"0\r\n", *trailers, header_bytes=200)["status"] == 431


@pytest.mark.parametrize(
    "pieces", [[post(b"x" * 5_000)[:-1_000]], [CHUNKED, b"fff\r\n" + b"x" * 2_000]]
)
def test_a_body_has_a_limit(pieces: list[bytes]) -> None:
    assert ask(*pieces)["status"] == 413


def test_headers_and_bodies_that_take_too_long_are_ended() -> None:
    slow = ask(HEAD, header_seconds=0.02)
    assert (slow["status"], slow["field"]) == (408, "header")
    slow = ask(post(b"abc")[:-1], body_seconds=0.02)
    assert (slow["status"], slow["field"]) == (408, "body")


def test_a_connection_that_says_nothing_is_ended() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(header_seconds=0.02)) as (_, connect):
            client: Client = await connect()
            assert await client.is_closed()

    uvloop.run(run())


def test_bodies_that_are_not_whole_hold_so_many_bytes_in_all() -> None:
    async def run() -> None:
        async with serving(limits=LimitsConfig(buffered_bytes=1_500)) as (app, connect):
            first, second = await connect(), await connect()
            half = post(b"x" * 900)[:-1]
            await first.send(half)
            rejected = await second.ask(half)
            assert status_of(rejected) == 503
            assert b"\r\nretry-after: 1\r\n" in rejected
            assert (await first.ask(b"x")).endswith(b"\r\n\r\n900")
            assert app.arrivals.bytes == 0

    uvloop.run(run())


def test_a_new_connection_takes_the_place_of_the_one_that_is_silent_for_longest() -> None:
    async def run() -> None:
        async with serving(most=4, limits=LimitsConfig(connections=3)) as (_, connect):
            busy: Client = await connect()
            await busy.send(post(b"wait"))
            idle, silent = await connect(), await connect()
            assert status_of(await idle.ask(post(b"abc"))) == 200
            await silent.send(b"POST ")
            first = await connect()
            assert status_of(await first.ask(post(b"abc"))) == 200
            assert await silent.is_closed()
            second = await connect()
            assert status_of(await second.ask(post(b"abc"))) == 200
            assert await idle.is_closed()
            assert status_of(await first.ask(post(b"abc"))) == 200

    uvloop.run(run())


def test_where_all_are_busy_a_new_connection_is_told_to_come_later() -> None:
    async def run() -> None:
        async with serving(most=4, limits=LimitsConfig(connections=2)) as (_, connect):
            for _ in range(2):
                await (await connect()).send(post(b"wait"))
            late: Client = await connect()
            assert status_of(await late.answer()) == 503

    uvloop.run(run())


def test_many_that_are_late_are_ended_in_turns() -> None:
    async def run() -> None:
        limits = LimitsConfig(header_seconds=0.05)
        async with serving(limits=limits) as (app, connect):
            clients = [await connect() for _ in range(150)]
            assert len(app.arrivals.headers) > 0
            ended = await asyncio.gather(*(one.is_closed() for one in clients))
            assert all(ended)
            assert not app.arrivals.headers

    uvloop.run(run())


def test_what_nobody_wants_is_read_from_one_connection_at_a_time() -> None:
    turns: list[Any] = []
    loop = SimpleNamespace(call_later=lambda _, turn, *given: turns.append(lambda: turn(*given)))
    said: list[str] = []

    def refused(name: str, *, is_closing: bool = False) -> Any:
        flow = SimpleNamespace(
            pause_reading=lambda: said.append(f"{name} waits"),
            resume_reading=lambda: said.append(f"{name} is read"),
        )
        return SimpleNamespace(flow=flow, transport=SimpleNamespace(is_closing=lambda: is_closing))

    found = arrivals.Arrivals(LimitsConfig())
    for one in (refused("a"), refused("gone", is_closing=True), refused("b")):
        found.read_later(one, loop)  # type: ignore[arg-type]
    assert said == ["a waits", "gone waits", "b waits"]
    del said[:]
    for expected in (["a is read"], ["a is read", "b is read"]):
        (turn,) = turns
        turns.clear()
        turn()
        assert said == expected
    assert not turns
