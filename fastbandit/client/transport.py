"""Requests whose whole exchange ends in time: connecting, sending and each byte that comes.

A time-out of httpx bounds each wait alone, so a service that sends a byte now and then could
hold a caller for ever. Here it is turned into a point on the clock, which all waits share.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from time import monotonic
from typing import Any

import httpcore
import httpx

from fastbandit.client.retries import Answer


def headers_for(key: str | None) -> dict[str, str]:
    """Return what is sent with each request, by who has this key."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    return headers | ({} if key is None else {"Authorization": f"Bearer {key}"})


def to_answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.content, response.headers.get("Retry-After", ""))


class StrictTransport(httpx.BaseTransport):
    """Sends requests over connections that stay open, each within the time-out it came with.

    Looking up a host's name is left out: the operating system takes its own time for that.
    """

    def __init__(self) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and read its answer to the end."""
        seconds = float(request.extensions["timeout"]["read"])
        end = monotonic() + seconds
        waits = {"connect": end, "read": end, "write": end, "pool": seconds}
        url = request.url
        try:
            answer = self._pool.request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.read(),
                extensions={"timeout": waits},
            )
        except httpcore.TimeoutException as error:
            raise httpx.TimeoutException(f"no answer within {seconds:.3g} s") from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise httpx.TransportError(str(error) or type(error).__name__) from error
        return httpx.Response(answer.status, headers=answer.headers, content=answer.content)

    def close(self) -> None:
        self._pool.close()


class _Backend(httpcore.NetworkBackend):
    """Opens connections whose time-outs are points on the clock."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        plain = httpcore.SyncBackend()
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(plain.connect_tcp(host, port, left, local_address, socket_options))


class _Stream(httpcore.NetworkStream):
    """A connection whose time-outs are points on the clock."""

    def __init__(self, plain: httpcore.NetworkStream) -> None:
        self._plain = plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._plain.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._plain.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._plain.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._plain.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._plain.get_extra_info(info)


def _left(end: float | None, error: type[httpcore.TimeoutException]) -> float | None:
    """Return the seconds left until a point on the clock, or raise where it has passed."""
    if end is None:
        return None
    left = end - monotonic()
    if left <= 0:
        raise error("the time was over")
    return left
