"""What every baseline has in common: its arms, its requests and feedback, its counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import InitVar, dataclass
from typing import Any

from fastbandit.arms.requests import ArmTable, Feedback, Request, read_arms, read_context
from fastbandit.features.rewards import RewardKind
from fastbandit.types import Decision, Features, Inputs


@dataclass(kw_only=True, eq=False, repr=False)
class Baseline(ABC):
    """A policy over a table of arms: arms by features or ids, checked requests and feedback.

    Without `context`, any dense, sparse or image contexts are taken.
    """

    arms: InitVar[Any] = None
    ids: InitVar[Iterable[Any] | None] = None
    context: InitVar[int | Features | None] = None
    reward: InitVar[RewardKind] = "real"
    seed: InitVar[int] = 0

    def __post_init__(
        self,
        arms: Any,
        ids: Iterable[Any] | None,
        context: int | Features | None,
        reward: RewardKind,
        seed: int,
    ) -> None:
        table, features = read_arms(arms, ids)
        kind = None if context is None else read_context(context)
        self._table = ArmTable(table, kind, reward, seed)
        self._prepare(features)

    def select(
        self, contexts: Any, *, k: int = 1, eligible: Any = None, explore: bool = True
    ) -> Decision:
        """Choose k eligible arms for each context."""
        request = self._table.read_request(contexts, k=k, eligible=eligible, first=self._decided)
        decision = self._decide(request, explore=explore)
        self._decided += len(decision)
        return decision

    def update(self, *, contexts: Any, arms: Iterable[Any], rewards: Any) -> None:
        """Check what happened, and learn from it if the policy learns."""
        feedback = self._table.read_feedback(contexts=contexts, arms=arms, rewards=rewards)
        if len(feedback.rows):
            self._learn(feedback)

    def _prepare(self, features: Inputs | None) -> None:
        """Check the settings, and make what the policy decides by."""
        self._decided = self._version = 0

    @abstractmethod
    def _decide(self, request: Request, *, explore: bool) -> Decision:
        """Answer a request."""

    def _learn(self, feedback: Feedback) -> None:
        """Take in rewards, of which there is at least one."""
        self._version += 1
