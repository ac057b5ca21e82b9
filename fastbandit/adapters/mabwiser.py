"""The calls of MABWiser's `MAB`: decisions, rewards and contexts in, arms and expectations out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import list_ids
from fastbandit.bandit import Bandit
from fastbandit.errors import InputError, SettingError, UnknownArmError
from fastbandit.features.kinds import to_floats
from fastbandit.features.rewards import RewardKind
from fastbandit.features.tables import Table, is_named, table_of

_MOST_NUMBERS = 10_000_000


class MabwiserBandit:
    """A `Bandit` with the methods of MABWiser's `MAB`.

    `arm_to_features` maps each arm to a row of numbers, through which arms learn from one
    another; without it each arm has an embedding of its own. Contexts in a frame go by the names
    of its columns. Without any there is one context, the same for all. Unlike there,
    `predict_expectations` returns expected rewards, whatever the exploration.
    """

    def __init__(
        self,
        arms: Iterable[Any],
        *,
        arm_to_features: Mapping[Any, Any] | None = None,
        reward: RewardKind = "binary",
        exploration: str = "ts",
        search: str = "generator",
        preset: str = "default",
        seed: int = 0,
    ) -> None:
        self.arms: list[Any] = list_ids(arms)
        self._features = None if arm_to_features is None else dict(arm_to_features)
        self._new_bandit = partial(
            Bandit,
            ids=self.arms,
            reward=reward,
            exploration=exploration,
            search=search,
            preset=preset,
            seed=seed,
        )
        self._bandit: Bandit | None = None
        self._rows_of(self.arms)  # raises where an arm has no features

    # -- learning

    def fit(self, decisions: Any, rewards: Any, contexts: Any = None) -> None:
        """Learn anew from decisions, their rewards and contexts."""
        self._bandit = self._fitted(None, decisions, rewards, contexts)

    def partial_fit(self, decisions: Any, rewards: Any, contexts: Any = None) -> None:
        """Learn from more decisions, with all that came before."""
        self._bandit = self._fitted(self._bandit, decisions, rewards, contexts)

    def _fitted(self, bandit: Bandit | None, decisions: Any, rewards: Any, contexts: Any) -> Bandit:
        decisions = _listed(decisions)
        rows = _rows(contexts, count=len(decisions))
        if bandit is None:
            context = rows if isinstance(rows, Table) else rows.shape[1]
            bandit = self._new_bandit(arms=self._rows_of(self.arms), context=context)
        bandit.update(contexts=rows, arms=decisions, rewards=_listed(rewards))
        return bandit

    # -- deciding

    def predict(self, contexts: Any = None) -> Any:
        """Choose an arm for each context: a list, or the arm itself where there is one context."""
        arms = self._trained().select(_rows(contexts, count=1)).arms
        return arms[0] if len(arms) == 1 else arms

    def predict_expectations(self, contexts: Any = None) -> Any:
        """Return the expected reward of every arm: a dictionary for each context, or only one.

        Scores all arms, so it is meant for few.
        """
        rows, bandit = _rows(contexts, count=1), self._trained()
        count = rows.rows if isinstance(rows, Table) else len(rows)
        if count * len(self.arms) > _MOST_NUMBERS:
            raise SettingError(
                f"Expectations of all arms need at most {_MOST_NUMBERS:,} numbers: got "
                f"{count:,} contexts times {len(self.arms):,} arms. Ask for fewer contexts, "
                f"or use predict()."
            )
        found = bandit.select(rows, k=max(2, len(self.arms)), explore=False)
        both = zip(found.arms, found.scores.tolist(), strict=True)
        expected = [dict(zip(arms, scores, strict=False)) for arms, scores in both]
        in_order = [{arm: found[arm] for arm in self.arms} for found in expected]
        return in_order[0] if len(in_order) == 1 else in_order

    # -- arms

    def add_arm(self, arm: Hashable, *, features: Any = None) -> None:
        """Let one more arm be chosen; where arms have features, it needs some."""
        if arm in self.arms:
            raise InputError(
                f"A new arm needs an id of its own: got {arm!r}, which is there. Leave it out."
            )
        if features is not None and self._features is None:
            raise InputError(
                f"These arms have no features: got some for {arm!r}. Leave them out, or give "
                f"arm_to_features for all arms."
            )
        if self._features is not None and features is not None:
            self._features[arm] = features
        row = self._rows_of([arm])
        if self._bandit is not None:
            self._bandit.add_arms(row, ids=[arm])
        self.arms.append(arm)

    def remove_arm(self, arm: Hashable) -> None:
        """Never choose this arm again."""
        if arm not in self.arms:
            raise UnknownArmError(
                f"Only an arm that is there can be removed: got {arm!r}. Correct its id."
            )
        if self._bandit is not None:
            self._bandit.discard_arms([arm])
        self.arms.remove(arm)

    # -- the bandit

    @property
    def bandit(self) -> Bandit | None:
        """The bandit inside, None before the first fit."""
        return self._bandit

    def _trained(self) -> Bandit:
        if self._bandit is None:
            raise SettingError(
                "A prediction needs something learned: got none. Call fit() or partial_fit() first."
            )
        return self._bandit

    def _rows_of(self, arms: list[Any]) -> NDArray[np.float32] | None:
        if self._features is None:
            return None
        missing = [arm for arm in arms if arm not in self._features]
        if missing:
            raise InputError(
                f"Each arm needs features where arms have some: got none for {missing[0]!r}. Add "
                f"them."
            )
        return to_floats([self._features[arm] for arm in arms], what="arm features")


def _rows(contexts: Any, *, count: int) -> NDArray[np.float32] | Table:
    """Read contexts: by name, a row for each, one row alone, or none at all."""
    if contexts is None:
        return np.ones((count, 1), dtype=np.float32)
    if is_named(contexts):
        return table_of(contexts, what="contexts")
    rows = to_floats(contexts, what="contexts")
    return rows[None] if rows.ndim == 1 else rows


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)
