"""How much may be under way: requests, and the contexts of those that were read or not yet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastbandit.serving.capacity import Capacity


def test_as_many_requests_as_may_wait_fill_the_capacity() -> None:
    capacity = Capacity(4)
    capacity.under_way = 3

    assert not capacity.is_full
    capacity.under_way = 4
    assert capacity.is_full


def test_contexts_of_a_few_large_requests_fill_the_capacity() -> None:
    capacity = Capacity(4)
    capacity.rows = capacity.most_rows

    assert capacity.is_full


def test_requests_that_are_not_read_yet_count_as_is_usual() -> None:
    async def story() -> None:
        capacity, loop = Capacity(64), asyncio.get_running_loop()
        for _ in range(200):
            with capacity.taken(32):
                pass
        for _ in range(16):
            assert not capacity.is_full
            capacity.begin(loop)
        assert capacity.is_full
        await asyncio.sleep(0)  # by now each was read, and counts its own contexts
        assert not capacity.is_full

    asyncio.run(story())


def test_contexts_leave_when_their_request_fails() -> None:
    capacity = Capacity(1)
    try:
        with capacity.taken(8):
            assert capacity.has_no_room(1)
            raise ValueError
    except ValueError:
        assert not capacity.has_no_room(1_000)  # alone, a request may have any number


class _Clock:
    """An event loop whose time is set by hand; `due` is what it would call next."""

    now, due, ticks = 0.0, staticmethod(lambda: None), 0

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any, *given: Any) -> None:
        self.due, self.ticks = lambda: call(*given), self.ticks + 1

    def go_on(self, seconds: float) -> None:
        """Let so much time pass, and call what was due."""
        self.now += seconds
        due, self.due = self.due, lambda: None
        due()


class _Connection:
    """A connection that notes what became of its request."""

    def __init__(self, loop: Any, begun: list[_Connection]) -> None:
        self.loop, self.begun, self.is_rejected = loop, begun, False

    def begin_request(self) -> None:
        self.begun.append(self)

    def reject_late(self) -> None:
        self.is_rejected = True


def crowded(count: int) -> tuple[Any, Capacity, list[_Connection], list[_Connection]]:
    """Return so many connections in line for a capacity that is full, and those that began."""
    loop, capacity, begun = _Clock(), Capacity(1), list[_Connection]()
    capacity.under_way = 1
    some = [_Connection(loop, begun) for _ in range(count)]
    for one in some:
        capacity.line_up(one)
    return loop, capacity, some, begun


def test_who_waits_in_line_begins_in_turn_when_there_is_room() -> None:
    loop, capacity, some, begun = crowded(3)
    loop.go_on(0.002)
    assert not begun

    capacity.under_way = 0
    loop.go_on(0.002)
    assert begun == some
    assert not capacity.is_crowded


def test_who_comes_waits_behind_the_others_though_there_is_room() -> None:
    _, capacity, _, _ = crowded(1)
    capacity.under_way = 0

    assert capacity.is_crowded
    assert not capacity.is_full


def test_no_more_than_a_few_begin_at_once_though_they_take_no_room() -> None:
    loop, capacity, some, begun = crowded(300)
    capacity.under_way = 0
    loop.go_on(0.002)

    assert 0 < len(begun) < 150
    loop.go_on(0.002)
    assert begun == some[: len(begun)]


def test_who_waited_for_long_is_rejected_though_others_wait_on() -> None:
    loop, capacity, (first,), begun = crowded(1)
    loop.go_on(0.06)
    last = _Connection(loop, begun)
    capacity.line_up(last)
    for _ in range(6):
        loop.go_on(0.002)

    assert first.is_rejected
    assert not last.is_rejected
    assert not begun


def test_no_more_than_six_thousand_a_second_are_rejected() -> None:
    loop, _, some, _ = crowded(500)
    while loop.now < 0.08:
        loop.go_on(0.002)

    rejected = sum(one.is_rejected for one in some)
    assert 0 < rejected <= 0.02 * 6_000
    assert all(one.is_rejected for one in some[:rejected])  # who came first


def test_who_waits_is_rejected_earlier_where_turns_of_the_loop_take_long() -> None:
    rejected = []
    for turn in (0.002, 0.03):
        loop, _, some, _ = crowded(10)
        while loop.now < 0.06:
            loop.go_on(turn)
        rejected.append(sum(one.is_rejected for one in some))

    assert rejected == [0, 10]


class _Again(_Connection):
    """A connection that waits in line again as soon as its request begins."""

    capacity: Capacity

    def begin_request(self) -> None:
        self.capacity.line_up(self)


def test_the_line_is_looked_at_once_in_a_while_whoever_comes_back_meanwhile() -> None:
    loop, capacity, _, begun = crowded(0)
    again = _Again(loop, begun)
    again.capacity = capacity
    capacity.under_way = 0
    capacity.line_up(again)
    loop.go_on(0.002)

    assert loop.ticks == 2  # one for each time that was due


class _Failing(_Connection):
    """A connection whose request cannot even begin."""

    def begin_request(self) -> None:
        raise ValueError("odd")


def test_a_request_that_fails_does_not_stop_the_line() -> None:
    loop, capacity, (other,), begun = crowded(1)
    capacity._line.appendleft((0.0, _Failing(loop, begun)))
    capacity.under_way = 0
    with pytest.raises(ValueError, match="odd"):
        loop.go_on(0.002)
    loop.go_on(0.002)

    assert begun == [other]
