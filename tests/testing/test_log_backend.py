"""The clock of the contract of logs."""

from __future__ import annotations

from fastbandit.testing.log_backend import Clock


def test_a_clock_stands_still_until_its_time_is_set() -> None:
    clock = Clock()

    assert clock() == clock()
    clock.time += 5
    assert clock() == 1_000_005
