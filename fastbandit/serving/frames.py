"""Frames between the workers of a service and the process that writes its log.

A frame is a head (bytes of the body, a number, a kind) and a body in JSON, as the log holds it. The
writer answers a frame of events with one of the same number. Arms that came with requests come
again and again: over a socket each goes once, in a line after the decisions, which have numbers in
its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, cast

import msgspec
from msgspec import structs

from fastbandit.errors import FastbanditError
from fastbandit.storage.events import (
    Arm,
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

_MOST_ARMS = 8_192
"""So many are remembered at least, as by `fastbandit.runtime.offered_arms`."""

WRITTEN, FAILED, CHANGED, STEPPED = range(4)
"""What an answer says: what became of events, why they were not written, or (number 0) the
number of the last event where arms may have changed, or what was seen of the clock."""


def frame(number: int, kind: int, body: bytes) -> bytes:
    """Return a frame as it is sent."""
    return _HEAD.pack(len(body), number, kind) + body


class SentArms:
    """The arms that went over a socket, with their numbers there; after many it begins anew."""

    def __init__(self) -> None:
        self._arms, self._numbers = list[Arm](), dict[int, int]()

    def frame_of_events(self, number: int, events: Sequence[Event]) -> bytes:
        """Return a frame with events, all of one kind, or raise what a log would."""
        check_events(events)
        kind = _KINDS.index(type(events[0]))
        if kind:
            return frame(number, kind, bytes_of(events))
        if len(self._arms) >= _MOST_ARMS:
            self._arms.clear()
            self._numbers.clear()
        known = len(self._arms)
        try:
            short = [self._numbered(made) for made in cast(Sequence[DecisionMade], events)]
            lines = [bytes_of(short), *map(bytes_of, self._arms[known:])]
        except FastbanditError:  # nothing is sent
            for arm in self._arms[known:]:
                del self._numbers[id(arm)]
            del self._arms[known:]
            raise
        return frame(number, kind, b"\n".join(lines))

    def _numbered(self, made: DecisionMade) -> DecisionMade:
        if made.offered is None:
            return made
        for arm in made.offered:
            if id(arm) not in self._numbers:
                self._numbers[id(arm)] = len(self._arms)
                self._arms.append(arm)  # so that no other has its id
        numbers: Any = [self._numbers[id(arm)] for arm in made.offered]
        return structs.replace(made, offered=numbers)


class CameArms:
    """The other end of `SentArms`: arms as text, by their numbers."""

    def __init__(self) -> None:
        self._arms = list[bytes]()

    def events_in(self, kind: int, body: bytes) -> list[Event]:
        """Return the events of a frame, those of a socket in their order."""
        if kind:
            return _READ_EVENTS[kind](body)
        if len(self._arms) >= _MOST_ARMS:
            self._arms.clear()
        text, *fresh = body.split(b"\n")
        self._arms += fresh
        events: list[Any] = _READ_EVENTS[kind](text)
        for made in events:
            if made.offered is not None:
                arms = b",".join([self._arms[number] for number in made.offered])
                structs.force_setattr(made, "offered", msgspec.Raw(b"[%b]" % arms))
        return events


def frame_of_outcomes(number: int, outcomes: Sequence[Outcome]) -> bytes:
    """Return the answer to a frame of events."""
    return frame(number, WRITTEN, _ENCODE(outcomes))


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
