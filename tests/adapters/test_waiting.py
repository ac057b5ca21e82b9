"""Interactions wait until there are enough of them to train on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.adapters.waiting import Waiting
from fastbandit.errors import RewardError, SettingError


class Recorder:
    """Counts what it is trained on."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        self.sizes.append(len(rewards))


def fill(waiting: Waiting, count: int) -> None:
    for _ in range(count):
        waiting.add(np.zeros(2, dtype=np.float32), "a", 1.0)


def test_an_update_is_due_when_enough_wait() -> None:
    waiting = Waiting(3, reward="real")
    fill(waiting, 2)
    assert not waiting.is_due

    fill(waiting, 1)

    assert waiting.is_due


def test_the_more_was_learned_the_more_wait() -> None:
    waiting, bandit = Waiting(2, reward="real"), Recorder()
    fill(waiting, 100)
    waiting.train(bandit)  # type: ignore[arg-type]
    fill(waiting, 19)
    assert not waiting.is_due

    fill(waiting, 1)

    assert waiting.is_due
    assert bandit.sizes == [100]


def test_nothing_is_trained_on_twice() -> None:
    waiting, bandit = Waiting(1, reward="real"), Recorder()
    fill(waiting, 1)

    waiting.train(bandit)  # type: ignore[arg-type]
    waiting.train(bandit)  # type: ignore[arg-type]

    assert bandit.sizes == [1]


def test_a_reward_of_another_kind_is_rejected_at_once() -> None:
    with pytest.raises(RewardError):
        Waiting(1, reward="binary").add(np.zeros(2, dtype=np.float32), "a", 0.5)


@pytest.mark.parametrize("every", [0, True, 1.5])
def test_an_update_waits_for_at_least_one_interaction(every: Any) -> None:
    with pytest.raises(SettingError, match="needs to be at least 1: got"):
        Waiting(every, reward="real")
