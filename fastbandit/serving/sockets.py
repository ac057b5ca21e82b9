"""The addresses that a service listens on."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from fastbandit.errors import SettingError

_AT_ONCE = 8  # connections that are accepted before others get their turn


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


def acceptors(bound: socket.socket) -> list[socket.socket]:
    """Return a socket several times: uvloop accepts one connection a turn of the loop for each.

    Turns take some 20 ms under load, and hundreds that came at once waited for seconds.
    """
    return [bound.dup() for _ in range(_AT_ONCE)]


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
