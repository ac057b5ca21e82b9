"""Where a service listens, and how connections are accepted there."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest

from fastbandit.errors import SettingError
from fastbandit.serving.sockets import Listener, bound_to, url_of


def test_all_addresses_of_a_host_have_one_port() -> None:
    bound = list(bound_to("localhost", 0))
    try:
        assert len({one.getsockname()[1] for one in bound}) == 1
    finally:
        for one in bound:
            one.close()


def test_an_address_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=r"server\.port"):
            list(bound_to("127.0.0.1", port))


@pytest.mark.parametrize(
    ("host", "is_tls", "start"), [("::1", True, "https://[::1]:"), ("localhost", False, "http://l")]
)
def test_a_url_says_how_to_ask(host: str, is_tls: bool, start: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        url = url_of(host, bound, is_tls=is_tls)
        assert url.startswith(start)
        assert url.endswith(f":{bound.getsockname()[1]}")


class _Full:
    """A socket for whose connections there is no room at first."""

    def __init__(self) -> None:
        self.own, self.is_full, self.asked = socket.socket(), True, 0
        self.own.bind(("127.0.0.1", 0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def accept(self) -> Any:
        self.asked += 1
        if self.is_full:
            raise OSError(errno.EMFILE, "Too many open files")
        return self.own.accept()


def test_without_room_for_one_more_nobody_is_asked_for_a_while() -> None:
    async def story() -> None:
        taken: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()

        async def take(connection: socket.socket) -> None:
            taken.set_result(connection)

        full: Any = _Full()
        listener = Listener(full, take, backlog=8)
        with full.own, socket.create_connection(full.getsockname()):
            await asyncio.sleep(0.25)
            asked, full.is_full = full.asked, False
            (await asyncio.wait_for(taken, 60)).close()
            listener.close()
            await listener.wait_closed()
        assert 0 < asked < 50  # each time after a pause; without one it would be thousands

    asyncio.run(story())


def test_many_that_come_at_once_are_accepted_in_a_few_turns_of_the_loop() -> None:
    async def story() -> None:
        taken: list[socket.socket] = []

        async def take(connection: socket.socket) -> None:
            taken.append(connection)

        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        listener = Listener(bound, take, backlog=64)
        came = [socket.create_connection(bound.getsockname()) for _ in range(48)]
        for _ in range(8):
            await asyncio.sleep(0)
        listener.close()
        await listener.wait_closed()
        for one in (bound, *came, *taken):
            one.close()
        assert len(taken) == 48

    asyncio.run(story())
