"""Connections over TLS before they are any: how many may shake hands at once, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Handshakes:
    """Those that are under way; one more than `most` ends the one that takes longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: dict[asyncio.Task[None], None] = {}  # the earliest first

    def __len__(self) -> int:
        return len(self._tasks)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the task that runs now, while it shakes hands."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= self._most:
            longest = next(iter(self._tasks))
            del self._tasks[longest]
            longest.cancel()
        self._tasks[task] = None
        try:
            yield
        finally:
            self._tasks.pop(task, None)
