"""What is asked of a service beside a load: again and again, over a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lab.faults.stage import Caller

Step = Callable[[Caller], None]


@contextmanager
def meanwhile(
    port: int, step: Step, *, pause: float = 0.0, seconds: float = 60.0
) -> Iterator[None]:
    """Take a step at a time in a thread, after a pause each, until this ends."""
    is_over = threading.Event()

    def work() -> None:
        caller = Caller(port, seconds=seconds)
        while not is_over.wait(pause):
            step(caller)
        caller.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
