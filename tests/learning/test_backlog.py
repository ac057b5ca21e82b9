"""A learner that is far behind makes the versions that it would have made event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from little_service import LittleLog, learn_all, little_config, store_of
from test_joining import joined, logged, steps

from fastbandit.cluster.ray_joining import join_part, joined_range, to_event, to_row
from fastbandit.errors import LogError
from fastbandit.learning import learner as learning
from fastbandit.learning.backlog import JoinedRange
from fastbandit.learning.joining import Joiner
from fastbandit.learning.learner import Learner
from fastbandit.learning.schedule import Mark, Schedule
from fastbandit.storage.events import Event
from fastbandit.storage.sqlite_log import SqliteLog


def join_by_parts(
    events: list[Event], joiner: Joiner, *, until: int, parts: int = 3
) -> JoinedRange:
    """Join as many workers would, one part after the other."""
    rows = [to_row(event, parts) for event in events if joiner.since < event.seq <= until]
    found = []
    for part in range(parts):
        own = [row for row in rows if row["part"] == part]
        numbers = (np.array([row[name] for row in own], dtype=np.int64) for name in ("seq", "at"))
        found.append((*numbers, join_part([to_event(row) for row in own])))
    return joined_range(found, after=joiner.seq)


def fed(events: list[Event], until: int) -> Joiner:
    joiner = Joiner()
    for event in events[:until]:
        joiner.feed(event)
    return joiner


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(steps(), some.data())
def test_parts_join_what_one_joins_from_wherever_they_start(
    drawn: Any, data: some.DataObject
) -> None:
    events = logged(drawn)
    first = data.draw(some.integers(0, len(events) - 1))
    middle = data.draw(some.integers(first + 1, len(events)))
    joiner = fed(events, first)
    found = join_by_parts(events, joiner, until=len(events))
    after = found.followed(joiner, middle, lambda after, until: events[after:until])

    assert joiner.interactions + found.interactions == joined(events)
    assert vars(after) == {**vars(fed(events, middle)), "_deadlines": after._deadlines}
    for event in events[middle:]:
        after.feed(event)
    assert after.interactions == joined(events)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(steps(), some.data())
def test_a_version_is_due_where_it_is_event_by_event(drawn: Any, data: some.DataObject) -> None:
    events = logged(drawn)
    schedule = Schedule(data.draw(some.integers(1, 6)), 0.0, data.draw(some.integers(0, 20)) / 1e6)
    joiner = fed(events, data.draw(some.integers(0, len(events) - 1)))
    mark = Mark(joiner.seq, data.draw(some.sampled_from([None, joiner.at])))
    found = join_by_parts(events, joiner, until=len(events))
    mark, due = found.marked(mark), None
    for event in events[joiner.seq :]:
        fresh = sum(mark.seq < pair.ready <= event.seq for pair in joined(events))
        if schedule.is_due(mark, fresh=fresh, learned=0, at=event.at):
            due = event.seq
            break

    assert found.first_due(schedule, mark, joiner) == due


@pytest.mark.slow
def test_a_learner_far_behind_makes_the_same_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = []
    for name in ("event by event", "by parts"):
        folder = tmp_path / name
        folder.mkdir()
        log = LittleLog(folder)
        log.decide(30)
        log.decide(30, features=[0.5, -1.0, 2.0])
        log.let_pass(20)

        def join(joiner: Joiner, *, until: int, folder: Path = folder) -> JoinedRange:
            events = SqliteLog(folder / "events.db", is_reader=True).read()
            return join_by_parts(events, joiner, until=until)

        monkeypatch.setattr(learning, "FAR", 3)
        monkeypatch.setattr(learning, "LONG", 50)
        config = little_config(folder)
        learn_all(Learner(config, join=join if name == "by parts" else None))
        hashes.append([one.hash for one in store_of(config).list()])

    assert len(hashes[0]) == 4
    assert hashes[0] == hashes[1]


def test_a_range_without_events_is_rejected() -> None:
    with pytest.raises(LogError, match="needs events"):
        joined_range([], after=0)
