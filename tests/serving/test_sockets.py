"""Where a service listens."""

from __future__ import annotations

import socket

import pytest

from fastbandit.errors import SettingError
from fastbandit.serving.sockets import bound_to, url_of


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
