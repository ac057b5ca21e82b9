"""Frames between the workers of a service and the process that writes its log.

A frame is a head (bytes of the body, a number, a kind) and a body in JSON, as the log holds it. A
line of its own are the arms that came with requests, which nobody needs to read on the way. The
writer answers a frame of events with one of the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, cast

import msgspec

from fastbandit.storage.event_rows import apart, together
from fastbandit.storage.events import (
    ArmsChanged,
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    TimePassed,
    WrittenDecision,
)
from fastbandit.storage.log_input import bytes_of, check_events

_HEAD = Struct("<IIB")
_KINDS: tuple[type[Any], ...] = (DecisionMade, RewardCame, ArmsChanged, TimePassed)
_READ_EVENTS = tuple(
    msgspec.json.Decoder(list[kind]).decode  # type: ignore[valid-type]
    for kind in (WrittenDecision, *_KINDS[1:])
)
_READ_OUTCOMES = msgspec.json.Decoder(list[Outcome]).decode
_ENCODE = msgspec.json.Encoder().encode

WRITTEN, FAILED, CHANGED, STEPPED = range(4)
"""What an answer says: what became of events, why they were not written, or (number 0) the
number of the last event where arms may have changed, or what was seen of the clock."""


def frame(number: int, kind: int, body: bytes) -> bytes:
    """Return a frame as it is sent."""
    return _HEAD.pack(len(body), number, kind) + body


def frame_of_events(number: int, events: Sequence[Event]) -> bytes:
    """Return a frame with events, all of one kind, or raise what a log would."""
    check_events(events)
    kind, offered = _KINDS.index(type(events[0])), b""
    if kind == 0:
        events, offered = apart(cast(Sequence[DecisionMade], events))
    return frame(number, kind, bytes_of(events) + b"\n" + offered)


def frame_of_outcomes(number: int, outcomes: Sequence[Outcome]) -> bytes:
    """Return the answer to a frame of events."""
    return frame(number, WRITTEN, _ENCODE(outcomes))


def events_in(kind: int, body: bytes) -> list[Event]:
    """Return the events of a frame."""
    text, _, offered = body.partition(b"\n")
    events: list[Any] = _READ_EVENTS[kind](text)
    if kind == 0:
        together(events, offered)
    return events


def outcomes_in(body: bytes) -> list[Outcome]:
    """Return the outcomes of a frame."""
    return _READ_OUTCOMES(body)


class Frames:
    """Cuts what comes over a socket into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Yield the number, kind and body of each frame that is whole now."""
        data, at = self._rest + data if self._rest else data, 0
        while len(data) - at >= _HEAD.size:
            size, number, kind = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + size
            if end > len(data):
                break
            yield number, kind, data[at + _HEAD.size : end]
            at = end
        self._rest = data[at:]
