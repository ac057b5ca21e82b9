"""The time of a log: it goes on as the machine runs on, whatever its wall clock is set to.

Log time begins as the wall clock's, and from then on follows the time since the machine was
booted, which nobody can set. So a wait takes as long as it should, also where the wall clock steps
ahead or back. What must outlive the process is an `Anchor`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_LOGGER = logging.getLogger("fastbandit.storage")
_STEP = 500_000  # microseconds: by more the wall clock does not drift away from one call to another
_DAY = 86_400_000_000
_SHOWN_SECONDS = 3600.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def wall_time() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def run_time() -> int:
    """Return for how many microseconds the machine has run, asleep or awake."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1000


def boot_id() -> str:
    """Return what tells this boot of the machine from others, "" where that is not known."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Machine:
    """Where times come from: the wall clock, the time since the boot, and which boot that was."""

    wall: Callable[[], int] = wall_time
    run: Callable[[], int] = run_time
    boot: Callable[[], str] = boot_id


class Anchor(NamedTuple):
    """How log time follows from other times, in microseconds.

    It is `ahead` of the time since a `boot`, and the wall clock is `skew` ahead of it.
    """

    boot: str
    ahead: int
    skew: int


@dataclass(frozen=True)
class ClockSteps:
    """How often a clock stepped, how far it is ahead of the log, and when it last stepped.

    That is a monotonic time, in seconds, which all processes of a machine share.
    """

    steps: int = 0
    skew_seconds: float = 0.0
    stepped_at: float | None = None

    @property
    def has_stepped(self) -> bool:
        """Whether the clock stepped within the last hour."""
        at = self.stepped_at
        return at is not None and time.monotonic() - at < _SHOWN_SECONDS


class LogClock:
    """Returns the time of a log in microseconds, after it was `resumed`.

    `steps` counts how often the wall clock stepped while this was asked for the time.
    """

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine, self.steps = machine or Machine(), 0
        self.anchor = self.resumed(None, last_at=0)
        self._stepped: float | None = None

    def __call__(self) -> int:
        now = self._machine.run() + self.anchor.ahead
        skew = self._machine.wall() - now
        step = skew - self.anchor.skew
        if abs(step) > _STEP:
            self.steps, self._stepped = self.steps + 1, time.monotonic()
            self.anchor = self.anchor._replace(skew=skew)
            _LOGGER.warning("the clock stepped", extra={"seconds": step / 1e6})
        return now

    def resumed(self, anchor: Anchor | None, *, last_at: int) -> Anchor:
        """Go on after the last event of a log; return the anchor from now on.

        Within one boot the time since then is known. After another boot, only the wall clock can
        tell it: where that is behind the log, no time passed.
        """
        wall, run, boot = self._machine.wall(), self._machine.run(), self._machine.boot()
        is_same_boot = anchor is not None and anchor.boot == boot != ""
        if anchor is None:
            now = wall
        elif is_same_boot:
            now = run + anchor.ahead
        else:
            now = wall - anchor.skew
        passed, now = now - last_at, max(now, last_at)
        if last_at and not is_same_boot and not 0 <= passed <= _DAY:
            _LOGGER.warning("the log goes on after a gap", extra={"seconds": passed / 1e6})
        skew = wall - now if anchor is None or passed < 0 else anchor.skew
        self.anchor = Anchor(boot, now - run, skew)
        return self.anchor

    @property
    def skew_seconds(self) -> float:
        """How far the wall clock is ahead of the log."""
        return round(self.anchor.skew / 1e6, 3)

    @property
    def seen(self) -> ClockSteps:
        """What there is to show of it."""
        return ClockSteps(self.steps, self.skew_seconds, self._stepped)

    @property
    def has_stepped(self) -> bool:
        """Whether the wall clock stepped within the last hour."""
        return self.seen.has_stepped
