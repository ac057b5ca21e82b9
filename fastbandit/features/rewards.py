"""The kinds of rewards, how raw rewards are read, and how outcomes are combined into one."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import RewardError, SettingError, ShapeError
from fastbandit.features.kinds import to_floats
from fastbandit.features.tables import is_named, table_of

RewardKind = Literal["binary", "real"]
Weights = tuple[tuple[str, float], ...]
"""How much each outcome counts in a reward, by name; none where rewards come as numbers."""
Outcomes = Mapping[str, NDArray[np.float32]]
"""What came of interactions, by name; NaN where that is not known."""


def check_reward_kind(kind: str) -> None:
    """Raise unless the kind of rewards is one we know."""
    if kind not in get_args(RewardKind):
        raise SettingError(
            f"Rewards need to be 'binary' or 'real': got {kind!r}. Use 'binary' for 0 and 1, "
            f"'real' for any other numbers."
        )


def read_rewards(raw: Any, *, kind: RewardKind, count: int) -> NDArray[np.float32]:
    """Turn raw rewards into `count` finite numbers, for binary rewards each 0 or 1."""
    check_reward_kind(kind)
    rewards = to_floats(raw, what="rewards")
    if rewards.shape != (count,):
        raise ShapeError(
            f"The rewards need shape ({count},), one for each context: got {rewards.shape}. "
            f"Leave out the contexts whose reward is not known."
        )
    wrong = np.flatnonzero((kind == "binary") & (rewards != 0) & (rewards != 1))
    if len(wrong):
        raise RewardError(
            f"Binary rewards need to be 0 or 1: got {rewards[wrong[0]]} in row {wrong[0]} "
            f"({len(wrong)} such rows). Use reward='real' for other numbers."
        )
    return rewards


# -- rewards that are a combination of outcomes


def read_reward_kind(reward: Any) -> tuple[RewardKind, Weights]:
    """Return the kind of rewards, and the weights of outcomes where those are given instead."""
    if isinstance(reward, Mapping):
        return "real", read_weights(reward)
    check_reward_kind(reward)
    return reward, ()


def reweighted(before: Weights, weights: Mapping[str, float]) -> Weights:
    """Return weights of before with others in their place; those not named stay."""
    if not before:
        raise SettingError(
            "Only a reward that is a combination of outcomes has weights: this one is a number. "
            'Build the bandit with weights, such as reward={"quality": 1.0, "cost": -0.5}.'
        )
    return tuple({**dict(before), **dict(read_weights(weights))}.items())


def read_weights(raw: Mapping[str, float]) -> Weights:
    """Return weights of outcomes, if they are some."""
    wrong = [name for name, weight in raw.items() if not _is_weight(name, weight)]
    if wrong or not raw:
        got = f"{wrong[0]!r}: {raw[wrong[0]]!r}" if wrong else "none"
        raise SettingError(
            f"Weights of outcomes need names and finite numbers: got {got}. Write for example "
            f'{{"quality": 1.0, "cost": -0.5}}.'
        )
    return tuple((name, float(weight)) for name, weight in raw.items())


def read_outcomes(raw: Any, *, count: int) -> dict[str, NDArray[np.float32]]:
    """Turn columns by name into outcomes of `count` interactions; None and NaN are not known."""
    if not is_named(raw):
        raise RewardError(
            f"Rewards that are combined of outcomes need these by name: got "
            f"{type(raw).__name__}. Give a dict of lists or a frame, such as "
            f'{{"quality": [0.8], "cost": [0.002]}}.'
        )
    table = table_of(raw, what="outcomes")
    if table.rows != count:
        raise ShapeError(
            f"Outcomes need {count} rows, one for each context: got {table.rows}. Write None for "
            f"an outcome that is not known."
        )
    return {name: _read_outcome(table.values(name), name) for name in table.names}


def combined(outcomes: Outcomes, weights: Weights, *, count: int) -> NDArray[np.float32]:
    """Return rewards: outcomes by their weights, NaN where one that counts is not known."""
    rewards = np.zeros(count)
    for name, weight in weights:
        if weight:
            rewards += weight * np.asarray(outcomes.get(name, np.nan), dtype=np.float64)
    return rewards.astype(np.float32)


def _is_weight(name: Any, weight: Any) -> bool:
    is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    return isinstance(name, str) and name != "" and is_number and isfinite(weight)


def _read_outcome(raw: Any, name: str) -> NDArray[np.float32]:
    listed = [np.nan if one is None else one for one in raw]
    try:
        values = np.array(listed, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        values = np.array([np.inf])
    if values.ndim != 1 or np.isinf(values).any():
        raise RewardError(
            f"The outcome {name!r} needs finite numbers: got {listed[:3]}. Write None where one is "
            f"not known."
        )
    return values
