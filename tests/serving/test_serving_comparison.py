"""What bandit and baseline came to, read from a log: sums by time, and two commands."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from fastbandit.evaluation.shadow_comparison import ComparisonSums, Evidence, evidence_of
from fastbandit.learning.joining import Joiner
from fastbandit.serving.console.comparison import ComparisonTally, read_evidence
from fastbandit.storage.events import DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.sqlite_log import SqliteLog

SECOND = 1_000_000
WAIT = 600 * SECOND
ARMS = ("a", "b", 3)


def decision(number: int, **changes: Any) -> DecisionMade:
    told = {"decided_by": "baseline", "other": "b", "propensities": [0.5], **changes}
    return DecisionMade(f"d{number}", [0.5], ["a"], [0.0], 1, 1, 0, WAIT, **told)


class Random:
    """A log of decisions by either, with rewards that are late, repeated, added up or missing."""

    def __init__(self, folder: Path, numbers: np.random.Generator) -> None:
        self.path, self.now = folder / "events.db", 1_700_000_000 * SECOND
        self._log, self._numbers = SqliteLog(self.path, clock=lambda: self.now), numbers

    def write(self, count: int) -> list[Event]:
        for number in range(count):
            self.now += int(self._numbers.integers(1, 400 * SECOND))
            earlier = int(self._numbers.integers(max(1, number)))
            value = float(self._numbers.integers(3))
            came = RewardCame(f"d{earlier}", value, part=str(self._numbers.integers(2)))
            self._log.append([self._decision(number), came, came])
        events = self._log.read()
        self._log.close()
        return events

    def _decision(self, number: int) -> DecisionMade:
        one, other = (ARMS[int(place)] for place in self._numbers.integers(3, size=2))
        shares: list[Any] = [None, [0.25], [0.5]]
        changes = {
            "propensities": shares[int(self._numbers.integers(3))],
            "other": None if self._numbers.integers(9) == 0 else other,
            "decided_by": ("bandit", "baseline")[int(self._numbers.integers(2))],
            "adds_up": bool(self._numbers.integers(2)),
            "default_reward": 0.5,
        }
        made = decision(number, **changes)
        return DecisionMade(**{**_fields(made), "arms": [one]})


def _fields(made: DecisionMade) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def wanted(events: list[Event], who: str, *, until: int) -> Evidence:
    """Return the evidence of decisions of one, from the rewards that a learner would take."""
    joiner = Joiner()
    for event in [*events, TimePassed(len(events) + 1, until + WAIT + 1)]:
        joiner.feed(event)
    rewards = {pair.decision: pair.reward for pair in joiner.interactions}
    rows: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    for made in events:
        if isinstance(made, DecisionMade) and made.decided_by == who and made.other is not None:
            share = made.propensities[0] if made.propensities else 1.0
            is_match = float(made.arms[0] == made.other)
            rows[made.propensities is not None].append((is_match, share, rewards[made.seq]))
    known, unknown = (
        ComparisonSums.of(*zip(*rows[is_known], strict=True)) for is_known in (True, False)
    )
    return evidence_of(known, _without_weights(unknown), decided_by=who)


def _without_weights(sums: ComparisonSums) -> ComparisonSums:
    return ComparisonSums(n=sums.n, m=sums.m, r=sums.r, mr=sums.mr, rr=sums.rr)


def numbers_of(evidence: Evidence) -> tuple[Any, ...]:
    difference = astuple(evidence.difference) if evidence.difference else ()
    means = (evidence.mean, evidence.agreed, evidence.differed)
    return evidence.count, evidence.known, evidence.matches, *means, *difference


def test_evidence_is_that_of_the_rewards_that_are_learned(
    tmp_path: Path, numbers: np.random.Generator
) -> None:
    log = Random(tmp_path, numbers)
    events = log.write(400)

    found = read_evidence(log.path, minutes=None, now=log.now + 2 * WAIT)

    assert [one.decided_by for one in found] == ["bandit", "baseline"]
    for one in found:
        right = wanted(events, one.decided_by, until=log.now)
        assert numbers_of(one) == pytest.approx(numbers_of(right))
        assert one.pending == 0.0


def test_pieces_may_be_read_in_any_order_and_merged(
    tmp_path: Path, numbers: np.random.Generator
) -> None:
    log = Random(tmp_path, numbers)
    log.write(200)
    connection = apsw.Connection(str(log.path), flags=apsw.SQLITE_OPEN_READONLY)
    tally, whole = ComparisonTally(connection), 600
    for after in numbers.permutation(range(0, whole, 50)).tolist():
        tally.count(after, after + 50, log.now - 3600 * SECOND)
        tally.age(log.now)

    found = tally.evidence(since=0, now=log.now + 2 * WAIT)

    right = read_evidence(log.path, minutes=None, now=log.now + 2 * WAIT)
    for one, other in zip(found, right, strict=True):
        assert numbers_of(one) == pytest.approx(numbers_of(other))
    buckets = connection.execute("SELECT count(*) FROM compared").fetchall()[0][0]
    connection.close()
    assert buckets < 200


def test_decisions_before_the_last_minutes_are_left_out(tmp_path: Path) -> None:
    time = [1_700_000_000 * SECOND]
    log = SqliteLog(tmp_path / "events.db", clock=lambda: time[0])
    log.append([decision(0)])
    time[0] += 3600 * SECOND
    log.append([decision(1), decision(2)])
    log.close()

    (found,) = read_evidence(tmp_path / "events.db", minutes=10, now=time[0])

    assert (found.count, found.pending) == (2, 1.0)
