"""Bandits whose networks are about as they begin, which is enough to compare decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from fakes import vectors_of

from fastbandit import Bandit, Dense, FeaturesAndIds, Ids, Sparse
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.training.fit_reward import RewardFit
from fastbandit.training.update import Training

COUNT = 24
CONTEXTS = vectors_of(COUNT, 4, seed=2)
REWARDS = CONTEXTS[:, 0] + CONTEXTS[:, 1] ** 2
FEW = vectors_of(150, 5, seed=1)
WORDS = scipy.sparse.random(COUNT, 30, density=0.2, random_state=3, format="csr")
NUMBERS = np.arange(COUNT) % 9
CONTEXT_KINDS: dict[str, tuple[Any, Any]] = {
    "dense": (4, CONTEXTS),
    "sparse": (Sparse(30), WORDS),
    "ids": (Ids(9), NUMBERS),
    "dense with ids": (FeaturesAndIds(Dense(4), Ids(9)), (CONTEXTS, NUMBERS)),
    "sparse with ids": (FeaturesAndIds(Sparse(30), Ids(9)), (WORDS, NUMBERS)),
}
HARDLY_ANY = Training(
    reward=RewardFit(iterations=8, batch=24),
    generator=GeneratorFit(iterations=8, batch=32, targets=64, sample=32),
)


def trained(contexts: Any = CONTEXTS, **changes: Any) -> Bandit:
    """Return a bandit after one short update."""
    bandit = Bandit(**{"arms": FEW, "context": 4, "reward": "real", "seed": 3, **changes})
    arms = bandit.select(contexts).arms
    rewards = REWARDS > 0 if changes.get("reward") == "binary" else REWARDS
    bandit.update(contexts=contexts, arms=arms, rewards=rewards)
    return bandit
