"""Watches over the log of a service: that it is the right one, its last event, and its clock."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from fastbandit.errors import LogError, SnapshotError
from fastbandit.serving.schemas import Reason
from fastbandit.storage.log_clock import ClockSteps
from fastbandit.storage.log_match import check_log, write_mark
from fastbandit.storage.shared import AnyLog
from fastbandit.storage.snapshot_store import SnapshotStore

_MARK_SECONDS = 1.0


class LogWatch:
    """Watches the log of a data folder, which is marked there unless others write it, too."""

    def __init__(self, folder: Path, *, is_shared: bool) -> None:
        self._folder, self._is_shared, self._marked = folder, is_shared, 0.0
        self.clock: object = None  # what has `seen` steps of the clock of the log

    def check(self, log: AnyLog, store: SnapshotStore) -> None:
        """Raise where a log is not the one of the snapshots; a damaged one is noticed elsewhere."""
        with suppress(SnapshotError):
            check_log(log, store, self._folder)

    def mark(self, log: AnyLog, *, is_last: bool = False) -> None:
        """Write down the last event of a log, once a second at most."""
        if self._is_shared or (time.monotonic() - self._marked < _MARK_SECONDS and not is_last):
            return
        self._marked = time.monotonic()
        with suppress(LogError):
            write_mark(log, self._folder)

    def problems(self) -> list[Reason]:
        """Return that the clock of the machine stepped within the last hour."""
        clock, whose = self._seen(), "the database" if self._is_shared else "this machine"
        if not clock.has_stepped:
            return []
        text = (
            f"The clock of {whose} stepped {clock.steps} times, and is {clock.skew_seconds:g} "
            f"s ahead of the log. Waits go on as if it had not."
        )
        return [Reason("clock", text, "See that one service alone sets the clock, slowly.")]

    def _seen(self) -> ClockSteps:
        found = getattr(self.clock, "seen", None)
        return found if isinstance(found, ClockSteps) else ClockSteps()

    def gauges(self) -> dict[str, float]:
        """Return how far the wall clock is ahead of the log, and its steps: 0 an hour later."""
        clock = self._seen()
        steps = clock.steps if clock.has_stepped else 0
        return {"clock_skew_seconds": clock.skew_seconds, "clock_steps": float(steps)}
