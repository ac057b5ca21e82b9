"""A log in memory judges rewards as every log does (all its laws: tests/contracts)."""

from __future__ import annotations

from little_exports import WAIT, HandClock, made

from fastbandit.storage.events import DecisionMade, RewardCame
from fastbandit.storage.memory_log import MemoryLog


def test_a_reward_is_of_the_first_arm_unless_one_is_named(clock: HandClock) -> None:
    log = MemoryLog(clock=clock)
    log.append([made("one", ("a", "b")), RewardCame("one", 1.0), RewardCame("one", 2.0, "b")])

    assert [event.arm for event in log.read() if isinstance(event, RewardCame)] == ["a", "b"]


def test_a_reward_after_its_time_is_late(clock: HandClock) -> None:
    log = MemoryLog(clock=clock)
    log.append([made("one")])
    clock.now += WAIT + 1

    (outcome,) = log.append([RewardCame("one", 1.0)])

    assert outcome.status == "late"


def test_what_a_caller_changes_later_is_not_changed_in_the_log(clock: HandClock) -> None:
    log, decision = MemoryLog(clock=clock), made("one")
    log.append([decision])
    decision.context.append(9.0)

    assert [event.context for event in log.read() if isinstance(event, DecisionMade)] == [
        [0.5, 1.5]
    ]
