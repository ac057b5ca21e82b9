"""Threads for large requests: a few, each on one core, less urgent than what others wait for."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")
_MOST = 4  # at once: the next wait, and hold nothing meanwhile but what was sent
_LESS_URGENT = 5


class LargeWork:
    """Does what takes long beside the event loop, so that it takes nobody else's time."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MOST, "large request", _become_less_urgent)

    async def do(self, work: Callable[[], _T]) -> _T:
        """Return what some work gives."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def stop(self) -> None:
        """Let go of the threads; work that has begun is ended first."""
        self._threads.shutdown(cancel_futures=True)


def _become_less_urgent() -> None:
    """Let other threads of this machine go first: on Linux each has an urgency of its own."""
    if os.uname().sysname == "Linux":
        number = threading.get_native_id()
        with suppress(OSError):
            own = os.getpriority(os.PRIO_PROCESS, number)
            os.setpriority(os.PRIO_PROCESS, number, own + _LESS_URGENT)
