"""Large requests have threads of their own, which let others go first."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest

from fastbandit.serving.large_work import LargeWork


def test_work_is_done_beside_the_event_loop_and_its_errors_come_back() -> None:
    def fail() -> None:
        raise ValueError("too large")

    async def story() -> None:
        large = LargeWork()
        assert await large.do(threading.get_ident) != threading.get_ident()
        with pytest.raises(ValueError, match="too large"):
            await large.do(fail)
        large.stop()

    asyncio.run(story())


@pytest.mark.skipif(sys.platform != "linux", reason="only there a thread has its own urgency")
def test_its_threads_are_less_urgent_than_the_others() -> None:
    def urgency() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    async def story() -> None:
        large = LargeWork()
        before = urgency()
        assert await large.do(urgency) > before
        assert urgency() == before
        large.stop()

    asyncio.run(story())
