"""A replay counts only rounds in which the policy and the log agree, and is unbiased."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fastbandit.baselines import BestArmBandit, RandomBandit
from fastbandit.errors import InputError, SettingError
from fastbandit.features.kinds import Dense
from fastbandit.types import Decision, Inputs
from lab.experiments.logged import LoggedData
from lab.experiments.replay import Replayed, replay, wilson

WORTH = np.array([0.2, 0.5, 0.8])


def log_of(shares: list[float], *, rounds: int = 6_000, is_known: bool = True) -> LoggedData:
    numbers = np.random.default_rng(2)
    chosen = numbers.choice(len(shares), size=rounds, p=shares)
    return LoggedData(
        name="little",
        context=Dense(1),
        contexts=Inputs(dense=np.arange(rounds, dtype=np.float32)[:, None]),
        size=len(shares),
        chosen=chosen,
        rewards=(numbers.random(rounds) < WORTH[chosen]).astype(float),
        propensities=np.array(shares)[chosen] if is_known else None,
        ids=[f"arm {row}" for row in range(len(shares))],
    )


UNIFORM = [1 / 3] * 3


class Always:
    """Takes the arms of a pattern by the number of the round, and records its updates."""

    def __init__(self, pattern: Any) -> None:
        self.pattern = np.asarray(pattern)
        self.updates: list[tuple[Any, Any, Any]] = []

    def select(self, contexts: Any, /) -> Decision:
        rows = self.pattern[contexts[:, 0].astype(int) % len(self.pattern)]
        nothing = np.zeros(len(rows), dtype=np.int64)
        return Decision(
            arms=[f"arm {row}" for row in rows],
            rows=rows[:, None],
            scores=np.zeros((len(rows), 1), dtype=np.float32),
            seeds=nothing.astype(np.uint64),
            version=0,
            uniform=False,
            evaluations=nothing,
            lookups=nothing,
        )

    def update(self, *, contexts: Any, arms: Any, rewards: Any) -> None:
        self.updates.append((contexts, arms, rewards))


def test_only_matches_count_and_only_they_are_learned_from() -> None:
    log, agent = log_of(UNIFORM, rounds=30), Always([1])

    replayed = replay(log, agent, batch=10)

    matches = log.chosen == 1
    assert replayed.matches == matches.sum()
    assert np.array_equal(replayed.rewards, log.rewards[matches])
    assert np.array_equal(
        np.concatenate([c for c, _, _ in agent.updates])[:, 0], np.flatnonzero(matches)
    )
    assert {arm for _, arms, _ in agent.updates for arm in arms} == {"arm 1"}
    assert np.array_equal(np.concatenate([r for _, _, r in agent.updates]), replayed.rewards)


@pytest.mark.parametrize("row", [0, 1, 2])
def test_the_mean_of_a_replay_is_what_the_policy_is_worth(row: int) -> None:
    replayed = replay(log_of(UNIFORM), Always([row]), batch=1_000)

    assert replayed.interval is not None
    low, high = replayed.interval
    assert replayed.mean == pytest.approx(WORTH[row], abs=0.04)
    assert low < WORTH[row] < high


def test_an_uneven_log_is_made_uniform_by_its_propensities() -> None:
    log = log_of([0.1, 0.2, 0.7])

    replayed = replay(log, Always([0, 1, 2]), batch=1_000)

    assert replayed.accepted == pytest.approx(0.3 * len(log), rel=0.1)
    assert replayed.mean == pytest.approx(0.5, abs=0.07)
    by_row = [replay(log, Always([row]), batch=1_000).matches for row in range(3)]
    assert max(by_row) < 1.2 * min(by_row)


def test_an_uneven_log_without_propensities_is_refused() -> None:
    with pytest.raises(InputError, match=r"arm in row 2 was taken \d+ times in 6000 rounds"):
        replay(log_of([0.1, 0.2, 0.7], is_known=False), Always([0]), batch=100)


def test_an_even_log_needs_no_propensities() -> None:
    with_propensities, without = (log_of(UNIFORM, is_known=is_known) for is_known in (True, False))

    one, two = (replay(log, Always([0]), batch=500) for log in (with_propensities, without))

    assert np.array_equal(one.rewards, two.rewards)


def test_propensities_that_leave_next_to_nothing_are_refused() -> None:
    log = log_of(UNIFORM, rounds=300)
    rare = log.propensities.copy()  # type: ignore[union-attr]
    rare[0] = 1e-6

    with pytest.raises(InputError, match=r"propensities differ by a factor of 333,333"):
        replay(replace(log, propensities=rare), Always([0]), batch=100)


def test_a_batch_without_a_match_changes_nothing() -> None:
    log, agent = log_of(UNIFORM, rounds=6), Always([0])
    log = replace(log, chosen=np.array([1, 1, 0, 2, 1, 0]))

    replayed = replay(log, agent, batch=2)

    assert replayed.batch_matches.tolist() == [0, 1, 1]
    assert len(agent.updates) == 2
    assert replayed.curve[0] is None
    assert replayed.curve[2] == replayed.mean


def test_passes_go_over_the_log_again() -> None:
    log = log_of(UNIFORM, rounds=30)

    once, twice = (replay(log, Always([1]), batch=7, passes=passes) for passes in (1, 2))

    assert twice.matches == 2 * once.matches
    assert (once.offered, twice.offered) == (30, 60)


def test_a_policy_that_learns_beats_random_choices_on_a_log() -> None:
    log = log_of(UNIFORM)
    ids = list(log.ids or ())

    learned = replay(log, BestArmBandit(ids=ids, reward="binary"), batch=300)
    random = replay(log, RandomBandit(ids=ids, reward="binary"), batch=300)

    assert learned.mean is not None
    assert random.mean is not None
    assert learned.mean > random.mean + 0.15


def test_wilson_gives_the_values_worked_out_by_hand() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_real_rewards_have_a_normal_interval() -> None:
    replayed = Replayed(np.array([1.0, 2.0, 3.0]), np.array([3]), 3, 3, "real")

    assert replayed.interval == pytest.approx((2 - 1.96 / 3**0.5, 2 + 1.96 / 3**0.5), abs=1e-3)


def test_no_matches_leave_the_mean_unknown() -> None:
    nothing = Replayed(np.zeros(0), np.array([0]), 3, 3, "real")

    assert (nothing.mean, nothing.interval, nothing.curve) == (None, None, [None])


@pytest.mark.parametrize(("batch", "passes"), [(0, 1), (1, 0)])
def test_batch_and_passes_are_at_least_one(batch: int, passes: int) -> None:
    with pytest.raises(SettingError, match=f"got batch={batch} and passes={passes}"):
        replay(log_of(UNIFORM, rounds=3), Always([0]), batch=batch, passes=passes)
