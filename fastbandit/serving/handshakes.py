"""Connections over TLS before they are any: how many may shake hands at once, and for how long."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

_AT_ONCE = 16  # connections that are accepted before others get their turn
_PAUSE_SECONDS = 0.1  # without room for one more, until it is tried again
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Handshakes:
    """Those that are under way; one more than `most` ends the one that takes longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: dict[asyncio.Task[None], None] = {}  # the earliest first

    def __len__(self) -> int:
        return len(self._tasks)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the task that runs now, while it shakes hands."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= self._most:
            longest = next(iter(self._tasks))
            del self._tasks[longest]
            longest.cancel()
        self._tasks[task] = None
        try:
            yield
        finally:
            self._tasks.pop(task, None)


class TlsListener:
    """Accepts connections on a socket, a few at a time, and hands them on as uvicorn's would."""

    def __init__(
        self,
        bound: socket.socket,
        take: Callable[[socket.socket], Awaitable[None]],
        *,
        backlog: int,
    ) -> None:
        self.sockets, self._take = (bound,), take
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Future[None]] = set()
        self._is_closed = False
        bound.setblocking(False)
        bound.listen(backlog)
        self._listen()

    def _listen(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self.sockets[0].fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self.sockets[0].accept()
            except OSError as error:  # nobody waits, or who did has left
                if error.errno in _NO_ROOM:  # who waits still does: asked at once, it takes a core
                    self._loop.remove_reader(self.sockets[0].fileno())
                    self._loop.call_later(_PAUSE_SECONDS, self._listen)
                return
            connection.setblocking(False)
            task = asyncio.ensure_future(self._take(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Accept nobody any more."""
        self._is_closed = True
        self._loop.remove_reader(self.sockets[0].fileno())

    async def wait_closed(self) -> None:
        """End the handshakes that are under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
