"""What a candidate is measured by, and when it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from fakes import vectors_of

from fastbandit import Bandit
from fastbandit.learning.candidate_checks import (
    FEWEST,
    Checks,
    Comparison,
    check_candidate,
    losses_of,
    recall,
)
from fastbandit.learning.joining import Interaction
from fastbandit.policy import Policy
from fastbandit.settings.service import LearnConfig

GOOD = Checks(finite=True, quality=0.95, recall=0.99, held_out=50, loss=0.5)
WORSE = Comparison(loss=0.4, difference=0.1, low=0.05, high=0.15)
CONTEXTS, ARMS = vectors_of(40, 2, seed=1), vectors_of(300, 3, seed=2)


@pytest.fixture(scope="module")
def bandit(little_training: None) -> Bandit:
    bandit = Bandit(arms=ARMS, context=2, reward="real")
    bandit.update(contexts=CONTEXTS, arms=list(range(40)), rewards=CONTEXTS[:, 0])
    return bandit


def interactions(rewards: Any) -> list[Interaction]:
    three = zip(CONTEXTS.tolist(), range(40), rewards, strict=True)
    return [
        Interaction(n, n, 0, context, arm, reward) for n, (context, arm, reward) in enumerate(three)
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"finite": False}, "finite"),
        ({"quality": 0.89}, "quality q of at least 0.9: got 0.890"),
        ({"quality": float("nan")}, "quality"),
        ({"in_service": WORSE}, "that of the version in service: got 0.5 beside 0.4"),
        ({"constant": WORSE}, "that of a constant, the mean reward: got"),
        ({"popularity": WORSE}, "a difference between 0.05 and 0.15 (95 %)"),
    ],
)
def test_a_candidate_that_fails_is_refused_with_the_reason(
    changes: dict[str, Any], message: str
) -> None:
    assert message in str(replace(GOOD, **changes).reason(LearnConfig()))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"recall": 0.1},
        {"in_service": Comparison(0.4, 0.1, -0.01, 0.21)},
        {"held_out": FEWEST - 1, "constant": WORSE},
    ],
)
def test_a_candidate_that_is_no_worse_beyond_noise_may_serve(changes: dict[str, Any]) -> None:
    assert replace(GOOD, **changes).reason(LearnConfig()) is None


def test_numbers_that_are_not_finite_can_be_written_down() -> None:
    assert replace(GOOD, quality=float("nan")).notes()["quality"] is None


def test_a_model_is_compared_with_its_parent_on_interactions_it_has_not_seen(
    bandit: Bandit,
) -> None:
    found = check_candidate(
        bandit, bandit.policy, interactions(CONTEXTS[:, 0].tolist()), held_out=10
    )

    assert found.loss is not None
    assert found.in_service == Comparison(found.loss, 0.0, 0.0, 0.0)
    assert check_candidate(bandit, None, interactions([0.0] * 40), held_out=10).in_service is None
    assert check_candidate(bandit, bandit.policy, interactions([0.0] * 40), held_out=0).loss is None


def test_weights_that_are_not_finite_are_seen(bandit: Bandit) -> None:
    broken = Bandit.__new__(Bandit)
    broken.__dict__.update(bandit.__dict__)
    model = type(bandit.policy.model).__new__(type(bandit.policy.model))
    model.__dict__.update(bandit.policy.model.__dict__)
    policy: Policy = replace(bandit.policy, model=model)
    model._buffers = {**model._buffers, "reward_shift": torch.tensor(float("nan"))}
    broken._state = replace(bandit._state, policy=policy)

    assert not check_candidate(broken, None, interactions([0.0] * 40), held_out=0).finite


def test_losses_are_squared_errors_of_the_mean(bandit: Bandit) -> None:
    quiet = bandit.select(CONTEXTS, eligible=[[n] for n in range(40)], explore=False)
    losses = losses_of(bandit, bandit.policy, interactions([0.0] * 40))

    assert losses == pytest.approx(np.square(quiet.scores[:, 0]), rel=1e-4, abs=1e-6)


def test_losses_of_binary_rewards_are_log_losses(little_training: None) -> None:
    bandit = Bandit(arms=ARMS, context=2)
    rewards = [float(n % 2) for n in range(40)]
    bandit.update(contexts=CONTEXTS, arms=list(range(40)), rewards=rewards)
    chance = bandit.select(CONTEXTS, eligible=[[n] for n in range(40)], explore=False).scores[:, 0]
    expected = -np.log(np.where(np.array(rewards) == 1, chance, 1 - chance))

    found = losses_of(bandit, bandit.policy, interactions(rewards))

    assert found == pytest.approx(expected, rel=1e-4)


def test_the_index_of_a_few_hundred_arms_finds_nearly_all_neighbours(bandit: Bandit) -> None:
    assert 0.9 < recall(bandit.policy) <= 1


def test_an_interval_is_that_of_paired_differences() -> None:
    losses = np.arange(100.0)
    found = Comparison.of(losses + np.tile([0.0, 2.0], 50), losses)

    assert (found.loss, found.difference) == (49.5, 1.0)
    assert found.high - 1.0 == pytest.approx(1.0 - found.low)
    assert found.high - 1.0 == pytest.approx(1.984 * np.std([0.0, 2.0] * 50, ddof=1) / 10, rel=1e-3)


def test_a_model_is_compared_with_the_mean_reward_and_each_arms(bandit: Bandit) -> None:
    """What it learned were the first numbers of contexts, for an arm each."""
    rewards = [3.0] * 40
    found = check_candidate(bandit, None, interactions(rewards), held_out=10)
    mean = float(CONTEXTS[:, 0].mean())

    assert found.constant is not None
    assert found.popularity is not None
    assert found.constant.loss == pytest.approx((3.0 - mean) ** 2, rel=1e-4)
    assert found.popularity.loss != found.constant.loss
    assert found.loss == pytest.approx(found.constant.loss + found.constant.difference)


def test_a_model_far_from_the_rewards_is_refused_for_the_constant(bandit: Bandit) -> None:
    """The rewards are the mean of what was learned, which the model does not predict."""
    mean = float(CONTEXTS[:, 0].mean())
    found = check_candidate(bandit, None, interactions([mean] * 40), held_out=30)

    reason = replace(found, quality=1.0).reason(LearnConfig())
    assert "that of a constant" in str(reason)
