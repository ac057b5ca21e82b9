"""The addresses that a service listens on, and the connections that come there."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator

from fastbandit.errors import SettingError

_AT_ONCE = 16  # connections that are accepted before others get their turn
_PAUSE_SECONDS = 0.1  # without room for one more, until it is tried again
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def bound_to(host: str, port: int) -> Iterator[socket.socket]:
    """Return sockets bound to all addresses of a host, at one port (0: a free one)."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            bound = _bind(family, (address[0], port, *address[2:]))
            port = bound.getsockname()[1]
            yield bound
    except OSError as error:
        raise SettingError(
            f"A service needs an address that it can listen on: {host}, port {port}, is none "
            f"({error.strerror or error}). Stop what listens there, or choose another with "
            f"server.port or server.host."
        ) from error


def _bind(family: int, address: tuple[str | int, ...]) -> socket.socket:
    """Return a socket that is bound, and does not listen yet: who asks too early is rejected."""
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def url_of(host: str, bound: socket.socket, *, is_tls: bool) -> str:
    """Return where a service listens, for people and clients."""
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if is_tls else 'http'}://{shown}:{bound.getsockname()[1]}"


class Listener:
    """Accepts connections on a socket, a few at a time, and hands them on.

    uvloop's own accepts one a turn of the loop: under load, whose turns take some 20 ms, hundreds
    that come at once waited for seconds. Over TLS it lets any number of handshakes take a minute.
    """

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
        """End those that are not handed on yet, as their handshake is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
