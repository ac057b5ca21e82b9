"""What a candidate is measured by, and when it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from fakes import vectors_of

from fastbandit import Bandit
from fastbandit.learning.candidate_checks import Checks, check_candidate, losses_of, recall
from fastbandit.learning.joining import Interaction
from fastbandit.policy import Policy
from fastbandit.settings.service import LearnConfig

GOOD = Checks(finite=True, quality=0.95, recall=0.99, held_out=50, loss=0.5)
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
        ({"recall": 0.5}, "share of at least 0.9"),
        ({"worse": 0.3, "standard_error": 0.1}, "2 standard errors: got 0.3 more"),
    ],
)
def test_a_candidate_that_fails_is_refused_with_the_reason(
    changes: dict[str, Any], message: str
) -> None:
    assert message in str(replace(GOOD, **changes).reason(LearnConfig()))


@pytest.mark.parametrize("changes", [{}, {"worse": 0.19, "standard_error": 0.1}])
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

    assert (found.worse, found.standard_error) == (0.0, 0.0)
    assert found.loss is not None
    assert check_candidate(bandit, None, interactions([0.0] * 40), held_out=10).worse is None
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
