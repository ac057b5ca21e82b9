"""Runs a service behind uvicorn: sockets, TLS, keys, and a call once it listens."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from itertools import chain
from typing import Any

import uvicorn

from fastbandit.errors import SettingError
from fastbandit.serving.app import App
from fastbandit.serving.handshakes import Handshakes, TlsListener
from fastbandit.serving.keys import KeyRing, keys_path
from fastbandit.serving.overload import OverloadProtocol
from fastbandit.serving.service import Service
from fastbandit.serving.sockets import acceptors, bound_to, url_of
from fastbandit.settings.service import Config

_SWITCH_SECONDS = 5e-4  # the writer's thread runs sooner than by default


class Server(uvicorn.Server):
    """uvicorn around the life of a service; `on_started` is called with where it listens."""

    on_started: Callable[[str], None] = staticmethod(lambda url: None)

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service, self._limits = service, service.config.limits
        self.handshakes = Handshakes(self._limits.connections)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal to stop; raise why not before anything is started."""
        self._load()
        bound = sockets
        if bound is None:
            bound = list(bound_to(self.config.host, self.config.port))
        try:
            super().run(bound)
        finally:
            for one in bound:
                one.close()

    def _load(self) -> None:
        """Read the certificate and its key, if there are any."""
        try:
            self.config.load()
        except OSError as error:
            raise SettingError(
                f"TLS needs a certificate and its private key, both in PEM: "
                f"{self.config.ssl_certfile} and {self.config.ssl_keyfile} cannot be used "
                f"({error.strerror or error}). Correct server.tls_cert and server.tls_key."
            ) from error

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.service.start()
        _spare_collections()
        if self.config.ssl is None:
            await super().startup(sockets=[*chain.from_iterable(map(acceptors, sockets or []))])
        else:
            self._listen(sockets or [])
        self.on_started(self.url if self.servers else "")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is under way, then stop the service."""
        await super().shutdown(sockets=sockets)
        if not self.force_exit:
            await self.service.stop()

    def _listen(self, sockets: list[socket.socket]) -> None:
        """Accept connections over TLS: uvicorn would let any number of handshakes take a minute."""
        backlog = self.config.backlog
        self.servers: Any = [TlsListener(one, self.take, backlog=backlog) for one in sockets]
        self.started = True

    async def take(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted, here or by another process."""
        config, limits = self.config, self._limits
        within = {"ssl_handshake_timeout": limits.header_seconds} if config.ssl else {}

        def protocol() -> asyncio.Protocol:
            return config.http_protocol_class(  # type: ignore[call-arg]
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )

        is_counted = self.handshakes.counted() if config.ssl else nullcontext()
        with suppress(OSError), is_counted:  # as where the client left before the handshake
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(protocol, connection, ssl=config.ssl, **within)

    @property
    def url(self) -> str:
        bound = self.servers[0].sockets[0]
        return url_of(str(self.config.host), bound, is_tls=bool(self.config.ssl_certfile))


def _spare_collections() -> None:
    """Let what a process loaded at its start be looked through no more by Python's collector.

    It lives as long as the process. Each look through all of it held up everybody for tens of
    milliseconds, and a few large requests were enough to cause one. Of requests under way and their
    connections nothing is garbage either: with Python's own thresholds looking through hundreds of
    them took a tenth of the time under overload.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def make_server(config: Config, service: Service) -> Server:
    """Put a service behind HTTP, ready to run."""
    server = config.server
    sys.setswitchinterval(_SWITCH_SECONDS)
    return Server(
        uvicorn.Config(
            App(service, key_ring(config)),
            host=server.host,
            port=server.port,
            http=OverloadProtocol,
            ws="none",
            loop="uvloop",
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="error" if server.log_level == "error" else "warning",  # we log our own life
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=4096,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=10,
            ssl_certfile=server.tls_cert or None,
            ssl_keyfile=server.tls_key or None,
        ),
        service,
    )


def key_ring(config: Config) -> KeyRing:
    """Return the keys of a service; none are needed where only this machine can ask."""
    server = config.server
    path = keys_path(server)
    ring = KeyRing.load(path)
    if server.keys_file and ring.is_open:
        raise SettingError(
            f"server.keys_file needs to name a file of keys: found none at {path}. Run "
            f"`fastbandit keys create` with this config, or leave the setting empty."
        )
    if not ring.keys and not server.is_loopback:
        raise SettingError(
            f"A service that other machines reach needs keys: {path} holds none. Run: "
            f"fastbandit keys create --name first --scopes admin --data-dir {server.data_dir}"
        )
    return ring
