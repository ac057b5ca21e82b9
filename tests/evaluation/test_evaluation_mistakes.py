"""Common mistakes: each message names the field, the value and the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from little_log import (
    EVERY,
    TARGET,
    little_log,
    little_policy,
    uniform_log,
)

from fastbandit.baselines import RandomBandit
from fastbandit.errors import (
    FastbanditError,
    InputError,
    NotFiniteError,
    SettingError,
    ShapeError,
    UnknownArmError,
)
from fastbandit.evaluation import (
    IPS,
    MIPS,
    CrossFit,
    Draws,
    Interval,
    SparsePolicy,
    evaluate,
)

Do = Callable[[], Any]
NAN = float("nan")


def logged(**changes: Any) -> Do:
    return lambda: little_log(**changes)


def judged(policy: Any = None, **settings: Any) -> Do:
    return lambda: evaluate(little_log(), little_policy() if policy is None else policy, **settings)


MISTAKES: dict[str, tuple[Do, type[FastbanditError], str]] = {
    # the policy
    "log and policy swapped": (
        lambda: evaluate(little_policy(), little_log()),  # type: ignore[arg-type]
        InputError,
        r"log first and the policy second: got SparsePolicy as log .* Swap them",
    ),
    "a bandit for a log": (
        lambda: evaluate(RandomBandit(ids=range(3)), "uniform"),  # type: ignore[arg-type]
        InputError,
        r"log first and the policy second: got RandomBandit",
    ),
    "a dict for a log": (
        lambda: evaluate({"action": [0]}, "uniform"),  # type: ignore[arg-type]
        InputError,
        r"LoggedRounds or a path: got dict\. Put your columns into LoggedRounds",
    ),
    "a class for a policy": (judged(RandomBandit), InputError, r"got <class .*RandomBandit"),
    "a name for a policy": (judged("greedy"), InputError, r"or 'uniform': got 'greedy'"),
    "a policy of another log": (
        lambda: evaluate(uniform_log(), little_policy()),
        ShapeError,
        r"rounds and arms of the log, 400 and 8: got 4 rounds and 3 arms",
    ),
    "a policy with other arms": (
        lambda: evaluate(uniform_log(arms=9), _Sized(8)),
        UnknownArmError,
        r"the log has 9, the policy 8\. Give the log arms=",
    ),
    "a fixed arm that the log does not know": (
        lambda: SparsePolicy.fixed(little_log(), "shoes"),
        UnknownArmError,
        r"A fixed arm needs arms that the log knows: .* got 'shoes'",
    ),
    "a candidate beyond the arms": (
        lambda: little_policy(rows=EVERY + 1),
        UnknownArmError,
        r"rows from 0 to 2: got 3\. Give the log all arms",
    ),
    "scores for probabilities": (
        lambda: little_policy(probabilities=TARGET - 1.0),
        InputError,
        r"probabilities need to be at least 0: got -1\. Give probabilities, not scores",
    ),
    "probabilities that do not sum to 1": (
        lambda: little_policy(probabilities=TARGET / 2.0),
        InputError,
        r"sum to 1 in each round: got 0.5 in round 0 \(4 such rounds\)\. .* give the epsilon",
    ),
    "probabilities of another shape": (
        lambda: little_policy(probabilities=TARGET[:, :2]),
        ShapeError,
        r"one shape \(n, k\): got rows of \(4, 3\) and probabilities of \(4, 2\)",
    ),
    "rows and probabilities swapped": (
        lambda: SparsePolicy(TARGET, EVERY, arms=3),
        InputError,
        r"whole numbers: got float64\. The order is SparsePolicy\(rows, probabilities, arms\)",
    ),
    "a function that gives one row": (
        judged(lambda contexts: np.zeros(1, dtype=int)),
        ShapeError,
        r"rows of shape \(4,\) or \(4, k\): got \(1, 1\)",
    ),
    # the settings
    "an unknown estimator": (judged(estimators=["drr"]), SettingError, r"got 'drr'. Did you mean"),
    "a confidence in percent": (
        lambda: Interval(confidence=95),
        SettingError,
        r"got 95\. Use 0\.95",
    ),
    "an unknown interval": (judged(interval="t"), SettingError, r"interval needs .* got 't'"),
    "a clip of zero": (
        lambda: IPS(clip=0.0),
        SettingError,
        r"clip to be .* above 0: got 0\.0\. Change",
    ),
    "no draws": (
        lambda: evaluate(uniform_log(), _Sized(8), draws=0),
        SettingError,
        r"draws needs to be at least 1: got 0",
    ),
    "an epsilon in percent": (
        lambda: Draws(epsilon=5),
        SettingError,
        r"needs to be a probability: got 5",
    ),
    "one fold": (
        judged(model=CrossFit(folds=1)),
        SettingError,
        r"from 2 folds .* got 1\. Use 2 or 3",
    ),
    "an unknown model": (judged(model="forest"), SettingError, r"model of the reward .* 'forest'"),
    "a logistic model of real rewards": (
        judged(model="logistic"),
        InputError,
        r"rewards of 0 and 1: got 0\.5\. Use model='ridge'",
    ),
    "a model of another shape": (
        judged(model=lambda contexts, rows: np.zeros((len(rows), 2))),
        ShapeError,
        r"one number for each context and row, of shape \(4,\): got \(4, 2\)",
    ),
    "a model that says NaN": (
        judged(model=lambda contexts, rows: np.full(len(rows), NAN)),
        NotFiniteError,
        r"model of the reward needs to give finite numbers: got nan",
    ),
    "mips without vectors": (
        judged(estimators=["mips"]),
        InputError,
        r"mips needs vectors of the arms or clusters=: got neither",
    ),
    "a number of clusters without vectors": (
        judged(estimators=MIPS(clusters=2)),
        InputError,
        r"mips needs vectors of the arms or clusters=: got neither\. .* with --arms",
    ),
    "clusters of some arms": (
        judged(estimators=MIPS(clusters=[0, 1])),
        ShapeError,
        r"one number for each of the 3 arms: got shape \(2,\)",
    ),
    "more clusters than arms": (
        lambda: evaluate(
            little_log(vectors=np.eye(3)), little_policy(), estimators=MIPS(clusters=9)
        ),
        SettingError,
        r"from 1 to the 3 arms: got 9",
    ),
}


class _Sized(RandomBandit):
    """A policy that knows how many arms it has."""

    def __init__(self, arms: int) -> None:
        super().__init__(ids=range(arms))
        self._arms = arms

    def __len__(self) -> int:
        return self._arms

    def select(self, contexts: Any, **settings: Any) -> Any:
        from dataclasses import replace

        return replace(super().select(contexts, **settings), uniform=False)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_value_and_its_fix(name: str) -> None:
    do, error, said = MISTAKES[name]

    with pytest.raises(error, match=said):
        do()
