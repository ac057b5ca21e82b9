"""Events as they are written: lists of values, whose order must stay."""

from __future__ import annotations

from msgspec import json, structs

from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, RewardCame


def test_a_decision_is_a_list_in_the_order_of_before() -> None:
    made = DecisionMade(
        "a", [0.5], ["x"], [1.0], 1, 2, 3, 4, default_reward=-1.0, adds_up=True, epsilon=0.1
    )

    assert json.decode(json.encode(made)) == [
        "a", [0.5], ["x"], [1.0], 1, 2, 3, 4, -1.0, True, True, 0.1, None, None, False, "bandit",
        None, 0, 0, None, None, None,
    ]  # fmt: skip


def test_a_change_is_a_list_in_the_order_of_before() -> None:
    changed = ArmsChanged(upserted=[Arm("x", [0.5])], discarded=["y"], seq=3, at=4)

    assert json.decode(json.encode(changed)) == [[["x", [0.5], None]], ["y"], 3, 4]


def test_a_list_of_an_earlier_version_lacks_the_last_values() -> None:
    assert json.decode('["a",1.0]', type=RewardCame) == RewardCame("a", 1.0)
    made = DecisionMade("a", [0.5], ["x"], [1.0], 1, 2, 3, 4, seq=7, at=8)
    assert json.decode(json.encode([*structs.astuple(made)][:-1]), type=DecisionMade) == made


def test_a_reward_is_late_after_the_time_to_wait() -> None:
    assert DecisionMade("a", [], [], [], 0, 0, 0, wait=10, at=100).until == 110
