"""Where a service listens."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from fastbandit.errors import SettingError
from fastbandit.serving.sockets import acceptors, bound_to, url_of


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


def test_many_that_come_at_once_are_accepted_in_a_few_turns_of_the_loop() -> None:
    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(transport)

    async def story() -> int:
        (bound,) = bound_to("127.0.0.1", 0)
        loop, turns = asyncio.get_running_loop(), 0
        servers = [await loop.create_server(Accepted, sock=one) for one in acceptors(bound)]
        came = [socket.create_connection(bound.getsockname()) for _ in range(64)]
        while len(accepted) < len(came) and turns < 1_000:
            await asyncio.sleep(0)
            turns += 1
        for one in (*servers, *came, *accepted, bound):
            one.close()
        return turns

    accepted: list[asyncio.BaseTransport] = []
    assert uvloop.run(story()) < 64
    assert len(accepted) == 64
