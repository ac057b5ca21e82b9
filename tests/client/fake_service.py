"""A decision service on loopback that remembers what it was told, and fails when asked to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NOBODY = "http://127.0.0.1:1"  # where nothing listens
Failure = Callable[["Handler"], None]
"""What is done with a request in place of answering it."""


@dataclass
class FakeService:
    """Answers as the service does; `failures` are used up first, one a request."""

    failures: list[Failure] = field(default_factory=list)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def answer(self, method: str, path: str, asked: Any) -> tuple[int, Any]:
        """Return the status and the body that a request is due."""
        if path == "/v1/select" and "contexts" in asked:
            return 200, {"decisions": [self.decide(id, asked) for id in asked["ids"]]}
        if path == "/v1/select":
            return 200, self.decide(asked["id"], asked)
        if path == "/v1/reward":
            return self.take(asked["rewards"])
        if path == "/v1/arms" and method == "PUT":
            told = {"added": len(asked["arms"]), "changed": 0, "unchanged": 0}
            return 200, {**told, "arms": 3, "catalogue": 7}
        if path == "/v1/arms":
            return 200, {"removed": 1, "unknown": asked["ids"][1:], "arms": 2, "catalogue": 8}
        if path.partition("?")[0].endswith("/explanation"):
            return 200, {"asked": path}
        if path == "/v1/status":
            return 200, {"decisions": len(self.decisions), "a field of later": [1]}
        return 404, problem(404, "There is no such route.")

    def decide(self, id: str, asked: Any) -> dict[str, Any]:
        """Choose other arms each time, but the same for the same id."""
        first = len(self.decisions)
        fresh = {
            "decision": id,
            "arms": [f"arm {first + place}" for place in range(asked.get("k", 1))],
            "scores": [0.5] * asked.get("k", 1),
            "version": 3,
            "catalogue": 7,
            "degraded": False,
            "propensities": [0.25] if asked.get("propensity") else None,
        }
        return self.decisions.setdefault(id, fresh)

    def take(self, rewards: list[Any]) -> tuple[int, Any]:
        """Count rewards; all are rejected where one is above 1."""
        if any(reward["value"] > 1 for reward in rewards):
            return 422, problem(422, "A reward needs to be 0 or 1.")
        return 200, {"rewards": [self.count(reward) for reward in rewards]}

    def count(self, reward: Any) -> dict[str, str]:
        id, value = reward["decision"], reward["value"]
        if id not in self.decisions:
            return {"decision": id, "status": "unknown"}
        if id in self.counted:
            is_same = self.counted[id] == value
            return {"decision": id, "status": "duplicate" if is_same else "conflicting"}
        self.counted[id] = value
        return {"decision": id, "status": "counted"}

    def asked(self, path: str) -> list[Any]:
        """Return the bodies of the requests to a route, in their order."""
        return [body for _, found, body in self.requests if found == path]


def problem(status: int, detail: str) -> dict[str, Any]:
    told = {"type": "about:blank", "title": "Rejected", "status": status, "detail": detail}
    return {**told, "fix": "Send another."}


class Handler(BaseHTTPRequestHandler):
    """Hands each request to the service, or to the next failure."""

    protocol_version = "HTTP/1.1"
    service: FakeService

    def handle_one(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = json.loads(self.rfile.read(length)) if length else None
        self.service.requests.append((self.command, self.path, asked))
        self.service.headers.append(dict(self.headers))
        if self.service.failures:
            self.service.failures.pop(0)(self)
        else:
            self.reply(*self.service.answer(self.command, self.path, asked))

    do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815  http.server names them

    def reply(self, status: int, body: Any, **headers: str) -> None:
        self.write(status, json.dumps(body).encode(), **headers)

    def write(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


# -- failures


def reject(status: int, **headers: str) -> Failure:
    return lambda handler: handler.reply(status, problem(status, "Not now."), **headers)


def hang(handler: Handler) -> None:
    handler.service.ended.wait(30)
    handler.close_connection = True


def drop(handler: Handler) -> None:
    handler.close_connection = True


def drop_once_done(handler: Handler) -> None:
    """Do what was asked, but lose the answer."""
    handler.service.answer(*handler.service.requests[-1])
    handler.close_connection = True


def babble(handler: Handler) -> None:
    handler.write(200, b"<html>a proxy's greeting</html>")


def dribble(handler: Handler) -> None:
    """Send the head of an answer byte by byte, without an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.service.ended.wait(0.01):
        handler.wfile.write(b"x")


@contextmanager
def serving() -> Iterator[FakeService]:
    """Run a service of its own on a free port of loopback."""
    service = FakeService()
    handler = type("Bound", (Handler,), {"service": service})
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield service
        finally:
            service.ended.set()
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""
