"""The loop of the bake-off: the same rounds for all, and shares that are known by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from little_sets import ARMS, ROUNDS, Constant, Oracle, stripes, warm

from fastbandit.errors import InputError, SettingError
from lab.bakeoff.play import first_rows, play
from lab.bakeoff.sets import Setting


def test_all_agents_meet_the_same_contexts_and_the_same_first_batch() -> None:
    one, two = Constant(0), Constant(3)

    for agent in (one, two):
        play(Setting(stripes()), agent, rounds=ROUNDS, batch=10)

    for mine, theirs in zip(one.selected, two.selected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(one.updates[0], two.updates[0], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_first_batch_is_drawn_by_the_seed_and_not_by_the_agent() -> None:
    agent = Constant()

    played = play(Setting(stripes(seed=5)), agent, rounds=ROUNDS, batch=10)

    np.testing.assert_array_equal(agent.updates[0][1], first_rows(5, 10, ARMS))
    assert len(agent.selected) == 3
    assert played.decisions == 30


def test_the_first_arms_are_all_equally_likely() -> None:
    rows = first_rows(0, 4000, ARMS)

    np.testing.assert_allclose(np.bincount(rows) / 4000, 1 / ARMS, atol=0.03)
    assert not np.array_equal(rows, first_rows(1, 4000, ARMS))


def test_an_oracle_earns_all_there_is() -> None:
    played = play(warm(stripes()), Oracle(), rounds=ROUNDS, batch=10)

    assert played.share == 1.0
    assert played.last_quarter == 1.0


def test_a_constant_earns_the_share_of_rounds_that_are_its_own() -> None:
    played = play(warm(stripes()), Constant(2), rounds=ROUNDS, batch=10)

    assert played.share == pytest.approx(1 / ARMS)


def test_the_last_quarter_counts_the_last_rounds_alone() -> None:
    environment = stripes()
    right = environment.contexts(30, 10).argmax(axis=1)

    played = play(warm(environment), Constant(1), rounds=ROUNDS, batch=10)

    assert played.last_quarter == pytest.approx((right == 1).mean())


def test_a_log_is_learned_before_the_first_round() -> None:
    agent = Constant()

    play(warm(stripes()), agent, rounds=ROUNDS, batch=10)

    assert [len(arms) for _, arms, _ in agent.updates] == [1, 10, 10, 10]
    assert len(agent.selected) == 4


def test_an_agent_that_can_fit_begins_from_a_log_by_that() -> None:
    class Fitting(Constant):
        fitted = 0

        def fit(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
            self.fitted += len(arms)

    agent = Fitting()
    play(warm(stripes()), agent, rounds=ROUNDS, batch=10)

    assert agent.fitted == 1
    assert len(agent.updates) == 3


def test_the_last_batch_is_not_learned() -> None:
    agent = Constant()

    played = play(Setting(stripes()), agent, rounds=25, batch=10)

    assert [len(arms) for _, arms, _ in agent.updates] == [10, 10]
    assert len(played.rewards) == 25
    assert len(played.update_seconds) == 2


def test_an_agent_that_forgets_a_context_is_refused() -> None:
    class Short(Constant):
        def select(self, contexts: Any, /) -> Any:
            return np.zeros(len(contexts) - 1, dtype=np.int64)

    with pytest.raises(InputError, match=r"one arm for each of 10 contexts.*\(9,\)"):
        play(Setting(stripes()), Short(), rounds=ROUNDS, batch=10)


def test_no_rounds_are_refused() -> None:
    with pytest.raises(SettingError, match="at least 1"):
        play(Setting(stripes()), Constant(), rounds=0, batch=10)
