"""A PostgreSQL server for all tests of this folder, and a schema of its own for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from fastbandit.storage.postgres_server import LittleServer, little_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def shared_server() -> Iterator[LittleServer]:
    with little_server() as server:
        yield server


@pytest.fixture
def url(shared_server: LittleServer) -> str:
    return shared_server.url


@pytest.fixture
def schema() -> str:
    return f"log_{next(_NUMBERS)}"


@pytest.fixture
def next_schema() -> Callable[[], str]:
    return lambda: f"log_{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def own_server() -> Iterator[LittleServer]:
    """A server that tests of one file may kill, if they start it again."""
    with little_server() as server:
        yield server
