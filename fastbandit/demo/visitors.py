"""Simulated visitors for a demonstration: they call a service over HTTP, and reward it."""

from __future__ import annotations

import json
import time
from collections import deque
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from fastbandit.demo.synthetic import Synthetic
from fastbandit.errors import ServiceError

FEATURES = 4
ARMS = 10_000
_DELAY_SECONDS = (0.2, 3.0)
_UNREWARDED = 0.02  # share of visitors who send no reward
_TWICE = 0.01  # share of visitors who send it twice


def demo_environment(seed: int = 0) -> Synthetic:
    return Synthetic("h2", FEATURES, ARMS, seed=seed)


def write_catalogue(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, demo_environment().arms)


def visit(url: str, *, per_second: float = 50.0, key: str | None = None, seed: int = 0) -> None:
    """Send visitors until the process is ended; rewards come later, as they do."""
    visitors = Visitors(Caller(url, key=key), seed=seed)
    first = int(time.time())  # a restart goes on with other visitors
    while True:
        started = time.monotonic()
        try:
            visitors.visit(first)
            visitors.reward()
        except (OSError, HTTPException):
            time.sleep(1.0)  # the service is not up yet, or not any more
        first += 1
        time.sleep(max(0.0, 1 / per_second - (time.monotonic() - started)))


class Caller:
    """Calls a service over HTTP with the standard library: a demonstration needs no extra."""

    def __init__(self, url: str, *, key: str | None = None) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=5.0)
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    def post(self, route: str, body: dict[str, Any]) -> Any:
        """Return the service's answer to a request; raise where its status is not 200."""
        try:
            self._connection.request("POST", route, json.dumps(body), self._headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException):
            self._connection.close()
            raise
        if response.status != 200:
            kind = ConnectionError if response.status >= 500 else ServiceError
            raise kind(f"{route} was answered with {response.status}: {answer[:200]!r}")
        return json.loads(answer)


class Visitors:
    """Visitors of the demonstration's environment, and the rewards that they have yet to send."""

    def __init__(self, caller: Caller, *, seed: int) -> None:
        self._caller, self._environment = caller, demo_environment()
        self._rng = np.random.default_rng(seed)
        self._pending: deque[tuple[float, str, float]] = deque()

    def visit(self, number: int) -> None:
        """Let one visitor be decided for; most will send a reward, a few the same twice."""
        context = self._environment.contexts(number, 1)
        selected = self._caller.post("/v1/select", {"context": context[0].tolist()})
        if self._rng.random() < _UNREWARDED:
            return
        reward = float(self._environment.observed(number, np.array([selected["arms"][0]]))[0])
        for _ in range(1 + (self._rng.random() < _TWICE)):
            due = time.monotonic() + self._rng.uniform(*_DELAY_SECONDS)
            self._pending.append((due, selected["decision"], reward))

    def reward(self) -> None:
        """Send the rewards that are due."""
        now = time.monotonic()
        for _ in range(len(self._pending)):
            due, decision, reward = self._pending.popleft()
            if due <= now:
                rewards = [{"decision": decision, "value": reward}]
                self._caller.post("/v1/reward", {"rewards": rewards})
            else:
                self._pending.append((due, decision, reward))
