"""The time of a log that machines share: that of the database, less the steps of its clock.

Each writer knows how long it ran since its last append, by a clock that nobody can set. Where the
clock of the database went on by more or less than that, it stepped: the step is written into the
log as skew, which all writers subtract from then on. So a wait takes as long as it should.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from fastbandit.storage.log_clock import ClockSteps, run_time

_LOGGER = logging.getLogger("fastbandit.storage")
_STEP = 500_000  # microseconds: by more no answer is late without a reason
_DRIFT = 0.001  # of the time that passed: clocks of two machines may go apart by that


class SharedClock:
    """What one writer knows of the time of a shared log.

    A reading is of a moment between `begin` and now. `run` returns how many microseconds this
    machine has run.
    """

    def __init__(self, run: Callable[[], int] = run_time) -> None:
        self._run, self._began = run, 0
        self._known: tuple[int, int, int] | None = None  # a reading, and between which moments
        self._steps: int | None = None
        self.seen = ClockSteps()

    def begin(self) -> None:
        """Say that a reading will follow."""
        self._began = self._run()

    def step_of(self, reading: int) -> int:
        """Return by how much the clock stepped since the reading before, 0 where it did not."""
        if self._known is None:
            return 0
        before, began, ended = self._known
        least, most = self._began - ended, self._run() - began
        slack = _STEP + int(_DRIFT * max(0, most))
        passed = reading - before
        if least - slack <= passed <= most + slack:
            return 0
        self._known = None  # the next reading, less this step, is taken as it comes
        return passed - min(max(passed, least), most)

    def keep(self, reading: int) -> None:
        """Remember a reading in which there was no step."""
        self._known = reading, self._began, self._run()

    @property
    def is_new(self) -> bool:
        """Whether it knows no reading."""
        return self._known is None

    def notice(self, steps: int, skew: int) -> None:
        """Take over what the log says of steps: new ones are shown for an hour."""
        is_new = self._steps is not None and steps > self._steps
        stepped_at = time.monotonic() if is_new else self.seen.stepped_at
        if is_new or self._steps is None:
            self.seen = ClockSteps(steps, round(skew / 1e6, 3), stepped_at)
        if is_new:
            _LOGGER.warning("the clock of the database stepped", extra={"skew_seconds": skew / 1e6})
        self._steps = steps
