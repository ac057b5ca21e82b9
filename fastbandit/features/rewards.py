"""The kinds of rewards, and how raw rewards are read."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import RewardError, SettingError, ShapeError
from fastbandit.features.kinds import to_floats

RewardKind = Literal["binary", "real"]


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
