"""A log in a folder, and its clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from little_exports import HandClock

from fastbandit.storage.sqlite_log import SqliteLog


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def log(tmp_path: Path, clock: HandClock) -> Iterator[SqliteLog]:
    log = SqliteLog(tmp_path / "events.db", clock=clock)
    yield log
    log.close()
