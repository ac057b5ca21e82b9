"""The service on real sockets: TLS, keys for other machines, and its journal."""

from __future__ import annotations

import gc
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from fastbandit.errors import LogError, SettingError
from fastbandit.serving.server import Server, key_ring, make_server
from fastbandit.serving.service import Service
from fastbandit.settings.service import Config
from fastbandit.storage.sqlite_log import SqliteLog
from tests.serving.little_service import CONTEXT, begin, config_in


@contextmanager
def serving(config: Config) -> Iterator[Server]:
    """Serve in a thread, on a free port."""
    server = make_server(config, Service(config))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(20)


def test_decisions_come_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    paths = {name: str(tmp_path / name) for name in ("cert.pem", "key.pem")}
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(paths["cert.pem"])
    issued.private_key_pem.write_to_path(paths["key.pem"])
    config = begin(
        tmp_path / "data",
        server__port=0,
        server__tls_cert=paths["cert.pem"],
        server__tls_key=paths["key.pem"],
    )
    trust = ssl.create_default_context()
    authority.configure_trust(trust)

    with serving(config) as server, httpx.Client(verify=trust) as client:
        reply = client.post(f"{server.url}/v1/select", json={"context": CONTEXT})
        assert (reply.status_code, server.url[:5]) == (200, "https")
        plain = server.url.replace("https", "http")
        with pytest.raises(httpx.HTTPError):
            client.post(f"{plain}/v1/select", json={"context": CONTEXT})


def test_what_was_loaded_at_the_start_is_left_out_of_collections(tmp_path: Path) -> None:
    gc.unfreeze()
    with serving(begin(tmp_path / "data", server__port=0)):
        assert gc.get_freeze_count() > len(gc.get_objects())
    gc.unfreeze()


def test_the_console_is_served_with_its_policy(tmp_path: Path) -> None:
    with serving(begin(tmp_path, server__port=0)) as server, httpx.Client() as client:
        page = client.get(f"{server.url}/console/")
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        client.post(f"{server.url}/v1/select", json={"context": CONTEXT})
        assert client.get(f"{server.url}/v1/console?minutes=10").status_code == 200
        wrong = client.get(f"{server.url}/v1/console?minutes=ten").json()
        assert wrong["field"] == "minutes"


def test_a_service_without_a_console_has_no_page(tmp_path: Path) -> None:
    config = begin(tmp_path, server__port=0, server__console=False)
    with serving(config) as server, httpx.Client() as client:
        assert client.get(f"{server.url}/console/").status_code == 404
        assert client.get(f"{server.url}/v1/console").status_code == 404


def test_a_port_that_is_taken_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = config_in(tmp_path / "data", server__port=taken.getsockname()[1])
        with pytest.raises(SettingError, match="Address already in use"):
            make_server(config, Service(config)).run()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_certificate_that_cannot_be_used_is_reported(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "cert.pem"
    if text is not None:
        path.write_text(text)
    config = config_in(tmp_path, server__tls_cert=str(path), server__tls_key=str(path))

    with pytest.raises(SettingError, match=r"cert\.pem cannot be used .* server\.tls_cert"):
        make_server(config, Service(config)).run()


def test_a_data_folder_in_use_is_reported(tmp_path: Path) -> None:
    config = config_in(tmp_path, server__port=0)
    with closing(SqliteLog(tmp_path / "events.db")), pytest.raises(LogError, match="one writer"):
        make_server(config, Service(config)).run()


def test_other_machines_need_keys(tmp_path: Path) -> None:
    config = config_in(tmp_path, server__host="0.0.0.0", server__allow_plain_http=True)

    with pytest.raises(SettingError, match="keys create"):
        key_ring(config)
