"""The floor under every policy: an arm at random."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastbandit.arms.requests import ArmTable, read_arms, read_context
from fastbandit.features.rewards import RewardKind
from fastbandit.types import Decision, Features


class RandomBandit:
    """Every allowed arm is equally likely, for ever; rewards are checked and forgotten.

    There is nothing to be greedy about: `explore` changes nothing. Without `context`, any
    dense, sparse or image contexts are taken.
    """

    def __init__(
        self,
        *,
        arms: Any = None,
        ids: Iterable[Any] | None = None,
        context: int | Features | None = None,
        reward: RewardKind = "real",
        seed: int = 0,
    ) -> None:
        table, _ = read_arms(arms, ids)
        kind = None if context is None else read_context(context)
        self._table = ArmTable(table, kind, reward, seed)
        self._decided = 0
        self._version = 0

    def select(
        self, contexts: Any, *, k: int = 1, eligible: Any = None, explore: bool = True
    ) -> Decision:
        """Draw k different allowed arms for each context."""
        request = self._table.read_request(contexts, k=k, eligible=eligible, first=self._decided)
        decision = self._table.decide_uniformly(request, version=self._version)
        self._decided += len(decision)
        return decision

    def update(self, *, contexts: Any, arms: Iterable[Any], rewards: Any) -> None:
        """Check what happened, and learn nothing from it."""
        feedback = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        self._version += 1 if len(feedback.rows) else 0
