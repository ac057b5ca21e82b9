"""The time of a log goes on with the machine, whatever its wall clock is set to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fastbandit.storage.log_clock import Anchor, LogClock, Machine, boot_id, run_time, wall_time

DAY = 86_400_000_000
SECOND = 1_000_000


@dataclass
class Times:
    """A machine whose times are set by hand."""

    wall: int = 1_000 * DAY
    run: int = 5 * DAY
    boot: str = "one"

    def pass_time(self, microseconds: int) -> None:
        self.wall, self.run = self.wall + microseconds, self.run + microseconds

    def machine(self) -> Machine:
        return Machine(lambda: self.wall, lambda: self.run, lambda: self.boot)


@pytest.fixture
def times() -> Times:
    return Times()


def test_it_begins_with_the_wall_clock(times: Times) -> None:
    assert LogClock(times.machine())() == 1_000 * DAY


@pytest.mark.parametrize("step", [-DAY, -SECOND, SECOND, DAY])
def test_a_step_of_the_wall_clock_neither_stops_nor_rushes_it(times: Times, step: int) -> None:
    clock = LogClock(times.machine())
    before = clock()
    times.wall += step
    times.pass_time(7)

    assert clock() == before + 7
    assert (clock.steps, clock.has_stepped) == (1, True)
    assert clock.skew_seconds == step / SECOND


def test_what_is_no_step_is_not_told_of(times: Times) -> None:
    clock = LogClock(times.machine())
    times.wall += SECOND // 10

    clock()

    assert (clock.steps, clock.has_stepped) == (0, False)


def test_within_a_boot_the_time_since_is_known_whatever_the_wall_clock_says(times: Times) -> None:
    first = LogClock(times.machine())
    last_at, anchor = first(), first.anchor
    times.wall -= DAY
    times.pass_time(30 * SECOND)
    second = LogClock(times.machine())
    second.resumed(anchor, last_at=last_at)

    assert second() == last_at + 30 * SECOND
    assert second.steps == 1


def test_after_another_boot_the_wall_clock_is_read_as_it_was_off_before(times: Times) -> None:
    first = LogClock(times.machine())
    times.wall += DAY
    last_at, anchor = first(), first.anchor
    times.pass_time(60 * SECOND)
    times.run, times.boot = SECOND, "two"
    second = LogClock(times.machine())
    second.resumed(anchor, last_at=last_at)

    assert second() == last_at + 60 * SECOND


def test_after_another_boot_no_time_passed_where_the_clock_is_behind(
    times: Times, caplog: pytest.LogCaptureFixture
) -> None:
    last_at = times.wall
    anchor = LogClock(times.machine()).anchor
    times.wall, times.run, times.boot = times.wall - DAY, SECOND, "two"
    clock = LogClock(times.machine())
    clock.resumed(anchor, last_at=last_at)
    times.pass_time(9)

    assert clock() == last_at + 9
    assert clock.steps == 0
    assert "the log goes on after a gap" in caplog.text


def test_a_machine_that_is_back_at_an_earlier_moment_goes_on_from_the_log(times: Times) -> None:
    clock = LogClock(times.machine())
    anchor, last_at = clock.anchor, clock() + DAY
    clock.resumed(anchor, last_at=last_at)
    times.pass_time(5)

    assert clock() == last_at + 5


def test_an_unknown_boot_is_never_the_same(times: Times) -> None:
    times.boot = ""
    clock = LogClock(times.machine())
    clock.resumed(Anchor("", 0, 0), last_at=0)

    assert clock() == times.wall


def test_the_machine_tells_its_times() -> None:
    assert wall_time() > 1_700_000_000 * SECOND
    assert run_time() <= run_time()
    assert boot_id() == boot_id()
