"""Simulated visitors for a demonstration: they ask a service over HTTP, and reward it."""

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
_FORGETFUL = 0.02  # so many never tell what came of it
_TWICE = 0.01  # and so many tell it twice


def world(seed: int = 0) -> Synthetic:
    """Give the world of the demonstration."""
    return Synthetic("h2", FEATURES, ARMS, seed=seed)


def write_catalogue(path: Path) -> None:
    """Write the arms of the demonstration."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, world().arms)


def visit(url: str, *, per_second: float = 50.0, key: str | None = None, seed: int = 0) -> None:
    """Send visitors until the process is ended; rewards come later, as they do."""
    home, rng, number = world(), np.random.default_rng(seed), 0
    first = int(time.time())  # a restart goes on with other visitors
    coming: deque[tuple[float, str, float]] = deque()
    caller = Caller(url, key=key)
    while True:
        began = time.monotonic()
        try:
            _visit_once(caller, home, rng, first + number, coming)
            _reward_due(caller, coming)
        except (OSError, HTTPException):
            time.sleep(1.0)  # the service is not there yet, or not any more
        number += 1
        time.sleep(max(0.0, 1 / per_second - (time.monotonic() - began)))


class Caller:
    """Calls a service over HTTP with the standard library: a demonstration needs no extra."""

    def __init__(self, url: str, *, key: str | None = None) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=5.0)
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    def post(self, route: str, told: dict[str, Any]) -> Any:
        """Return the service's answer to a request; another status than 200 is an error."""
        try:
            self._connection.request("POST", route, json.dumps(told), self._headers)
            response = self._connection.getresponse()
            body = response.read()
        except (OSError, HTTPException):
            self._connection.close()
            raise
        if response.status != 200:
            kind = ConnectionError if response.status >= 500 else ServiceError
            raise kind(f"{route} was answered with {response.status}: {body[:200]!r}")
        return json.loads(body)


def _visit_once(
    caller: Caller,
    home: Synthetic,
    rng: np.random.Generator,
    number: int,
    coming: deque[tuple[float, str, float]],
) -> None:
    context = home.contexts(number, 1)
    selected = caller.post("/v1/select", {"context": context[0].tolist()})
    if rng.random() < _FORGETFUL:
        return
    reward = float(home.observed(number, np.array([selected["arms"][0]]))[0])
    for _ in range(1 + (rng.random() < _TWICE)):
        due = time.monotonic() + rng.uniform(*_DELAY_SECONDS)
        coming.append((due, selected["decision"], reward))


def _reward_due(caller: Caller, coming: deque[tuple[float, str, float]]) -> None:
    now = time.monotonic()
    for _ in range(len(coming)):
        due, decision, reward = coming.popleft()
        if due <= now:
            caller.post("/v1/reward", {"rewards": [{"decision": decision, "value": reward}]})
        else:
            coming.append((due, decision, reward))
