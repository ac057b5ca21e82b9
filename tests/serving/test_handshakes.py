"""Handshakes of TLS: who never ends one makes room for others, and keeps nobody waiting."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from fastbandit.serving.handshakes import Handshakes, TlsListener
from fastbandit.settings.limits import LimitsConfig
from tests.serving.little_service import CONTEXT, begin
from tests.serving.test_server import serving


def test_one_too_many_ends_the_one_that_takes_longest() -> None:
    async def story() -> None:
        handshakes, ended = Handshakes(2), list[int]()

        async def shake(number: int) -> None:
            with handshakes.counted():
                try:
                    await asyncio.sleep(60)
                finally:
                    ended.append(number)

        tasks = [asyncio.ensure_future(shake(number)) for number in range(3)]
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert (ended, len(handshakes)) == ([0], 2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(handshakes) == 0

    asyncio.run(story())


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
        listener = TlsListener(full, take, backlog=8)
        with full.own, socket.create_connection(full.getsockname()):
            await asyncio.sleep(0.25)
            asked, full.is_full = full.asked, False
            (await asyncio.wait_for(taken, 60)).close()
            listener.close()
            await listener.wait_closed()
        assert 0 < asked < 50  # each time after a pause; without one it would be thousands

    asyncio.run(story())


def test_a_handshake_has_a_deadline_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    config = begin(
        tmp_path / "data",
        server__port=0,
        server__tls_cert=str(tmp_path / "cert.pem"),
        server__tls_key=str(tmp_path / "key.pem"),
    )
    config = replace(config, limits=LimitsConfig(header_seconds=0.5))
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    with serving(config) as server, httpx.Client(verify=trust) as client:
        port = int(server.url.rsplit(":", 1)[1])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        reply = client.post(f"{server.url}/v1/select", json={"context": CONTEXT})
        for one in silent:
            one.settimeout(60)
            assert one.recv(1) == b""  # it was closed from the other end
            one.close()
        until = time.monotonic() + 60
        while len(server.handshakes) and time.monotonic() < until:
            time.sleep(0.01)

        assert reply.status_code == 200
        assert len(server.handshakes) == 0
