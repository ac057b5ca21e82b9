"""Rows of a database become events again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import json, structs

from fastbandit.storage.event_rows import (
    DECISION_COLUMNS,
    split,
    to_change,
    to_decisions,
    to_events,
    to_reward,
    to_tick,
)
from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, RewardCame, TimePassed

ROW = (
    "a", "[1,0.5]", '["x",7]', "[0.5,0.25]", 9, 3, 1, 1000, -1.0, 1, 0, 0.1, "[0.75,0.25]",
    '{"price":3}', 0, "baseline", "7", '[["x",{"price":3}]]', None, "ann", None, 2, 1001,
)  # fmt: skip


def to_decision(row: Sequence[Any]) -> DecisionMade:
    return to_decisions([row], lambda hashes: [])[0]


def test_columns_are_the_fields_of_a_decision_in_their_order() -> None:
    names = [column.name for column in DECISION_COLUMNS]

    fields = [field.name for field in structs.fields(DecisionMade)]
    assert [*names[:-3], "seq", "at", *names[-3:]] == fields


def test_a_decision_is_read_with_the_types_of_its_fields() -> None:
    made = to_decision(ROW)

    assert [repr(number) for number in made.context] == ["1.0", "0.5"]
    assert (made.adds_up, made.explored, made.degraded) == (True, False, False)
    assert (made.arms, made.other, made.eligible) == (["x", 7], 7, {"price": 3})
    assert (made.offered, made.subject) == ([Arm("x", {"price": 3})], "ann")
    assert (made.seq, made.at, made.until) == (2, 1001, 2001)


def test_a_name_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        to_decision((*ROW[:15], "nobody", *ROW[16:]))
    with pytest.raises(ValueError, match="not in tuple"):
        to_reward(("a", 1.0, None, "", "perhaps", 3, 1002))


def test_other_events_are_read() -> None:
    assert to_reward(("a", 1.0, "7", "p", "late", 3, 5)) == RewardCame(
        "a", 1.0, 7, "p", "late", 3, 5
    )
    assert to_change(('[["x",[0.5]]]', '["y"]', 4, 6)) == ArmsChanged(
        [Arm("x", [0.5])], ["y"], 4, 6
    )
    assert to_tick((3, 5, 7)) == TimePassed(5, 7, 3)


def test_long_eligible_arms_are_taken_out_once_and_short_ones_stay() -> None:
    first = to_decision(ROW)
    arms, same = [f"arm {n}" for n in range(100)], [f"arm {n}" for n in range(100)]
    eligible = [arms, arms, {"price": 3}, None, same]
    made = [structs.replace(first, eligible=one) for one in eligible]

    found = split(made)

    (hash,) = found.lists
    assert json.decode(found.lists[hash]) == arms
    assert found.hashes == [hash, hash, None, None, hash]
    assert [one.eligible for one in found.decisions] == [None, None, {"price": 3}, None, None]


def test_decisions_with_the_same_eligible_arms_share_them() -> None:
    asked = []

    def find(hashes: list[str]) -> list[tuple[str, str]]:
        asked.append(hashes)
        return [(hash, '["x"]') for hash in hashes]

    rows = [(*ROW[:-3], "abc", seq, 1001) for seq in (1, 3, 4)]
    events = to_events([rows, [], [], [(0, 2, 1001)]], 3, find)

    made = [event for event in events if isinstance(event, DecisionMade)]
    assert [event.seq for event in events] == [1, 2, 3]
    assert made[0].eligible == ["x"]
    assert made[0].eligible is made[1].eligible
    assert asked == [["abc"]]
