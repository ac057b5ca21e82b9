"""A random bandit stays random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastbandit.baselines import RandomBandit
from fastbandit.demo.synthetic import Synthetic

Make = Callable[..., Any]
WORLD = Synthetic("h1", 3, 40, noise=0.3, seed=1)


def trained(make: Make, *, ids: Any = None, rounds: int = 60, **settings: Any) -> Any:
    bandit = make(arms=WORLD.arms, ids=ids, **settings)
    contexts = WORLD.contexts(0, rounds)
    decision = bandit.select(contexts)
    rewards = WORLD.observed(0, decision.rows[:, 0])
    bandit.update(contexts=contexts, arms=decision.arms, rewards=rewards)
    return bandit


def test_a_random_bandit_stays_random_whatever_it_earns() -> None:
    bandit = trained(RandomBandit)

    assert bandit.select(WORLD.contexts(60, 3)).uniform
    assert bandit.select(WORLD.contexts(60, 3)).version == 1


def test_arms_may_be_ids_alone() -> None:
    decision = RandomBandit(ids=["a", "b"]).select(np.zeros((20, 3)))

    assert set(decision.arms) == {"a", "b"}
