"""Retries and deadlines, driven without a clock or a network."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from fastbandit.client.requester import Pause, Requester, Send
from fastbandit.client.retries import Answer, NoAnswer, Retries
from fastbandit.errors import ServiceUnavailable

BUSY = Answer(503, b"{}")


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def drive(
    outcomes: Iterable[Answer | NoAnswer], *, retries: Retries, takes: float = 0.0
) -> tuple[list[float], list[float]]:
    """Ask once with a deadline of a second; give the patience of each try, and each pause."""
    clock, came, sent, paused = Clock(), iter(outcomes), [], []
    requester = Requester(["http://x"], deadline_seconds=1.0, retries=retries, clock=clock)
    call = requester.request("GET", "/", None, read=bytes)
    step: Any = next(call)
    try:
        while True:
            if isinstance(step, Send):
                sent.append(step.seconds)
                clock.now += takes
                step = call.send(next(came))
            else:
                assert isinstance(step, Pause)
                paused.append(step.seconds)
                clock.now += step.seconds
                step = call.send(None)
    except (StopIteration, ServiceUnavailable):
        return sent, paused


def test_a_request_is_sent_no_more_often_than_may_be() -> None:
    sent, paused = drive([BUSY] * 9, retries=Retries(tries=3, first_seconds=0.0))

    assert (len(sent), len(paused)) == (3, 2)


def test_a_good_answer_ends_the_tries() -> None:
    sent, _ = drive([NoAnswer("no connection"), Answer(200, b"")], retries=Retries())

    assert len(sent) == 2


def test_all_tries_but_the_last_leave_time_for_another() -> None:
    sent, _ = drive([BUSY] * 3, retries=Retries(tries=3, first_seconds=0.0, share=0.5))

    assert sent == [0.5, 0.5, 1.0]


def test_the_deadline_ends_the_tries() -> None:
    sent, _ = drive([BUSY] * 9, retries=Retries(tries=9, first_seconds=0.0), takes=0.4)

    assert len(sent) == 3


def test_pauses_are_drawn_below_a_bound_that_doubles() -> None:
    retries = Retries(tries=9, first_seconds=0.01, most_seconds=0.04)
    rng = Random(7)

    for tried, bound in enumerate([0.01, 0.02, 0.04, 0.04]):
        drawn = [retries.pause(tried, rng) for _ in range(200)]
        assert 0.9 * bound < max(drawn) <= bound
        assert min(drawn) < 0.1 * bound


def test_the_same_seed_gives_the_same_pauses() -> None:
    retries = Retries(tries=5, seed=3)

    assert drive([BUSY] * 9, retries=retries)[1] == drive([BUSY] * 9, retries=retries)[1]


def test_a_pause_is_as_long_as_the_service_asked() -> None:
    busy = Answer(429, b"{}", retry_after="0.2")

    _, paused = drive([busy] * 9, retries=Retries(tries=9, first_seconds=0.001, seed=7))

    assert len(paused) == 4
    assert all(0.2 <= pause <= 0.21 for pause in paused)
