"""Interactions that come one at a time, learned from when enough of them wait."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.bandit import Bandit
from fastbandit.errors import SettingError
from fastbandit.features.kinds import to_floats
from fastbandit.features.rewards import RewardKind, read_rewards
from fastbandit.features.tables import is_named
from fastbandit.learning.schedule import Schedule

_GROWTH = 0.2  # an update learns from all there is: so much more of it is worth one


def numbers_of(contexts: Any, bandit: Bandit) -> Any:
    """Return contexts as numbers; those with names through the schema of a bandit."""
    if is_named(contexts):
        return bandit.blueprint.context.read(contexts, what="contexts").dense
    return to_floats(contexts, what="contexts")


class Waiting:
    """Contexts, arms and rewards that wait; at least `every` are learned from at a time.

    The more was learned, the more wait: so the time spent on updates stays in proportion.
    """

    def __init__(self, every: int, *, reward: RewardKind) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise SettingError(
                f"The number of interactions an update waits for needs to be at least 1: got "
                f"{every!r}. Use 100."
            )
        self._schedule = Schedule(fresh=every, growth=_GROWTH, seconds=math.inf)
        self._kind: RewardKind = reward
        self._contexts: list[NDArray[np.float32]] = []
        self._arms: list[Any] = []
        self._rewards: list[float] = []
        self._learned = 0

    def __len__(self) -> int:
        return len(self._arms)

    def add(self, context: NDArray[np.float32], arm: Any, reward: float) -> None:
        """Store what came of an arm; a reward that could not be learned from is rejected now."""
        (checked,) = read_rewards([reward], kind=self._kind, count=1).tolist()
        self._contexts.append(context)
        self._arms.append(arm)
        self._rewards.append(checked)

    @property
    def is_due(self) -> bool:
        """Whether enough wait for an update."""
        return len(self) >= self._schedule.needed(self._learned)

    def train(self, bandit: Bandit) -> None:
        """Train a bandit on all that waits."""
        if not len(self):
            return
        bandit.update(contexts=np.stack(self._contexts), arms=self._arms, rewards=self._rewards)
        self._learned += len(self)
        self._contexts, self._arms, self._rewards = [], [], []
