"""Events that stand in a log of an early version, in SQLite as in PostgreSQL."""

from __future__ import annotations

from fastbandit.storage.events import Arm, ArmsChanged, DecisionMade, Event, RewardCame, TimePassed

EVENTS: list[Event] = [
    ArmsChanged([Arm("x", [0.5]), Arm("y", [0.25], {"price": 3})], [], 1, 1000),
    DecisionMade(
        "a",
        context=[0.1, 0.1 + 0.2],
        arms=["x", 7],
        scores=[0.5, 0.25],
        seed=2**63 - 1,
        version=3,
        catalogue=1,
        wait=1000,
        epsilon=0.1,
        propensities=[0.75, 0.25],
        eligible={"price": {"<=": 10}},
        seq=2,
        at=1001,
    ),
    RewardCame("a", 0.1 + 0.2, "x", "", "counted", 3, 1002),
    RewardCame("a", 1.0, 7, "", "counted", 4, 1002),
    RewardCame("nobody", 1.0, None, "", "unknown", 5, 1003),
    TimePassed(6, 1004),
]
