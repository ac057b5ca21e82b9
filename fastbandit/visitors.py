"""Simulated visitors for a demonstration: they ask a service over HTTP, and reward it."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

import numpy as np

from fastbandit.client import Client
from fastbandit.errors import ServiceError
from fastbandit.experiments.synthetic import Synthetic

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
    with Client(url, key=key, deadline_seconds=5.0) as client:
        while True:
            began = time.monotonic()
            try:
                _visit_once(client, home, rng, first + number, coming)
                _reward_due(client, coming)
            except ServiceError:
                time.sleep(1.0)  # the service is not there yet, or not any more
            number += 1
            time.sleep(max(0.0, 1 / per_second - (time.monotonic() - began)))


def _visit_once(
    client: Client,
    home: Synthetic,
    rng: np.random.Generator,
    number: int,
    coming: deque[tuple[float, str, float]],
) -> None:
    context = home.contexts(number, 1)
    selected = client.select(context[0].tolist())
    if rng.random() < _FORGETFUL:
        return
    reward = float(home.observed(number, np.array([selected.arm]))[0])
    for _ in range(1 + (rng.random() < _TWICE)):
        coming.append((time.monotonic() + rng.uniform(*_DELAY_SECONDS), selected.decision, reward))


def _reward_due(client: Client, coming: deque[tuple[float, str, float]]) -> None:
    now = time.monotonic()
    for _ in range(len(coming)):
        due, decision, reward = coming.popleft()
        if due <= now:
            client.reward(decision, reward)
        else:
            coming.append((due, decision, reward))
