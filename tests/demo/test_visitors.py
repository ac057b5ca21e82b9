"""Visitors ask a service for arms, and most of them reward it later."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastbandit.demo import visitors
from fastbandit.demo.visitors import Caller, Visitors, demo_environment, write_catalogue
from fastbandit.errors import ServiceError


class Answers:
    """Stands for a service: it chooses arm 3, and notes what is posted."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, Any]] = []

    def post(self, route: str, body: dict[str, Any]) -> Any:
        self.posted.append((route, body))
        return {"decision": f"d{len(self.posted)}", "arms": [3]}

    def rewards(self) -> list[Any]:
        return [body["rewards"][0] for route, body in self.posted if route == "/v1/reward"]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Answers:
    monkeypatch.setattr(visitors, "_DELAY_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(visitors, "_UNREWARDED", 0.0)
    monkeypatch.setattr(visitors, "_TWICE", 0.0)
    return Answers()


def test_a_visitor_rewards_the_arm_that_was_chosen(service: Answers) -> None:
    some = Visitors(service, seed=0)  # type: ignore[arg-type]

    some.visit(7)
    some.reward()
    some.reward()

    environment = demo_environment()
    context = environment.contexts(7, 1)[0].tolist()
    reward = float(environment.observed(7, np.array([3]))[0])
    assert service.posted[0] == ("/v1/select", {"context": context})
    assert service.rewards() == [{"decision": "d1", "value": reward}]


def test_some_visitors_send_no_reward_and_some_send_it_twice(
    service: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = Visitors(service, seed=0)  # type: ignore[arg-type]

    monkeypatch.setattr(visitors, "_UNREWARDED", 1.0)
    some.visit(0)
    some.reward()
    assert service.rewards() == []

    monkeypatch.setattr(visitors, "_UNREWARDED", 0.0)
    monkeypatch.setattr(visitors, "_TWICE", 1.0)
    some.visit(1)
    some.reward()
    assert len(service.rewards()) == 2


def test_a_reward_waits_until_it_is_due(service: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "_DELAY_SECONDS", (1e6, 1e6))
    some = Visitors(service, seed=0)  # type: ignore[arg-type]

    some.visit(0)
    some.reward()

    assert service.rewards() == []


def test_the_arms_are_those_of_the_environment(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "new" / "arms.npy")

    assert np.array_equal(np.load(tmp_path / "new" / "arms.npy"), demo_environment().arms)


# -- over HTTP


class Handler(BaseHTTPRequestHandler):
    """Answers with the status that the route names, and the key that came."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path[1:]))
        self.end_headers()
        self.wfile.write(b'{"key": "%s"}' % str(self.headers["Authorization"]).encode())

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_caller_sends_its_key(url: str) -> None:
    assert Caller(url, key="secret").post("/200", {}) == {"key": "Bearer secret"}
    assert Caller(url).post("/200", {}) == {"key": "None"}


@pytest.mark.parametrize(("status", "error"), [(400, ServiceError), (503, ConnectionError)])
def test_another_status_is_an_error(url: str, status: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"answered with {status}"):
        Caller(url).post(f"/{status}", {})
