"""A web application on loopback: a page, the client's files, and the service below /bandit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from node_package import Service

PAGE = b'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>An app</title>'
_MOUNT = "/bandit"


@dataclass
class App:
    """Where an application is, and what the service answered: (path, body)."""

    files: Path
    service: Service
    http: httpx.Client
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    url: str = ""

    def file(self, path: str) -> tuple[int, bytes, str]:
        """Return the page, or a file of the client."""
        if path == "/":
            return 200, PAGE, "text/html"
        file = self.files / path.removeprefix("/fastbandit/")
        if path.startswith("/fastbandit/") and file.is_file():
            return 200, file.read_bytes(), "text/javascript"
        return 404, b"", "text/plain"

    def forward(self, method: str, path: str, body: bytes) -> tuple[int, bytes, str]:
        """Ask the service as this application: its pages need no key."""
        headers = {"Authorization": f"Bearer {self.service.key}"}
        if body:
            headers["Content-Type"] = "application/json"
        answer = self.http.request(method, self.service.url + path, content=body, headers=headers)
        self.asked.append((path, body))
        return answer.status_code, answer.content, answer.headers["Content-Type"]


class _Handler(BaseHTTPRequestHandler):
    app: App

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith(f"{_MOUNT}/"):
            path = self.path.removeprefix(_MOUNT)
            status, content, kind = self.app.forward(self.command, path, body)
        else:
            status, content, kind = self.app.file(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815  http.server names them

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a page that went away."""


@contextmanager
def serving_app(files: Path, service: Service) -> Iterator[App]:
    """Run an application on a free port of loopback."""
    app = App(files, service, httpx.Client(timeout=30.0))
    server = _Server(("127.0.0.1", 0), type("Bound", (_Handler,), {"app": app}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    app.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield app
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        app.http.close()
