"""Group commit: nobody hears of an event before it is written, and nothing is mixed up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from fastbandit.errors import LogError
from fastbandit.serving.writer import Writer
from fastbandit.storage.events import Event, Outcome, TimePassed
from fastbandit.storage.memory_log import MemoryLog
from tests.serving.little_workers import decision


class SlowLog(MemoryLog):
    """A log whose appends wait until they are let through."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.groups, self.error = threading.Event(), [], None
        self.gate.set()

    groups: list[int]
    error: LogError | None

    def append(self, events: Sequence[Event]) -> list[Outcome]:
        self.gate.wait(10)
        if self.error is not None:
            raise self.error
        self.groups.append(len(events))
        return super().append(events)


def test_what_gathers_during_a_sync_is_written_as_one_group() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        log.gate.clear()
        first = writer.submit([TimePassed()])
        while writer._gathered:  # the first group is on its way
            await asyncio.sleep(0)
        more = [writer.submit([TimePassed(), TimePassed()]) for _ in range(5)]
        assert (writer.waiting, first.done()) == (11, False)
        log.gate.set()
        seqs = [[outcome.seq for outcome in await one] for one in [first, *more]]
        assert seqs == [[1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
        assert (log.groups, writer.waiting) == ([1, 10], 0)
        await writer.stop()

    asyncio.run(story())


def test_an_error_goes_to_all_who_wait_and_the_next_group_is_tried() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        log.error = LogError("full")
        with pytest.raises(LogError, match="full"):
            await writer.submit([TimePassed()])
        assert isinstance(writer.problem, LogError)
        log.error = None
        await writer.submit([TimePassed()])
        assert (writer.problem, writer.waiting) == (None, 0)
        await writer.stop()

    asyncio.run(story())


def test_a_request_that_was_given_up_does_not_stop_the_others() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        log.gate.clear()
        given_up, kept = writer.submit([TimePassed()]), writer.submit([TimePassed()])
        given_up.cancel()
        log.gate.set()
        assert [outcome.seq for outcome in await kept] == [2]
        await writer.stop()

    asyncio.run(story())


def test_stopping_writes_what_was_handed_in() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        written = writer.submit([TimePassed()])
        await writer.stop()
        assert (await written)[0].seq == 1

    asyncio.run(story())


def test_a_log_that_does_not_open_is_reported() -> None:
    def broken() -> MemoryLog:
        raise LogError("no such disk")

    async def story() -> None:
        writer = Writer(broken, asyncio.get_running_loop())
        with pytest.raises(LogError, match="no such disk"):
            await writer.start()

    asyncio.run(story())


def test_who_has_many_events_lets_others_go_in_between() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        log.gate.clear()
        many = writer.submit([TimePassed() for _ in range(300)])
        while writer._gathered and not writer._gathered[0].taken:
            await asyncio.sleep(0)
        other = writer.submit([TimePassed()])
        log.gate.set()
        assert [outcome.seq for outcome in await other] == [129]
        seqs = [outcome.seq for outcome in await many]
        assert seqs == [*range(1, 129), *range(130, 302)]
        assert (log.groups, writer.waiting) == ([128, 1, 128, 44], 0)
        await writer.stop()

    asyncio.run(story())


def test_a_request_that_failed_in_part_is_not_written_on() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        log.error = LogError("no room")
        with pytest.raises(LogError, match="no room"):
            await writer.submit([TimePassed() for _ in range(600)])
        log.error = None
        await writer.submit([TimePassed()])
        assert (log.groups, writer.waiting) == ([1], 0)
        await writer.stop()

    asyncio.run(story())


def test_the_decisions_of_a_request_are_written_all_or_none() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        log.gate.clear()
        made = writer.submit([decision(str(number)) for number in range(1_000)])
        other = writer.submit([TimePassed()])
        log.gate.set()
        assert [len(await one) for one in (made, other)] == [1_000, 1]
        assert sorted(log.groups) == [1, 1_000]
        await writer.stop()

    asyncio.run(story())


def test_a_log_with_a_spool_takes_decisions_a_part_at_a_time() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop(), is_whole=False)
        await writer.start()
        await writer.submit([decision(str(number)) for number in range(170)])
        assert log.groups == [128, 42]
        await writer.stop()

    asyncio.run(story())


def test_small_requests_and_parts_of_large_ones_take_turns() -> None:
    log = SlowLog()

    async def story() -> None:
        writer = Writer(lambda: log, asyncio.get_running_loop())
        await writer.start()
        log.gate.clear()
        first = writer.submit([TimePassed()])
        while writer._gathered:  # the first group is on its way
            await asyncio.sleep(0)
        large = [writer.submit([TimePassed() for _ in range(170 + n)]) for n in range(2)]
        small = [writer.submit([TimePassed()]) for _ in range(3)]
        log.gate.set()
        await asyncio.gather(first, *large, *small)
        assert log.groups == [
            1,
            3,
            128,
            128,
            42,
            43,
        ]  # neither large one waits for all of the other
        await writer.stop()

    asyncio.run(story())
