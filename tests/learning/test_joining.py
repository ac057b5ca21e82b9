"""Joined interactions equal those of an oracle that sees the whole log at once."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fastbandit.errors import SnapshotError
from fastbandit.features.kinds import Dense
from fastbandit.features.schema import Schema
from fastbandit.learning.joining import Interaction, Joiner, known, to_arrays, to_numbers
from fastbandit.settings.rewards import RewardConfig
from fastbandit.storage.events import DecisionMade, Event, RewardCame, TimePassed
from fastbandit.storage.snapshot_version import Cut
from fastbandit.storage.sqlite_log import SqliteLog

ARMS = ["a", "b", 1]


def oracle(events: list[Event]) -> list[Interaction]:
    """Join by looking at everything, for each arm of each decision."""
    found = []
    for made in [event for event in events if isinstance(event, DecisionMade)]:
        over = next((event.seq for event in events if event.at > made.until), None)
        for position, arm in enumerate(made.arms):
            came = [event for event in events if isinstance(event, RewardCame)]
            came = [one for one in came if one.status == "counted" and one.decision == made.id]
            came = [one for one in came if one.arm == arm]
            ready = came[0].seq if came and not made.adds_up else over
            reward = sum(one.value for one in came) if came else made.default_reward
            if ready is not None:
                found.append(Interaction(ready, made.seq, position, made.context, arm, reward))
    return sorted(found)


@some.composite
def steps(draw: some.DrawFn) -> list[tuple[int, Event]]:
    """Draw events, each with the time that passes before it."""
    made, found = 0, []
    for _ in range(draw(some.integers(1, 40))):
        kind = draw(some.sampled_from(["decide", "reward", "reward", "pass"]))
        event: Event = TimePassed()
        if kind == "decide":
            event = DecisionMade(
                id=f"d{made}",
                context=[float(made)],
                arms=draw(some.permutations(ARMS))[: draw(some.integers(1, 3))],
                scores=[],
                seed=0,
                version=0,
                catalogue=0,
                wait=draw(some.sampled_from([3, 3, 8])),
                default_reward=draw(some.sampled_from([0.0, -1.0])),
                adds_up=draw(some.booleans()),
            )
            made += 1
        elif kind == "reward":
            event = RewardCame(
                decision=f"d{draw(some.integers(0, max(0, made)))}",
                value=float(draw(some.integers(0, 3))),
                arm=draw(some.sampled_from([None, *ARMS])),
                part=draw(some.sampled_from(["", "x"])),
            )
        found.append((draw(some.integers(0, 4)), event))
    return found


def logged(drawn: list[tuple[int, Event]]) -> list[Event]:
    """Give the events as a log keeps them: numbered, timed, rewards judged."""
    clock = [0]
    with TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "events.db", clock=lambda: clock[0])
        for gap, event in drawn:
            clock[0] += gap
            log.append([event])
        events = log.read()
        log.close()
    return events


def joined(events: list[Event]) -> list[Interaction]:
    joiner = Joiner()
    for event in events:
        joiner.feed(event)
    return joiner.interactions


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(steps(), some.data())
def test_interactions_are_those_of_the_oracle_whether_or_not_one_stops_at_any_cut(
    drawn: list[tuple[int, Event]], data: some.DataObject
) -> None:
    events = logged(drawn)
    joiner, cut, learned = Joiner(), Cut(), []
    for event in events:
        joiner.feed(event)
        if data.draw(some.booleans()):
            count = data.draw(some.integers(0, len(joiner.interactions)))
            learned += joiner.interactions[:count]
            cut = joiner.cut(count)
            again = [one for one in events if cut.since < one.seq <= cut.seq]
            joiner = Joiner.resumed(cut, again)

    assert joined(events) == oracle(events)
    assert learned + joiner.interactions == oracle(events)
    assert cut.interactions == len(learned) == joiner.learned


def decision(**changes: Any) -> DecisionMade:
    terms = {"id": "d", "arms": ["a", "b"], "wait": 10, **changes}
    return DecisionMade(context=[1.0], scores=[], seed=0, version=0, catalogue=0, **terms)


def test_a_joiner_remembers_only_what_is_waited_for() -> None:
    events = logged([(0, decision()), (1, RewardCame("d", 1.0)), (1, RewardCame("d", 1.0, "b"))])
    joiner = Joiner()
    for event in events:
        joiner.feed(event)

    assert not joiner._unresolved
    assert joiner.cut(2) == Cut(seq=3, at=2, since=3, interactions=2, held=0)


def test_a_cut_reaches_back_to_the_oldest_decision_that_waits() -> None:
    events = logged([(0, TimePassed()), (0, decision()), (0, decision(id="e"))])
    joiner = Joiner()
    for event in events:
        joiner.feed(event)

    assert joiner.cut(0) == Cut(seq=3, at=0, since=1, interactions=0, held=0)


@pytest.mark.parametrize("adds_up", [False, True])
def test_an_arm_without_a_reward_gets_the_default_after_its_time(adds_up: bool) -> None:
    events = logged([(0, decision(adds_up=adds_up, default_reward=-2.0)), (11, TimePassed())])

    assert [(pair.arm, pair.reward) for pair in joined(events)] == [("a", -2.0), ("b", -2.0)]


def test_contexts_by_name_are_joined_as_they_came_and_encoded_in_bulk() -> None:
    context = {"age": 31, "country": "DE", "likes": ["jazz"]}
    columns = {"age": "number", "country": {"kind": "category", "levels": ["DE"]}}
    schema = Schema.from_dict({"columns": {**columns, "likes": {"kind": "set"}}})
    made = DecisionMade("one", context, ["a"], [0.0], 1, 1, 0, 10, seq=1, at=1)

    (one,) = joined([made, RewardCame("one", 1.0, status="counted", seq=2, at=2)])
    contexts, arms, rewards = to_arrays([one], Dense.of(schema))

    assert one.context == context
    assert (arms, rewards.tolist()) == (["a"], [1.0])
    assert contexts.tolist() == [schema.encode_one(context).tolist()]


def test_contexts_by_name_need_a_version_with_a_schema() -> None:
    with pytest.raises(SnapshotError, match="schema"):
        to_numbers([{"age": 31}], Dense(2))


def test_an_outage_is_no_time_for_rewards() -> None:
    made = DecisionMade("a", [1.0], ["x"], [0.5], 7, 1, 0, 10, seq=1, at=1)
    came = RewardCame("a", 1.0, "x", status="counted", seq=3, at=101)
    for outage, reward in ((99, 1.0), (0, 0.0)):
        joiner = Joiner()
        for event in (made, TimePassed(2, 100, outage), came):
            joiner.copy().feed(event)
            joiner.feed(event)
        assert [one.reward for one in joiner.interactions] == [reward]


WEIGHED = RewardConfig(kind="real", weights=(("quality", 1.0), ("cost", -2.0)), missing="skip")


def joined_by(config: RewardConfig, events: list[Event]) -> list[Interaction]:
    joiner = Joiner(config)
    for event in events:
        joiner.feed(event)
    return joiner.interactions


def outcomes() -> list[Event]:
    """Return a decision of two arms: of one both outcomes came, of the other the cost alone."""
    came = [("a", "quality", 0.9), ("a", "cost", 0.1), ("b", "cost", 0.3)]
    rewards = [(1, RewardCame("d", value, arm, part)) for arm, part, value in came]
    made = decision(adds_up=True, default_reward=-1.0)
    return logged([(0, made), *rewards, (20, TimePassed())])


def test_outcomes_are_weighed_and_what_lacks_one_is_not_learned() -> None:
    first, second = joined_by(WEIGHED, outcomes())

    assert first.reward == pytest.approx(0.7)
    assert isnan(second.reward)
    assert known([first, second]) == [first]


def test_an_arm_that_lacks_an_outcome_may_get_the_default() -> None:
    config = RewardConfig(kind="real", weights=WEIGHED.weights)

    assert [one.reward for one in joined_by(config, outcomes())] == pytest.approx([0.7, -1.0])


def test_other_weights_change_rewards_and_nothing_else() -> None:
    other = RewardConfig(kind="real", weights=(("cost", -1.0), ("quality", 0.0)))
    one, again = (joined_by(config, outcomes()) for config in (WEIGHED, other))

    assert [found._replace(reward=0.0) for found in one] == [f._replace(reward=0.0) for f in again]
    assert [found.reward for found in again] == pytest.approx([-0.1, -0.3])


def test_a_number_of_a_decision_that_did_not_add_up_counts_as_it_is() -> None:
    events = logged([(0, decision(arms=["a"])), (1, RewardCame("d", 0.4))])

    assert [one.reward for one in joined_by(WEIGHED, events)] == [0.4]


def test_a_decision_without_a_reward_may_be_skipped() -> None:
    events = logged([(0, decision(default_reward=0.0)), (11, TimePassed())])

    found = joined_by(RewardConfig(missing="skip"), events)

    assert len(found) == 2
    assert known(found) == []


def test_no_contexts_have_as_many_numbers_as_any() -> None:
    assert to_numbers([], Dense(3)).shape == (0, 3)
