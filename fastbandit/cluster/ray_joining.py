"""Joins a range of a log with Ray Data: each worker the decisions whose ids fall to it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np

from fastbandit.errors import LogError
from fastbandit.learning.backlog import NEVER, JoinedRange, Numbers
from fastbandit.learning.joining import PLAIN, Interaction, Joiner
from fastbandit.learning.service_data import read_events
from fastbandit.packages import needed
from fastbandit.settings.rewards import RewardConfig
from fastbandit.storage.events import DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.shared import open_log

_RANGES = 4  # for each worker
_END = TimePassed(NEVER, NEVER)

Joined = tuple[Interaction, int]
"""An interaction, and until when its decision waited for rewards."""


@dataclass(frozen=True)
class RayJoin:
    """Joins events of the log at a URL, or of a data folder that all workers see."""

    url: str
    folder: Path
    workers: int

    def __call__(self, joiner: Joiner, *, until: int) -> JoinedRange:
        data = needed("ray.data", what="The engine ray", extra="cluster")
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        count = self.workers * _RANGES
        ends = np.linspace(joiner.since, until, count + 1).astype(np.int64).tolist()
        ranges = [{"first": a, "last": b} for a, b in pairwise(ends)]
        read = data.from_items(ranges, override_num_blocks=len(ranges)).flat_map(self._read)
        with closing(open_log(self.url, self.folder, is_reader=True)) as log:
            outages = log.outages(after=joiner.since)
        join = partial(_join, outages=outages, reward=joiner.reward)
        found = read.groupby("part").map_groups(join, batch_format="numpy").take_all()
        return joined_range([_decoded(row) for row in found], after=joiner.seq, outages=outages)

    def _read(self, limits: dict[str, Any]) -> Iterator[dict[str, Any]]:
        with closing(open_log(self.url, self.folder, is_reader=True)) as log:
            for event in read_events(log, limits["first"], limits["last"]):
                yield to_row(event, self.workers)


def to_row(event: Event, parts: int) -> dict[str, Any]:
    """Return an event as a row; all of one decision fall to the same part."""
    kind, packed, part = "", b"", event.seq
    if isinstance(event, DecisionMade):
        kind, packed, part = "decision", msgspec.msgpack.encode(event), crc32(event.id.encode())
    elif isinstance(event, RewardCame) and event.status == "counted":
        part = crc32(event.decision.encode())
        kind, packed = "reward", msgspec.msgpack.encode(event)
    elif isinstance(event, TimePassed) and event.outage:
        kind, packed = "tick", msgspec.msgpack.encode(event)
    row = {"seq": event.seq, "at": event.at, "kind": kind, "packed": packed}
    return {"part": part % parts, **row}


def to_event(row: dict[str, Any]) -> Event:
    """Return a row as an event; one that nothing is learned from is time that passed."""
    if row["kind"] == "decision":
        return msgspec.msgpack.decode(row["packed"], type=DecisionMade)
    if row["kind"] == "reward":
        return msgspec.msgpack.decode(row["packed"], type=RewardCame)
    if row["kind"] == "tick":
        return msgspec.msgpack.decode(row["packed"], type=TimePassed)
    return TimePassed(int(row["seq"]), int(row["at"]))


def join_part(
    events: Sequence[Event], outages: Sequence[TimePassed] = (), reward: RewardConfig = PLAIN
) -> list[Joined]:
    """Join all events of some decisions; what is unresolved at their end is ready NEVER.

    The ends of outages are of all parts.
    """
    joiner, until = Joiner(reward), {}
    own = {event.seq for event in events}
    ticks = [tick for tick in outages if tick.seq not in own]
    for event in (*sorted((*events, *ticks), key=lambda one: one.seq), _END):
        joiner.feed(event)
        if isinstance(event, DecisionMade):
            until[event.seq] = event.until
    return [(one, until[one.decision]) for one in joiner.interactions]


def joined_range(
    parts: Sequence[tuple[Numbers, Numbers, list[Joined]]],
    *,
    after: int,
    outages: Sequence[TimePassed] = (),
) -> JoinedRange:
    """Put parts together, and let interactions be ready where they are in the whole log.

    A part does not see the event after which nothing more was waited for: it may be of another.
    """
    if not parts:
        raise LogError("A range of the log needs events: got none. Read the log again.")
    seqs, ats = (np.concatenate([part[number] for part in parts]) for number in (0, 1))
    order = np.argsort(seqs)
    seqs, ats = seqs[order], ats[order]
    every = _ready([one for _, _, joined in parts for one in joined], seqs, ats, outages)
    resolved: dict[int, int] = defaultdict(int)
    for one in every:
        resolved[one.decision] = max(resolved[one.decision], one.ready)
    fresh = sorted(one for one in every if after < one.ready < NEVER)
    is_after = seqs > after
    counts = (np.array(list(of), dtype=np.int64) for of in (resolved.keys(), resolved.values()))
    return JoinedRange(seqs[is_after], ats[is_after], fresh, *counts)


def _ready(
    joined: Sequence[Joined], seqs: Numbers, ats: Numbers, outages: Sequence[TimePassed]
) -> list[Interaction]:
    """Let interactions be ready at the first event after their time, unless they were before."""
    ends = np.array([tick.seq for tick in outages], dtype=np.int64)
    lost = np.cumsum([0, *(tick.outage for tick in outages)])
    made = np.array([one.decision for one, _ in joined], dtype=np.int64)
    untils = np.array([until for _, until in joined], dtype=np.int64)
    passed = ats - lost[np.searchsorted(ends, seqs, side="right")]
    untils -= lost[np.searchsorted(ends, made, side="right")]
    over = np.append(seqs, NEVER)[np.searchsorted(passed, untils, side="right")].tolist()
    return [
        one._replace(ready=min(one.ready, first))
        for (one, _), first in zip(joined, over, strict=True)
    ]


def _join(
    rows: dict[str, Any], *, outages: Sequence[TimePassed], reward: RewardConfig
) -> dict[str, Any]:
    """Join the rows of a part, which Ray passes as columns."""
    order = np.argsort(rows["seq"])
    names = ("seq", "at", "kind", "packed")
    events = [to_event({name: rows[name][n] for name in names}) for n in order]
    joined = msgspec.msgpack.encode(join_part(events, outages, reward))
    return {"seqs": [rows["seq"].tobytes()], "ats": [rows["at"].tobytes()], "joined": [joined]}


def _decoded(row: dict[str, Any]) -> tuple[Numbers, Numbers, list[Joined]]:
    seqs, ats = (np.frombuffer(row[name], dtype=np.int64) for name in ("seqs", "ats"))
    return seqs, ats, msgspec.msgpack.decode(row["joined"], type=list[Joined])
