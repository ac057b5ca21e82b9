"""A little application behind the protocol of the service, on a port of loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from fastbandit.serving.arrivals import Arrivals
from fastbandit.serving.capacity import Capacity
from fastbandit.serving.metrics import Metrics
from fastbandit.serving.overload import OverloadProtocol
from fastbandit.serving.problems import Rejection
from fastbandit.serving.rejections import too_large
from fastbandit.settings.limits import LimitsConfig
from lab.faults.garbage import split_answers

_USUAL = LimitsConfig()
HEAD = b"POST /v1/select HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
LARGE = b"y" * 18_000
_SECONDS = 5.0
_SENT_BYTES = 2**16  # that the kernel takes for who does not read


def post(body: bytes, *, path: bytes = b"/v1/select", more: bytes = b"") -> bytes:
    head = HEAD.replace(b"/v1/select", path) + more
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


class Waiting:
    """An application that answers with the length of the body, some only when it is let.

    Under /large it answers with more.
    """

    def __init__(self, most: int, limits: LimitsConfig) -> None:
        self.capacity, self.arrivals = Capacity(most), Arrivals(limits)
        self.service = SimpleNamespace(metrics=Metrics())
        self.begun = 0
        self.barrier = asyncio.Event()

    def admit(self, scope: dict[str, Any]) -> Any:
        """Let through what has a key."""
        if (b"authorization", b"no") in scope["headers"]:
            raise Rejection(401, "no key", "It needs a key.", fix="Send one.")
        return SimpleNamespace(most_bytes=1_000, too_large=lambda: too_large(1_000, "x.y"))

    def count(self, path: str, status: int) -> None:
        self.service.metrics.answers[path, status] += 1

    def shaped(self, rejection: Rejection, path: str) -> Rejection:
        """Return a rejection as it is: nobody here is a client of Personalizer."""
        return rejection

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.begun += 1
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        if body.startswith(b"wait"):
            await self.barrier.wait()
        answer = LARGE if scope["path"] == "/large" else b"%d" % len(body)
        headers = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


@asynccontextmanager
async def serving(
    most: int = 1, limits: LimitsConfig = _USUAL
) -> AsyncIterator[tuple[Waiting, Any]]:
    """Serve the application on a port; return it, and how to connect."""
    app, state = Waiting(most, limits), ServerState()
    config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", access_log=False)  # type: ignore[arg-type]
    config.load()
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_BYTES)
    server = await loop.create_server(lambda: OverloadProtocol(config, state, {}), sock=listening)
    clients: list[Client] = []

    async def connect() -> Client:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        clients.append(Client(*streams))
        return clients[-1]

    try:
        yield app, connect
    finally:
        app.barrier.set()
        for client in clients:
            client.writer.close()
        await asyncio.gather(*state.tasks)
        server.close()
        for _ in range(100):
            if not state.connections:
                break
            await asyncio.sleep(0.01)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.found = reader, writer, b""

    async def ask(self, *pieces: bytes) -> bytes:
        await self.send(*pieces)
        return await self.answer()

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0.005)

    async def answer(self) -> bytes:
        while not split_answers(self.found):
            more = await asyncio.wait_for(self.reader.read(65536), _SECONDS)
            if not more:
                return b""
            self.found += more
        first = split_answers(self.found)[0]
        self.found = self.found[len(first) :]
        return first

    async def is_closed(self) -> bool:
        return await asyncio.wait_for(self.reader.read(), _SECONDS) == b""
