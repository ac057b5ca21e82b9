"""Events as rows of PostgreSQL: written as the text that COPY reads, and read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import json

from fastbandit.errors import InputError
from fastbandit.storage.events import (
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    Outcome,
    RewardCame,
    RewardStatus,
    TimePassed,
)
from fastbandit.storage.log_input import text_of

_NULL = r"\N"
_numbers = json.Decoder(list[float])
_anything = json.Decoder()
_arms = json.Decoder(list[Arm])


def _text(value: str) -> str:
    """Write a text as COPY reads it."""
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


def _flag(value: bool) -> str:
    return "t" if value else "f"


def _maybe_json(text: str | None) -> Any:
    return None if text is None else _anything.decode(text)


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Column:
    """A field of decisions as a column: its type, and how it is written and read."""

    name: str
    kind: str
    write: Callable[[Any], str]
    read: Callable[[Any], Any] = _same


DECISION_COLUMNS = (
    Column("id", "text", _text),
    Column("context", "json", _json, _numbers.decode),
    Column("arms", "json", _json, _anything.decode),
    Column("scores", "json", _json, _numbers.decode),
    Column("seed", "bigint", str),
    Column("version", "bigint", str),
    Column("catalogue", "bigint", str),
    Column("wait", "bigint", str),
    Column("otherwise", "double precision", repr),
    Column("sums", "boolean", _flag),
    Column("explored", "boolean", _flag),
    Column("floor", "double precision", repr),
    Column("propensities", "json", _json, _maybe_json),
    Column("eligible", "json", _json, _maybe_json),
    Column("degraded", "boolean", _flag),
    Column("decided_by", "text", _text),
    Column("other", "json", _json, _maybe_json),
)
"""The fields of DecisionMade in their order, less the number and the time."""
_WRITES = tuple(column.write for column in DECISION_COLUMNS)
_READS = (*(column.read for column in DECISION_COLUMNS), _same, _same)


# -- to rows


@dataclass
class Staged:
    """Events of an append as COPY takes them, by their places in it, from 1 on.

    `made` counts the decisions; for one that comes again, `again` gives the place of the first.
    `rounds` is how often rewards of one decision come: each must see the one before.
    """

    count: int
    made: int = 0
    decisions: bytes = b""
    rewards: bytes = b""
    rounds: int = 0
    changes: list[tuple[int, str, str]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    again: dict[int, int] = field(default_factory=dict)

    def outcomes(
        self, last: int, known: dict[int, int], judged: dict[int, RewardStatus]
    ) -> list[Outcome]:
        """Tell what became of each event after the number `last`.

        `known` holds the numbers of decisions that were in the log before.
        """
        found = []
        for place in range(1, self.count + 1):
            first = self.again.get(place, place)
            if first in known or first != place:
                found.append(Outcome(known.get(first, last + first), "repeated"))
            else:
                found.append(Outcome(last + place, judged.get(place, "written")))
        return found


def stage(events: Sequence[Event]) -> Staged:
    """Write events as rows, or raise where one cannot be kept."""
    staged = Staged(len(events))
    decisions: list[str] = []
    rewards: list[str] = []
    firsts: dict[str, int] = {}
    rounds: Counter[str] = Counter()
    for place, event in enumerate(events, start=1):
        if isinstance(event, DecisionMade):
            if firsts.setdefault(event.id, place) == place:
                decisions.append(_decision_line(place, event))
            else:
                staged.again[place] = firsts[event.id]
        elif isinstance(event, RewardCame):
            rewards.append(_reward_line(place, rounds[event.decision], event))
            rounds[event.decision] += 1
        elif isinstance(event, ArmsChanged):
            staged.changes.append((place, text_of(event.put), text_of(event.taken)))
        else:
            staged.ticks.append(place)
    staged.decisions, staged.rewards = _encoded(decisions), _encoded(rewards)
    staged.made = len(decisions)
    staged.rounds = max(rounds.values(), default=0)
    return staged


def _decision_line(place: int, made: DecisionMade) -> str:
    cells = (
        made.id, made.context, made.arms, made.scores, made.seed, made.version, made.catalogue,
        made.wait, made.otherwise, made.sums, made.explored, made.epsilon, made.propensities,
        made.eligible, made.degraded, made.decided_by, made.other,
    )  # fmt: skip
    written = [write(cell) for write, cell in zip(_WRITES, cells, strict=True)]
    return "\t".join([str(place), *written]) + "\n"


def _reward_line(place: int, round: int, came: RewardCame) -> str:
    arm, part, value = _json(came.arm), _text(came.part), repr(came.value)
    return f"{place}\t{round}\t{_text(came.decision)}\t{arm}\t{part}\t{value}\n"


def _encoded(lines: list[str]) -> bytes:
    try:
        return "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"An event needs text that is Unicode: got {error.object[error.start :][:80]!r} "
            f"({error.reason}). Leave such characters out."
        ) from error


# -- from rows


def to_decision(row: Sequence[Any]) -> DecisionMade:
    """Read a decision."""
    return DecisionMade(*[read(cell) for read, cell in zip(_READS, row, strict=True)])


def to_reward(row: Sequence[Any]) -> RewardCame:
    """Read a reward."""
    decision, value, arm, part, status, seq, at = row
    return RewardCame(decision, value, _maybe_json(arm), part, status, seq, at)


def to_change(row: Sequence[Any]) -> ArmsChanged:
    """Read a change of the arms."""
    put, taken, seq, at = row
    return ArmsChanged(_arms.decode(put), _anything.decode(taken), seq, at)


def to_tick(row: Sequence[Any]) -> TimePassed:
    """Read that time passed."""
    return TimePassed(*row)
