"""What a campaign does that is stopped by a signal: it ends the processes that it started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Let signals raise an error, so that all that `with` and `finally` do is done.

    By itself Python raises for SIGINT alone, and not where it was started in the background. More
    signals change nothing: what is being ended is not left half-way.
    """

    def stop(number: int, frame: Any) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, stop) for one in SIGNALS}
    try:
        yield
    finally:
        for one, how in before.items():
            signal.signal(one, how)
