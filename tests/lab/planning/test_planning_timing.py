"""Decisions are timed one by one, by a clock."""

from __future__ import annotations

from itertools import count

from fakes import vectors_of

from lab.planning.timing import build_seconds, decide_for


def test_decisions_are_timed_until_the_time_is_over() -> None:
    ticks = count()
    numbers: list[int] = []

    def decide(number: int) -> int:
        numbers.append(number)
        return 0

    taken = decide_for(decide, 3.0, first=10, clock=lambda: float(next(ticks)))

    assert taken == [1.0, 1.0, 1.0]
    assert numbers == [10, 11, 12]


def test_at_least_one_decision_is_timed() -> None:
    assert len(decide_for(lambda number: 0, 0.0, first=0)) == 1


def test_building_an_index_takes_time() -> None:
    assert build_seconds(vectors_of(300, 3)) > 0
