"""Events as rows of a database, in the order of their fields, read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from msgspec import json, structs

from fastbandit.errors import LogError
from fastbandit.storage.events import (
    REWARD_STATUSES,
    WHO,
    Arm,
    ArmsChanged,
    DecisionMade,
    Event,
    RewardCame,
    TimePassed,
)
from fastbandit.storage.log_input import bytes_of, text_of

Find: TypeAlias = Callable[[list[str]], Iterable[tuple[str, str]]]
"""Returns lists of eligible arms, as text, by their hashes."""
_LONG = 256  # a text of so many characters is stored once, beside the decisions

_numbers = json.Decoder(list[float]).decode
_context = json.Decoder(list[float] | dict[str, Any]).decode
_anything = json.Decoder().decode
arms_in = json.Decoder(list[Arm]).decode


def _same(value: Any) -> Any:
    return value


def _if_any(text: str | None) -> Any:
    return None if text is None else _anything(text)


@dataclass(frozen=True)
class Column:
    """A field of decisions as a column: its type in PostgreSQL, and how it is read."""

    name: str
    kind: str
    read: Callable[[Any], Any] = _same


DECISION_COLUMNS = (
    Column("id", "text"),
    Column("context", "json", _context),
    Column("arms", "json", _anything),
    Column("scores", "json", _numbers),
    Column("seed", "bigint"),
    Column("version", "bigint"),
    Column("catalogue", "bigint"),
    Column("wait", "bigint"),
    Column("default_reward", "double precision"),
    Column("adds_up", "boolean", bool),
    Column("explored", "boolean", bool),
    Column("epsilon", "double precision"),
    Column("propensities", "json", _if_any),
    Column("eligible", "json", _if_any),
    Column("degraded", "boolean", bool),
    Column("decided_by", "text", lambda name: WHO[WHO.index(name)]),
    Column("other", "json", _if_any),
    Column("offered", "json", lambda text: None if text is None else arms_in(text)),
    Column("made_at", "bigint"),
    Column("subject", "text"),
)
"""The fields of DecisionMade in their order, less number and time, before the last three."""
_READERS = (*(column.read for column in DECISION_COLUMNS), _same, _same, _same)
_ELIGIBLE = [column.name for column in DECISION_COLUMNS].index("eligible")


class Split(NamedTuple):
    """Decisions less what is long of `eligible`, the hash of each one's, and texts by hash."""

    decisions: Sequence[DecisionMade]
    hashes: list[str | None]
    lists: dict[str, str]


def split(decisions: Sequence[DecisionMade]) -> Split:
    """Take eligible arms out of decisions; those that a request has for all are encoded once."""
    hashes: list[str | None] = [None] * len(decisions)
    if all(made.eligible is None for made in decisions):
        return Split(decisions, hashes, {})
    short, lists, known = [*decisions], dict[str, str](), dict[int, str | None]()
    for n, made in enumerate(decisions):
        if id(made.eligible) not in known:
            text, hash = text_of(made.eligible), None
            if len(text) > _LONG:
                hash = blake2b(text.encode(), digest_size=20).hexdigest()
                lists[hash] = text
            known[id(made.eligible)] = hash
        hashes[n] = known[id(made.eligible)]
        if hashes[n] is not None:
            short[n] = structs.replace(made, eligible=None)
    return Split(short, hashes, lists)


def apart(decisions: Sequence[DecisionMade]) -> tuple[Sequence[DecisionMade], bytes]:
    """Take arms that came with requests out of decisions: they are long, and need no second look.

    Each decision has in their place from where on, counted from 1, and how many bytes they are.
    """
    if all(made.offered is None for made in decisions):
        return decisions, b""
    short, texts, first = [*decisions], list[bytes](), 1
    for n, made in enumerate(decisions):
        text = b"null" if made.offered is None else bytes_of(made.offered)
        place: Any = None if text == b"null" else (first, len(text))
        short[n] = structs.replace(made, offered=place)
        texts.append(text)
        first += len(text)
    return short, b"".join(texts)


def to_decisions(rows: Sequence[Sequence[Any]], find: Find) -> list[DecisionMade]:
    """Read decisions, each with the hash of its eligible arms before its number and time.

    Those that have the same share one object.
    """
    hashes = {row[-3] for row in rows} - {None}
    lists = {hash: _anything(text) for hash, text in find(sorted(hashes))} if hashes else {}
    if lost := hashes - lists.keys():
        raise LogError(
            f"A log needs the eligible arms of its decisions: {len(lost)} lists of them are not "
            f"there, such as {min(lost)}. Restore a backup of it."
        )
    return [_to_decision(row, lists) for row in rows]


def _to_decision(row: Sequence[Any], lists: dict[str, Any]) -> DecisionMade:
    values = [read(value) for read, value in zip(_READERS, row, strict=True)]
    hash, seq, at = values[-3:]
    if hash is not None:
        values[_ELIGIBLE] = lists[hash]
    return DecisionMade(*[*values[:-6], seq, at, *values[-6:-3]])


def to_reward(row: Sequence[Any]) -> RewardCame:
    decision, value, arm, part, status, seq, at = row
    known = REWARD_STATUSES[REWARD_STATUSES.index(status)]
    return RewardCame(decision, value, _if_any(arm), part, known, seq, at)


def to_change(row: Sequence[Any]) -> ArmsChanged:
    upserted, discarded, seq, at = row
    return ArmsChanged(arms_in(upserted), _anything(discarded), seq, at)


def to_tick(row: Sequence[Any]) -> TimePassed:
    outage, seq, at = row
    return TimePassed(seq, at, outage)


_OTHERS: tuple[Callable[[Sequence[Any]], Event], ...] = (to_reward, to_change, to_tick)


def to_events(kinds: Sequence[Sequence[Sequence[Any]]], limit: int, find: Find) -> list[Event]:
    """Return the first events of rows of each kind, in the order of `KINDS` in the SQL of a log."""
    numbered = ([(row[-2], kind, row) for row in rows] for kind, rows in enumerate(kinds))
    first = list(islice(merge(*numbered), limit))
    made = iter(to_decisions([row for _, kind, row in first if kind == 0], find))
    return [next(made) if kind == 0 else _OTHERS[kind - 1](row) for _, kind, row in first]


def readers(find: Find) -> tuple[Callable[[Sequence[Any]], Event], ...]:
    """Return what reads a row of each kind, in the order of `KINDS`."""
    return (lambda row: to_decisions([row], find)[0], *_OTHERS)


def _to_archived(row: Sequence[Any]) -> DecisionMade:
    """Read a decision of an archive, which holds its eligible arms itself."""
    return _to_decision((*row[:-2], None, *row[-2:]), {})


class Archived(NamedTuple):
    """A kind of events in an archive: its columns with their types, and how a row is read."""

    columns: tuple[tuple[str, str], ...]
    read: Callable[[Sequence[Any]], Event]


_NUMBERED = (("seq", "bigint"), ("at", "bigint"))
ARCHIVED = {
    "decisions": Archived(
        (*((one.name, one.kind) for one in DECISION_COLUMNS), *_NUMBERED), _to_archived
    ),
    "rewards": Archived(
        (
            ("decision", "text"),
            ("value", "double precision"),
            *((name, "text") for name in ("arm", "part", "status")),
            *_NUMBERED,
        ),
        to_reward,
    ),
    "ticks": Archived((("outage", "bigint"), *_NUMBERED), to_tick),
}
"""The kinds of events that leave a log, by its tables, in the order of what a log is asked."""
