"""Events as rows of PostgreSQL, written as the text that COPY reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastbandit.errors import InputError
from fastbandit.storage.event_rows import DECISION_COLUMNS, split
from fastbandit.storage.events import (
    ArmsChanged,
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    RewardStatus,
)
from fastbandit.storage.log_input import text_of

_NULL = r"\N"


def _text(value: str | None) -> str:
    if value is None:
        return _NULL
    if not value.isprintable() or "\\" in value:
        if "\0" in value:
            raise InputError(
                f"An event needs text that PostgreSQL can hold: got {value[:80]!r}, with the "
                f"character 0. Leave it out."
            )
        value = value.replace("\\", "\\\\").replace("\t", "\\t")
        value = value.replace("\n", "\\n").replace("\r", "\\r")
    return value


def _json(value: Any) -> str:
    if value is None:
        return _NULL
    text = text_of(value)
    return text.replace("\\", "\\\\") if "\\" in text else text


_WRITERS: dict[str, Callable[[Any], str]] = {
    "text": _text,
    "json": _json,
    "bigint": lambda value: _NULL if value is None else str(value),
    "boolean": lambda value: "t" if value else "f",
    "double precision": repr,
}
_FIELDS = tuple((column.name, _WRITERS[column.kind]) for column in DECISION_COLUMNS)


@dataclass
class Staged:
    """Events of an append as COPY takes them, by their positions in it, from 1 on.

    `made` counts the decisions; for one that comes again, `again` holds the position of the first.
    `lists` are eligible arms by hash. `outage` is how long one was that ends with the first event.
    """

    count: int
    made: int = 0
    decisions: bytes = b""
    rewards: bytes = b""
    lists: dict[str, str] = field(default_factory=dict)
    outage: int = 0
    changes: list[tuple[int, str, str]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    again: dict[int, int] = field(default_factory=dict)
    has_subjects_of_spool: bool = False

    def outcomes(
        self, last: int, known: dict[int, int], judged: dict[int, RewardStatus]
    ) -> list[Outcome]:
        """Return the outcome of each event after the number `last`.

        `known` holds the numbers of decisions that were in the log before.
        """
        found = []
        for position in range(1, self.count + 1):
            first = self.again.get(position, position)
            if first in known or first != position:
                found.append(Outcome(known.get(first, last + first), "repeated"))
            else:
                found.append(Outcome(last + position, judged.get(position, "written")))
        return found


def stage(events: Sequence[Event]) -> Staged:
    staged = Staged(len(events))
    decisions: list[str] = []
    rewards: list[str] = []
    firsts: dict[str, int] = {}
    made = split([event for event in events if isinstance(event, DecisionMade)])
    short, staged.lists = zip(made.decisions, made.hashes, strict=True), made.lists
    for position, event in enumerate(events, start=1):
        if isinstance(event, DecisionMade):
            event, hash = next(short)
            if event.made_at is not None and event.subject is not None:
                staged.has_subjects_of_spool = True
            if firsts.setdefault(event.id, position) == position:
                written = [write(getattr(event, name)) for name, write in _FIELDS]
                decisions.append("\t".join([str(position), *written, hash or _NULL]) + "\n")
            else:
                staged.again[position] = firsts[event.id]
        elif isinstance(event, RewardCame):
            decision, arm, part = _text(event.decision), _json(event.arm), _text(event.part)
            rewards.append(f"{position}\t{decision}\t{arm}\t{part}\t{event.value!r}\n")
        elif isinstance(event, ArmsChanged):
            staged.changes.append((position, text_of(event.upserted), text_of(event.discarded)))
        else:
            staged.ticks.append(position)
            staged.outage += event.outage if position == 1 else 0
    staged.decisions, staged.rewards = _encoded(decisions), _encoded(rewards)
    staged.made = len(decisions)
    return staged


def _encoded(lines: list[str]) -> bytes:
    try:
        return "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"An event needs text that is Unicode: got {error.object[error.start :][:80]!r} "
            f"({error.reason}). Leave such characters out."
        ) from error
