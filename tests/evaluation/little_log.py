"""Four rounds among three arms, small enough to be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbandit.evaluation import LoggedRounds, SparsePolicy

CONTEXTS = np.array([[0.0], [1.0], [2.0], [3.0]])
CHOSEN = [0, 1, 2, 0]
REWARDS = [1.0, 0.0, 1.0, 0.5]
PROPENSITIES = [1 / 2, 1 / 4, 1 / 5, 1 / 2]
TARGET = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
LOGGING = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.4, 0.4, 0.2], [0.5, 0.3, 0.2]])
MODEL = np.array([[0.6, 0.5, 0.1], [0.2, 0.4, 0.3], [0.1, 0.9, 0.8], [0.5, 0.2, 0.7]])
EVERY = np.tile(np.arange(3), (4, 1))


def little_log(**changes: Any) -> LoggedRounds:
    told = {
        "contexts": CONTEXTS,
        "chosen": CHOSEN,
        "rewards": REWARDS,
        "propensities": PROPENSITIES,
        "arms": 3,
        **changes,
    }
    return LoggedRounds(**told)


def little_policy(**changes: Any) -> SparsePolicy:
    return SparsePolicy(**{"rows": EVERY, "probabilities": TARGET, "arms": 3, **changes})


def model(contexts: Any, rows: Any) -> Any:
    """Tell the rewards of the table above; a context is its own row."""
    return MODEL[contexts[:, 0].astype(int), rows]


def uniform_log(count: int = 400, arms: int = 8, seed: int = 0, **changes: Any) -> LoggedRounds:
    """Make a log in which every arm was equally likely, and arm 3 is the best by far."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, arms, count)
    chances = np.where(chosen == 3, 0.9, 0.2)
    told = {
        "contexts": rng.normal(size=(count, 4)),
        "chosen": chosen,
        "rewards": rng.random(count) < chances,
        "propensities": np.full(count, 1 / arms),
        "arms": arms,
        **changes,
    }
    return LoggedRounds(**told)
