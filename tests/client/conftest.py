"""Both clients, driven alike: each test runs with the one that waits and the one that awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fake_service import FakeService, serving

from fastbandit.client import AsyncClient, Client, Retries

QUICK = Retries(first_seconds=0.001, most_seconds=0.002, seed=7)


class Awaited:
    """An AsyncClient whose calls are run to their end."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.runner = asyncio.Runner()
        self.client = AsyncClient(url, **settings)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if not asyncio.iscoroutinefunction(found):
            return found
        return lambda *args, **named: self.runner.run(found(*args, **named))

    def __enter__(self) -> Awaited:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.run(self.client.close())
        self.runner.close()


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving() as running:
        yield running


@pytest.fixture(params=[Client, Awaited], ids=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a client; it is closed after the test."""
    with ExitStack() as opened:

        def open_client(url: str, **settings: Any) -> Any:
            settings = {"retries": QUICK, "deadline_seconds": 20.0, **settings}
            return opened.enter_context(request.param(url, **settings))

        yield open_client
