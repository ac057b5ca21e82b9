"""A worker's way to the log: refused without a writer, and never left waiting."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from fastbandit.errors import LogError
from fastbandit.serving.log_client import LogClient
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_workers import decision, joined, leave, socket_to, writing


def test_who_waits_is_refused_when_the_writer_ends() -> None:
    async def story() -> None:
        asked: list[int] = []
        client = LogClient(lambda: asked.append(1))
        starting = asyncio.ensure_future(client.start())
        await asyncio.sleep(0)
        own, its = socket.socketpair()
        own.setblocking(False)
        await client.join(own)
        written = client.submit([decision("a"), decision("b")])
        assert client.waiting == 2
        await asyncio.sleep(0.01)
        its.close()
        with pytest.raises(LogError, match="ended, and is started again"):
            await written
        assert (client.waiting, client.is_joined, len(asked)) == (0, False, 2)
        assert client.problem is not None
        starting.cancel()

    asyncio.run(story())


def test_without_a_writer_nothing_is_taken_and_with_the_next_all_goes_on(tmp_path: Path) -> None:
    async def story(first: socket.socket, second: socket.socket) -> None:
        client = await joined(first)
        await client.submit([decision("a")])
        assert client._transport is not None
        client._transport.abort()
        await asyncio.sleep(0.01)
        with pytest.raises(LogError):
            await client.submit([decision("b")])
        await client.join(socket_to(second))
        assert (await client.submit([decision("b")]))[0].status == "written"
        assert client.problem is None
        await leave(client)

    logs = [SqliteLog(tmp_path / name) for name in ("first.db", "second.db")]
    with writing(logs[0]) as first, writing(logs[1]) as second:
        asyncio.run(story(first, second))


def test_a_second_socket_is_let_go_of(tmp_path: Path) -> None:
    async def story(writer: socket.socket) -> None:
        client = await joined(writer)
        await client.join(more := socket_to(writer))
        assert more.fileno() < 0
        assert await client.submit([]) == []
        assert (await client.submit([decision("a")]))[0].seq == 1
        await leave(client)

    with writing(SqliteLog(tmp_path / "events.db")) as writer:
        asyncio.run(story(writer))
