"""Handshakes of TLS: who never ends one makes room for others, and keeps nobody waiting."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import trustme

from fastbandit.serving.handshakes import Handshakes
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
