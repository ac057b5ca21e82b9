"""Frames come out as they went in, however a socket cuts them."""

from __future__ import annotations

import pytest
from msgspec import json

from fastbandit.errors import NotFiniteError
from fastbandit.serving.frames import (
    FAILED,
    WRITTEN,
    Frames,
    events_in,
    frame,
    frame_of_events,
    frame_of_outcomes,
    outcomes_in,
)
from fastbandit.storage.events import Arm, ArmsChanged, Event, Outcome, RewardCame, TimePassed
from fastbandit.storage.log_input import text_of
from tests.serving.little_workers import decision

EVENTS: list[Event] = [
    decision("a", eligible={"price": {"<": 3}}, offered=[Arm("x", {"size": "M"})]),
    RewardCame("a", 0.25, 3, "part"),
    ArmsChanged([Arm("a", [1.0], {"price": None})], ["b", 2]),
    TimePassed(),
]


@pytest.mark.parametrize("event", EVENTS)
def test_events_come_out_as_they_went_in(event: Event) -> None:
    ((number, kind, body),) = Frames().feed(frame_of_events(9, [event, event]))

    assert number == 9
    came = json.decode(text_of(events_in(kind, body)), type=list[type(event)])  # type: ignore[misc]
    assert came == [event, event]


def test_outcomes_come_out_as_they_went_in() -> None:
    outcomes = [Outcome(1, "written"), Outcome(2, "conflicting")]
    ((number, kind, body),) = Frames().feed(frame_of_outcomes(3, outcomes))

    assert (number, kind, outcomes_in(body)) == (3, WRITTEN, outcomes)


@pytest.mark.parametrize("size", [1, 5, 9, 10, 1000])
def test_frames_are_whole_however_they_are_cut(size: int) -> None:
    sent = frame(1, WRITTEN, b"first") + frame(2, FAILED, b"") + frame(2**32 - 1, 2, b"x" * 99)
    frames = Frames()
    found = [one for at in range(0, len(sent), size) for one in frames.feed(sent[at : at + size])]

    assert found == [(1, WRITTEN, b"first"), (2, FAILED, b""), (2**32 - 1, 2, b"x" * 99)]


def test_what_a_log_does_not_take_is_not_sent() -> None:
    with pytest.raises(NotFiniteError):
        frame_of_events(1, [RewardCame("a", float("nan"))])
