"""How much may be under way: requests, and the contexts of those that were read or not yet."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

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


class _Connection:
    """A connection that counts when it is read again."""

    def __init__(self, state: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.server_state, self.loop, self.is_read = state, loop, True
        self.transport: Any = SimpleNamespace(is_closing=lambda: False)
        self.flow: Any = SimpleNamespace(pause_reading=self.pause, resume_reading=self.resume)

    def pause(self) -> None:
        self.is_read = False

    def resume(self) -> None:
        self.is_read = True


def test_connections_that_were_rejected_are_read_again_though_there_is_no_room() -> None:
    async def story() -> None:
        loop, capacity = asyncio.get_running_loop(), Capacity(1)
        capacity.under_way = 1
        state = SimpleNamespace(total_requests=0)
        some = [_Connection(state, loop) for _ in range(200)]
        for one in some:
            capacity.hold(one)
        assert sum(one.is_read for one in some) < 10
        for _ in range(2_000):
            await asyncio.sleep(0.005)
            if all(one.is_read for one in some):
                break
        assert all(one.is_read for one in some)

    asyncio.run(story())


class _Clock:
    """An event loop whose time is set by hand; `due` is what it would call next."""

    now, due = 0.0, staticmethod(lambda: None)

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any, *given: Any) -> None:
        self.due = lambda: call(*given)


def test_connections_are_read_again_earlier_where_turns_of_the_loop_take_long() -> None:
    read = []
    for turn in (0.005, 0.03):
        loop: Any = _Clock()
        capacity = Capacity(1)
        capacity.under_way = 1
        state = SimpleNamespace(total_requests=0)
        some = [_Connection(state, loop) for _ in range(200)]
        for one in some:
            capacity.hold(one)
        while loop.now < 0.06:
            loop.now += turn
            loop.due()
        read.append(sum(one.is_read for one in some))

    assert read[0] < 100
    assert read[1] == 200
