"""The process that writes a log, as a thread, and clients of it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastbandit.serving.log_client import LogClient
from fastbandit.serving.log_writer_process import LogWriterProcess
from fastbandit.serving.worker_link import TO_WRITER
from fastbandit.storage.events import DecisionMade


def decision(id: str, **more: Any) -> DecisionMade:
    return DecisionMade(id, [1.0, 2.0], ["a"], [0.5], 7, 1, 0, 10**9, **more)


@contextmanager
def writing(log: Any) -> Iterator[socket.socket]:
    """Write a log in a thread; give the parent's end of the writer's socket."""
    own, its = socket.socketpair()
    process = LogWriterProcess(log, its)
    thread = threading.Thread(target=process.run)
    thread.start()
    try:
        yield own
    finally:
        own.close()
        thread.join()
        process.close()


async def joined(writer: socket.socket) -> LogClient:
    """Return a client of a writer, as a worker has it."""
    client = LogClient(lambda: None)
    starting = asyncio.ensure_future(client.start())
    await asyncio.sleep(0)
    await client.join(socket_to(writer))
    await starting
    return client


async def leave(*clients: LogClient) -> None:
    """Let clients end, and their sockets close."""
    for client in clients:
        await client.stop()
    await asyncio.sleep(0.01)


def socket_to(writer: socket.socket) -> socket.socket:
    """Return a socket to a writer, whose other end is handed to it."""
    one, other = socket.socketpair()
    socket.send_fds(writer, [TO_WRITER], [other.fileno()])
    other.close()
    one.setblocking(False)
    return one
