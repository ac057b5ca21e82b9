"""What a model of the reward expects of each round, and of a policy in it, cross-fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fastbandit.declaration import known_name
from fastbandit.errors import InputError, SettingError
from fastbandit.evaluation.reward_models import (
    MODELS,
    FunctionRewards,
    RewardFit,
    RewardFunction,
    RewardsOfArms,
)
from fastbandit.evaluation.rounds import Floats, LoggedRounds, Rows
from fastbandit.evaluation.sparse_policy import CHUNK, SparsePolicy
from fastbandit.progress import Progress, silent


@dataclass(frozen=True)
class CrossFit:
    """A model of the reward that is fitted, and never speaks of rounds that it was fitted to.

    `model` is "ridge" or "logistic". Chernozhukov et al., "Double/debiased machine learning"
    (2018): the model that speaks of one of the `folds` was fitted to the others. `strength` is
    the penalty on its weights; None lets the rounds choose it.
    """

    model: str = "ridge"
    folds: int = 2
    strength: float | None = None

    def __post_init__(self) -> None:
        known_name("model of the reward", self.model, MODELS, or_object=True)


@dataclass(frozen=True, eq=False)
class Expected:
    """`logged` is q(x, a) of the arm that was taken, `of_policy` is Q(x): (n,) each."""

    logged: Floats
    of_policy: Floats


def expect(
    rounds: LoggedRounds,
    policy: SparsePolicy,
    model: CrossFit | RewardFunction,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Expected:
    made = Expected(np.empty(len(rounds)), np.empty(len(rounds)))
    rng = np.random.default_rng(seed)
    done = 0
    for fitted, part in _fitted(rounds, model, seed=seed):
        for start in range(0, len(part), CHUNK):
            progress(done, len(rounds), "reward model")
            some = part[start : start + CHUNK]
            contexts = rounds.contexts[some]
            made.logged[some] = fitted.of(contexts, rounds.chosen[some, None])[:, 0]
            made.of_policy[some] = 0.0
            if policy.rows.shape[1]:
                worth = fitted.of(contexts, np.maximum(policy.rows[some], 0))
                made.of_policy[some] += (policy.probabilities[some] * worth).sum(axis=1)
            if policy.epsilon[some].any():
                made.of_policy[some] += policy.epsilon[some] * fitted.mean(contexts, rng=rng)
            done += len(some)
    return made


def _fitted(
    rounds: LoggedRounds, model: CrossFit | RewardFunction, *, seed: int
) -> Iterator[tuple[RewardsOfArms, Rows]]:
    """Yield models, each with the rounds it may speak of."""
    if not isinstance(model, CrossFit):
        yield FunctionRewards(model, rounds.arms), np.arange(len(rounds))
        return
    folds, count = model.folds, len(rounds)
    if count < 2:
        raise InputError(
            "A model of the reward needs at least 2 rounds: got 1. Give a longer log, or ask for "
            "estimators without one, such as ips."
        )
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= count:
        raise SettingError(
            f"Cross-fitting needs from 2 folds to one for each of the {count} rounds: got "
            f"{folds!r}. Use 2 or 3."
        )
    fit = RewardFit.to(rounds, model.model, strength=model.strength, seed=seed)
    shuffled = np.random.default_rng(seed).permutation(len(rounds))
    parts = [np.sort(part) for part in np.array_split(shuffled, model.folds)]
    for number, part in enumerate(parts):
        others = np.concatenate([other for at, other in enumerate(parts) if at != number])
        yield fit.fit(rounds, others), part
