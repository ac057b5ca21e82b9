"""The time of a shared log: steps of the database's clock are noticed by who appends."""

from __future__ import annotations

from fastbandit.storage.shared_clock import SharedClock

SECOND = 1_000_000
DAY = 86_400 * SECOND


class Run:
    """The time that a machine has run, moved by hand."""

    def __init__(self) -> None:
        self.now = 5 * SECOND

    def __call__(self) -> int:
        return self.now


def read(clock: SharedClock, run: Run, reading: int, *, takes: int = 0) -> int:
    """Read the clock of a database, and keep the reading where it did not step."""
    clock.begin()
    run.now += takes
    step = clock.step_of(reading)
    if not step:
        clock.keep(reading)
    return step


def test_time_that_passes_is_no_step() -> None:
    run = Run()
    clock = SharedClock(run)
    assert read(clock, run, 100 * SECOND) == 0
    for passed in (0, SECOND, 3600 * SECOND):
        run.now += passed
        assert read(clock, run, 95 * SECOND + run.now) == 0


def test_a_step_is_what_the_machine_did_not_run() -> None:
    for step in (DAY, -DAY, 3600 * SECOND, -SECOND, SECOND):
        run = Run()
        clock = SharedClock(run)
        read(clock, run, 100 * SECOND)
        run.now += 10 * SECOND
        assert read(clock, run, 110 * SECOND + step) == step


def test_waiting_for_the_lock_of_others_is_no_step() -> None:
    run = Run()
    clock = SharedClock(run)
    read(clock, run, 100 * SECOND)

    assert read(clock, run, 108 * SECOND, takes=8 * SECOND) == 0
    assert read(clock, run, 100 * SECOND + 8 * SECOND, takes=8 * SECOND) == 0


def test_after_a_step_the_next_reading_is_taken_as_it_comes() -> None:
    run = Run()
    clock = SharedClock(run)
    read(clock, run, 100 * SECOND)
    assert read(clock, run, 100 * SECOND + DAY) == DAY

    assert read(clock, run, 100 * SECOND) == 0
    assert read(clock, run, 100 * SECOND + DAY) == DAY


def test_steps_that_anyone_noticed_are_shown_for_an_hour() -> None:
    clock = SharedClock(Run())
    clock.notice(3, 7 * SECOND)
    assert not clock.seen.has_stepped

    clock.notice(4, DAY)

    assert clock.seen.has_stepped
    assert (clock.seen.steps, clock.seen.skew_seconds) == (4, 86_400.0)
