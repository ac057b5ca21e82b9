"""Every event log through the laws of fastbandit/testing/logs.py."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from fastbandit.storage.events import EventLog
from fastbandit.storage.memory_log import MemoryLog
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import LAWS, Clock, LogBackend


def sqlite_logs(folder: Path) -> LogBackend:
    """Logs in files of a folder, each of which remembers where it lies."""
    files: dict[int, tuple[Path, Clock]] = {}
    numbers = count()

    def make(clock: Clock) -> EventLog:
        return remember(folder / f"{next(numbers)}.db", clock)

    def remember(path: Path, clock: Clock) -> SqliteLog:
        log = SqliteLog(path, clock=clock)
        files[id(log)] = path, clock
        return log

    def reopen(log: EventLog) -> EventLog:
        log.close()
        return remember(*files[id(log)])

    def beside(log: EventLog) -> EventLog:
        return SqliteLog(files[id(log)][0], is_reader=True)

    return LogBackend(make, reopen, beside)


def memory_logs(folder: Path) -> LogBackend:
    return LogBackend(lambda clock: MemoryLog(clock=clock), lambda log: log, lambda log: log)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law.__name__))
@pytest.mark.parametrize("backend", [memory_logs, sqlite_logs])
def test_a_log_keeps_the_law(
    backend: Callable[[Path], LogBackend], law: Callable[[LogBackend], None], tmp_path: Path
) -> None:
    law(backend(tmp_path))
