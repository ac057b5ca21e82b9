"""A learner for experiments of coba: probabilities of actions from repeated posterior draws.

coba draws the action from the probabilities that `predict` returns, so these are exact: no
propensity is estimated. Each arm has the share of the draws in which it was the best, mixed with
a uniform choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.adapters.waiting import Waiting
from fastbandit.bandit import Bandit
from fastbandit.errors import InputError
from fastbandit.features.kinds import to_floats
from fastbandit.features.rewards import RewardKind
from fastbandit.noise.philox import decision_seeds
from fastbandit.runtime.propensity import check_epsilon, propensity_seeds

_APART = 2**32  # the draws of one version are none of another's


class CobaLearner:
    """A `Bandit` in the shape of a coba `Learner`, made when the first actions are seen.

    Actions that are rows of numbers are arms with features; others are known by their ids.
    Actions may come and go. `draws` posterior draws give the probabilities; `update_every` is
    how many interactions an update waits for at first, later a fifth of those learned.
    """

    def __init__(
        self,
        *,
        reward: RewardKind = "real",
        exploration: str = "ts",
        search: str = "exhaustive",
        preset: str = "default",
        draws: int = 100,
        epsilon: float = 0.01,
        update_every: int = 100,
        seed: int = 0,
    ) -> None:
        propensity_seeds(seed, draws)  # raises where the number of draws is wrong
        self._draws, self._epsilon, self._seed = draws, check_epsilon(epsilon), seed
        self._waiting = Waiting(update_every, reward=reward)
        self._new_bandit = partial(
            Bandit,
            reward=reward,
            exploration=exploration,
            search=search,
            preset=preset,
            seed=seed,
            progress=False,
        )
        self.params: dict[str, Any] = {
            "family": "fastbandit",
            **{"reward": reward, "exploration": exploration, "search": search, "preset": preset},
            **{"draws": draws, "epsilon": epsilon, "update_every": update_every, "seed": seed},
        }
        """What coba writes into its table of learners."""
        self._bandit: Bandit | None = None
        self._known: set[Hashable] = set()

    def predict(self, context: Any, actions: Sequence[Any]) -> dict[str, list[float]]:
        """Return the probability of each action, in their order."""
        return {"pmf": self._probabilities(context, actions)}

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """Return the probability of one action."""
        ids = [_id_of(one) for one in actions]
        return self._probabilities(context, actions)[ids.index(_id_of(action))]

    def learn(self, context: Any, action: Any, reward: float, probability: float | None) -> None:
        """Learn from a reward, once enough of them wait."""
        row = _row_of(context)
        bandit = self._bandit_for(row, [action])
        self._waiting.add(row, _id_of(action), reward)
        if self._waiting.is_due:
            self._waiting.train(bandit)

    def _probabilities(self, context: Any, actions: Sequence[Any]) -> list[float]:
        row, ids = _row_of(context), [_id_of(action) for action in actions]
        bandit = self._bandit_for(row, actions)
        if bandit.version == 0:
            return [1 / len(ids)] * len(ids)
        seeds = decision_seeds(self._seed, _APART * bandit.version, self._draws)
        drawn = bandit.select(np.tile(row, (self._draws, 1)), eligible=ids, seeds=seeds)
        counts = Counter(list[Any](drawn.arms))
        even = self._epsilon / len(ids)
        return [(1 - self._epsilon) * counts[id] / self._draws + even for id in ids]

    def _bandit_for(self, row: NDArray[np.float32], actions: Sequence[Any]) -> Bandit:
        """Return the bandit, made or grown so that it knows all of the actions."""
        fresh = {id: action for action in actions if (id := _id_of(action)) not in self._known}
        if fresh:
            features = _features_of(fresh.values())
            if self._bandit is None:
                self._bandit = self._new_bandit(arms=features, ids=list(fresh), context=len(row))
            else:
                self._bandit.add_arms(features, ids=list(fresh))
            self._known |= fresh.keys()
        assert self._bandit is not None
        return self._bandit


def _row_of(context: Any) -> NDArray[np.float32]:
    """Read a context of coba: nothing, one number, or a row of numbers."""
    if context is None:
        return np.ones(1, dtype=np.float32)
    if isinstance(context, Mapping) or hasattr(context, "keys"):
        raise InputError(
            "A context needs to be a row of numbers: got a mapping of names. Make sparse features "
            "dense with Environments.dense(...), and others numbers with Schema.infer and encode."
        )
    numbers = context if _is_row(context) else [context]
    return to_floats([list(numbers)], what="contexts")[0]


def _id_of(action: Any) -> Hashable:
    if isinstance(action, Mapping):
        return tuple(sorted(action.items()))
    id: Hashable = tuple(action) if _is_row(action) else action
    return id


def _features_of(actions: Any) -> NDArray[np.float32] | None:
    """Return rows of features where actions have them."""
    if not all(map(_is_row, actions)):
        return None
    return to_floats([list(action) for action in actions], what="actions")


def _is_row(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)
