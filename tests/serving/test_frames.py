"""Frames come out as they went in, however a socket cuts them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json

from fastbandit.errors import InputError, NotFiniteError
from fastbandit.serving import frames
from fastbandit.serving.frames import (
    FAILED,
    WRITTEN,
    CameArms,
    Frames,
    SentArms,
    frame,
    frame_of_outcomes,
    outcomes_in,
)
from fastbandit.storage.events import (
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    TimePassed,
)
from fastbandit.storage.log_input import text_of
from tests.serving.little_workers import decision

EVENTS: list[Event] = [
    decision("a", eligible={"price": {"<": 3}}, offered=[Arm("x", {"size": "M"})]),
    RewardCame("a", 0.25, 3, "part"),
    ArmsChanged([Arm("a", [1.0], {"price": None})], ["b", 2]),
    TimePassed(),
]


def passed_on(sent: SentArms, came: CameArms, events: list[Any]) -> list[Any]:
    """Send events over a socket and read what comes out."""
    ((number, kind, body),) = Frames().feed(sent.frame_of_events(9, events))
    assert number == 9
    text = text_of(came.events_in(kind, body))
    return json.decode(text, type=list[type(events[0])])  # type: ignore[misc,no-any-return]


@pytest.mark.parametrize("event", EVENTS)
def test_events_come_out_as_they_went_in(event: Event) -> None:
    assert passed_on(SentArms(), CameArms(), [event, event]) == [event, event]


def test_an_arm_goes_over_a_socket_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_MOST_ARMS", 3)
    arms = [Arm(f"arm{n}", {"size": n, "text": "a\nb"}) for n in range(5)]
    made = [decision(str(n), offered=[arms[n], arms[n - 1]]) for n in range(5)]
    sent, came, sizes = SentArms(), CameArms(), []

    for one in [made[0], decision("none"), made[0], *made, *made]:
        ((_, kind, body),) = Frames().feed(sent.frame_of_events(1, [one, one]))
        read = json.decode(text_of(came.events_in(kind, body)), type=list[DecisionMade])
        assert read == [one, one]
        sizes.append(len(body))

    assert sizes[2] < sizes[0] < 2 * len(text_of(made[0]))


def test_what_could_not_be_sent_is_sent_later() -> None:
    good, bad = Arm("good", {"text": "a"}), Arm("bad", {"text": "\ud800"})
    sent, came = SentArms(), CameArms()

    with pytest.raises(InputError, match="Unicode"):
        sent.frame_of_events(1, [decision("a", offered=[good, bad])])

    made = decision("b", offered=[good])
    assert passed_on(sent, came, [made]) == [made]


def test_outcomes_come_out_as_they_went_in() -> None:
    outcomes = [Outcome(1, "written"), Outcome(2, "conflicting")]
    ((number, kind, body),) = Frames().feed(frame_of_outcomes(3, outcomes))

    assert (number, kind, outcomes_in(body)) == (3, WRITTEN, outcomes)


@pytest.mark.parametrize("size", [1, 5, 9, 10, 1000])
def test_frames_are_whole_however_they_are_cut(size: int) -> None:
    sent = frame(1, WRITTEN, b"first") + frame(2, FAILED, b"") + frame(2**32 - 1, 2, b"x" * 99)
    cut = Frames()
    found = [one for at in range(0, len(sent), size) for one in cut.feed(sent[at : at + size])]

    assert found == [(1, WRITTEN, b"first"), (2, FAILED, b""), (2**32 - 1, 2, b"x" * 99)]


def test_what_a_log_does_not_take_is_not_sent() -> None:
    with pytest.raises(NotFiniteError):
        SentArms().frame_of_events(1, [RewardCame("a", float("nan"))])
