"""Anything that can happen to a log, in any order, against a ten-line account of the outcome.

Set FASTBANDIT_LOG_RUNS for more than the few runs of every day.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from fastbandit.learning.joining import Joiner
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.memory_log import MemoryLog
from fastbandit.storage.sqlite_log import SqliteLog
from fastbandit.testing.logs import Clock

RUNS = int(os.environ.get("FASTBANDIT_LOG_RUNS", "40"))
IDS = some.sampled_from(["a", "b", "c", "d"])
DECISIONS = some.builds(
    lambda id, arms, wait, adds_up, seed: DecisionMade(
        id, [1.0], arms, [0.0] * len(arms), seed, 0, 0, wait, default_reward=-1.0, adds_up=adds_up
    ),
    IDS,
    some.sampled_from([["x"], ["x", "y"], ["y", 1, "1"]]),
    some.sampled_from([0, 3, 20]),
    some.booleans(),
    some.integers(0, 2**63 - 1),
)
REWARDS = some.builds(
    RewardCame,
    some.sampled_from(["a", "b", "c", "d", "nobody"]),
    some.sampled_from([0.0, 0.25, 1.0]),
    some.sampled_from([None, "x", "y", 1, "1", "z"]),
    some.sampled_from(["", "more"]),
)
CHANGES = some.just(ArmsChanged([Arm("x", [1.0])], ["y"]))
EVENTS = DECISIONS | REWARDS | REWARDS | CHANGES | some.just(TimePassed())

Table = dict[tuple[str, int], float]


def joined(happened: list[tuple[int, Event]]) -> Table:
    """Give the reward of each arm of each decision that has one for good, by their definition."""
    table: Table = {}
    firsts: dict[str, int] = {}
    for start, (made_at, made) in enumerate(happened):
        if not isinstance(made, DecisionMade) or firsts.setdefault(made.id, start) != start:
            continue
        until, later = made_at + made.wait, happened[start + 1 :]
        for position, arm in enumerate(made.arms):
            parts: dict[str, float] = {}
            for at, came in later:
                if isinstance(came, RewardCame) and came.decision == made.id and at <= until:
                    named = made.arms[0] if came.arm is None else came.arm
                    key = came.part if made.adds_up else ""
                    parts |= {key: came.value} if named == arm and key not in parts else {}
            if (parts and not made.adds_up) or any(at > until for at, _ in later):
                table[made.id, position] = sum(parts.values()) if parts else made.default_reward
    return table


def learned(events: Iterable[Event]) -> Table:
    """Give the same from a log, as the learner joins it."""
    joiner, ids = Joiner(), dict[int, str]()
    for event in events:
        joiner.feed(event)
        if isinstance(event, DecisionMade):
            ids[event.seq] = event.id
    pairs = [((ids[pair.decision], pair.position), pair.reward) for pair in joiner.interactions]
    assert len(dict(pairs)) == len(pairs), "a pair comes twice"
    return dict(pairs)


class LogMachine(RuleBasedStateMachine):
    """A log in a file beside one in memory, and a plain list of what happened."""

    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.path = Path(self.home.name) / "events.db"
        self.clock = Clock()
        self.log, self.memory = SqliteLog(self.path, clock=self.clock), MemoryLog(clock=self.clock)
        self.happened: list[tuple[int, Event]] = []

    @rule(events=some.lists(EVENTS, min_size=1, max_size=5))
    def append(self, events: list[Event]) -> None:
        assert self.log.append(events) == self.memory.append(events)
        self.happened += [(self.memory.last_at, event) for event in events]

    @rule(reward=REWARDS)
    def reward(self, reward: RewardCame) -> None:
        self.append([reward])

    @rule(time=some.integers(1, 25))
    def pass_time(self, time: int) -> None:
        self.clock.time += time

    @rule(time=some.integers(1, 50))
    def turn_the_clock_back(self, time: int) -> None:
        self.clock.time -= time

    @precondition(lambda self: self.happened)
    @rule()
    def restart(self) -> None:
        self.log.close()
        self.log = SqliteLog(self.path, clock=self.clock)
        assert (self.log.last, self.log.last_at) == (self.memory.last, self.memory.last_at)

    def teardown(self) -> None:
        events = self.log.read()
        self.log.close()
        self.home.cleanup()
        assert events == self.memory.read()
        assert learned(events) == joined(self.happened)


LogMachine.TestCase.settings = settings(
    max_examples=RUNS, stateful_step_count=30, deadline=None, database=None, derandomize=RUNS == 40
)
TestTheLogEqualsItsAccount = LogMachine.TestCase
