"""The state of a bandit: its history, and what a snapshot holds of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.runtime.state import State, check_version
from fastbandit.types import Inputs, Interactions

BANDIT = Bandit(arms=vectors_of(5, 2), context=3, reward="real", search="exhaustive")


def interactions(*rewards: float) -> Interactions:
    count = len(rewards)
    contexts, arms = Inputs(dense=vectors_of(count, 3)), Inputs(dense=vectors_of(count, 2))
    return Interactions(contexts, arms, np.array(rewards, dtype=np.float32))


def state_of(*pending: Interactions, history: Interactions | None = None) -> State:
    return State(BANDIT.policy, history, version=2, decisions=7, pending=pending)


def rewards_of(history: Interactions | None) -> list[float]:
    assert history is not None
    return history.rewards.tolist()


def test_the_whole_history_ends_with_what_was_observed_last() -> None:
    state = state_of(interactions(3), interactions(4, 5), history=interactions(1, 2))

    assert rewards_of(state.whole_history) == [1, 2, 3, 4, 5]


def test_without_an_update_the_whole_history_is_what_was_observed() -> None:
    assert rewards_of(state_of(interactions(3)).whole_history) == [3]
    assert state_of().whole_history is None


def test_a_snapshot_tells_observed_interactions_from_older_ones() -> None:
    state = state_of(interactions(3), interactions(4), history=interactions(1, 2))

    read = State.of(state.saved(BANDIT.blueprint))

    assert rewards_of(read.history) == [1, 2]
    assert [rewards_of(part) for part in read.pending] == [[3, 4]]
    assert (read.version, read.decisions) == (2, 7)


def test_nothing_is_compiled_before_the_first_update() -> None:
    state = replace(state_of(), version=0)

    assert state.compiled_by(BANDIT.blueprint) is state


@pytest.mark.parametrize("version", [0, -1, 1.5, "2", True])
def test_a_version_that_is_no_number_of_an_update_is_refused(version: Any) -> None:
    with pytest.raises(SettingError, match="whole number of at least 1"):
        check_version(version)


def test_a_version_of_numpy_is_a_whole_number() -> None:
    assert check_version(np.int64(3)) == 3
