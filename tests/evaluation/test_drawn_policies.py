"""Bandits and functions become sparse policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from little_log import EVERY, TARGET, little_log, uniform_log

from fastbandit.baselines import RandomBandit
from fastbandit.errors import UnknownArmError
from fastbandit.evaluation import LoggedRounds, evaluate
from fastbandit.evaluation.drawn_policies import Draws, policy_of
from fastbandit.types import Decision

GREEDY = Draws(explore=False)


class Coin:
    """Takes arm 1 or 2, by the parity of the seed, and knows ids if it is given some."""

    def __init__(self, ids: tuple[Any, ...] = (0, 1, 2)) -> None:
        self.ids, self.asked = ids, 0

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, contexts: Any, *, explore: bool = True, seeds: Any) -> Decision:
        self.asked += 1
        rows = np.where(explore, 1 + (seeds % 2).astype(np.int64), 1)
        nothing = np.zeros((len(rows), 1), dtype=np.int64)
        return Decision(
            arms=[self.ids[row] for row in rows],
            rows=rows[:, None],
            scores=nothing.astype(np.float32),
            seeds=seeds,
            version=1,
            uniform=False,
            evaluations=nothing[:, 0],
            lookups=nothing[:, 0],
        )


def test_a_bandit_is_asked_for_as_many_draws_as_named() -> None:
    log, coin = uniform_log(arms=3), Coin()

    _, policy = policy_of(log, coin, draws=Draws(64), seed=1)

    assert coin.asked == 64
    shares = [policy.probability_of(np.full(len(log), arm)).mean() for arm in range(3)]
    assert shares == pytest.approx([0.0, 0.5, 0.5], abs=0.02)


@pytest.mark.parametrize(("rounds", "draws"), [(1, 16), (60_000, 16), (200_000, 5), (10**6, 1)])
def test_many_rounds_are_asked_for_fewer_draws_each(rounds: int, draws: int) -> None:
    assert Draws().a_round(rounds) == draws


def test_one_draw_a_round_is_right_on_average() -> None:
    log = uniform_log(arms=3, count=2_000)

    one, many = (evaluate(log, Coin(), draws=draws) for draws in (1, 64))

    assert one["ips"].low < many["ips"].value < one["ips"].high
    assert one["ips"].high - one["ips"].low > many["ips"].high - many["ips"].low


def test_an_evaluation_says_that_draws_stand_for_the_policy() -> None:
    log = uniform_log(arms=3)

    drawn, greedy = (
        evaluate(log, Coin(), draws=Draws(1, explore=explore)) for explore in (True, False)
    )

    assert any(note.startswith("1 draw a round stands for") for note in drawn.notes)
    assert any(
        note.startswith("the weights that SWITCH cuts are those of these draws")
        for note in drawn.notes
    )
    assert not any("draw" in note for note in greedy.notes)


def test_draws_of_another_seed_are_others() -> None:
    log = uniform_log(arms=3)

    first, second = (policy_of(log, Coin(), draws=Draws(4), seed=seed)[1].rows for seed in (0, 1))

    assert (first != second).any()


def test_a_greedy_policy_is_asked_once() -> None:
    log, coin = uniform_log(arms=3), Coin()

    _, policy = policy_of(log, coin, draws=GREEDY)

    assert coin.asked == 1
    assert policy.probability_of(np.full(len(log), 1)) == pytest.approx(1.0)


def test_arms_are_matched_by_their_ids() -> None:
    log = uniform_log(arms=3, ids=["c", "b", "a"])

    rounds, policy = policy_of(log, Coin(("a", "b", "c")), draws=GREEDY)

    assert rounds.arms == 3
    assert (policy.rows == 1).all()


def test_an_arm_that_was_never_logged_gets_a_row() -> None:
    log = uniform_log(arms=2, ids=["a", "b"])

    rounds, policy = policy_of(log, Coin(("a", "new", "b")), draws=GREEDY)

    assert list(rounds.ids or ()) == ["a", "b", "new"]
    assert (policy.rows == 2).all()


def test_an_arm_without_a_vector_is_rejected() -> None:
    log = uniform_log(arms=2, ids=["a", "b"], vectors=np.ones((2, 1)))

    with pytest.raises(UnknownArmError, match="it chose 'new', which is none of the log's 2"):
        policy_of(log, Coin(("a", "new", "b")), draws=GREEDY)


def test_ids_of_another_kind_are_rejected() -> None:
    log = uniform_log(arms=3, ids=["0", "1", "2"])

    with pytest.raises(UnknownArmError, match="ids of the log's kind, str: it chose 1"):
        policy_of(log, Coin(), draws=GREEDY)


def test_a_policy_that_learned_nothing_is_uniform() -> None:
    log = uniform_log(arms=8)

    _, policy = policy_of(log, RandomBandit(ids=range(8)))

    assert policy.probability_of(log.chosen) == pytest.approx(1 / 8)


def test_a_function_returns_rows() -> None:
    log = little_log()

    _, policy = policy_of(log, lambda contexts: np.zeros(len(contexts), dtype=int))

    assert policy.probability_of(log.chosen) == pytest.approx([1.0, 0.0, 0.0, 1.0])


def test_a_function_returns_rows_and_probabilities_beside_epsilon() -> None:
    log = little_log()

    _, policy = policy_of(log, lambda contexts: (EVERY, TARGET), draws=Draws(epsilon=0.3))

    assert policy.probability_of(log.chosen) == pytest.approx([0.45, 0.66, 0.45, 0.8])


def test_a_frozen_bandit_is_evaluated(frozen_log: tuple[LoggedRounds, Any]) -> None:
    log, frozen = frozen_log

    found, again = (evaluate(log, frozen, draws=Draws(4, epsilon=0.5)) for _ in range(2))

    assert np.isfinite([one.value for one in found.estimates]).all()
    assert found == again


@pytest.fixture(scope="module")
def frozen_log(little_training: None) -> tuple[LoggedRounds, Any]:
    from fastbandit import Bandit

    rng = np.random.default_rng(0)
    vectors, contexts = rng.normal(size=(40, 3)), rng.normal(size=(60, 4))
    bandit = Bandit(arms=vectors, context=4, seed=1)
    taken = bandit.select(contexts)
    rewards = rng.integers(0, 2, 60)
    bandit.update(contexts=contexts, arms=taken.arms, rewards=rewards)
    log = LoggedRounds(contexts, taken.rows[:, 0], rewards, np.full(60, 1 / 40), vectors=vectors)
    return log, bandit.freeze()
