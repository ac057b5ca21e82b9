"""Runs a service behind uvicorn: sockets, TLS, keys, and what is told once it listens."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

import uvicorn

from fastbandit.config import Config
from fastbandit.errors import SettingError
from fastbandit.serving.app import App
from fastbandit.serving.keys import KeyRing, keys_path
from fastbandit.serving.refusing import RefusingProtocol
from fastbandit.serving.service import Service

_SWITCH_SECONDS = 5e-4  # the writer's thread gets its turn sooner than by default


class Server(uvicorn.Server):
    """uvicorn, which tells `on_started` where it listens."""

    on_started: Callable[[str], None] = staticmethod(lambda url: None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the service, then listen."""
        await super().startup(sockets=sockets)
        if self.started:
            self.on_started(self.url)

    @property
    def url(self) -> str:
        """Where the service is found."""
        scheme = "https" if self.config.ssl_certfile else "http"
        host = f"[{self.config.host}]" if ":" in str(self.config.host) else self.config.host
        port = self.servers[0].sockets[0].getsockname()[1]
        return f"{scheme}://{host}:{port}"


def make_server(config: Config, service: Service) -> Server:
    """Put a service behind HTTP, ready to run."""
    server = config.server
    sys.setswitchinterval(_SWITCH_SECONDS)
    return Server(
        uvicorn.Config(
            App(service, key_ring(config)),
            host=server.host,
            port=server.port,
            http=RefusingProtocol,
            ws="none",
            loop="uvloop",
            lifespan="on",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=4096,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=10,
            ssl_certfile=server.tls_cert or None,
            ssl_keyfile=server.tls_key or None,
        )
    )


def key_ring(config: Config) -> KeyRing:
    """Give the keys of a service; none are needed where only this machine can ask."""
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
