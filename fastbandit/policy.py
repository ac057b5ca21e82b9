"""Policy: the four parts, and select()."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool
from torch import Tensor

from fastbandit.arms.box import Box
from fastbandit.arms.catalogue import Catalogue
from fastbandit.interfaces import Choice, Exploration, RewardModel, Score, Search, Seeds
from fastbandit.types import Inputs

Arms: TypeAlias = Catalogue | Box


@dataclass(frozen=True)
class Policy:
    """Which arm, for this context? A model, an exploration, a search and the arms."""

    model: RewardModel
    exploration: Exploration
    search: Search
    arms: Arms

    @torch.no_grad()
    def select(
        self,
        contexts: Inputs,
        *,
        seeds: Seeds,
        count: int = 1,
        allowed: Bool[Tensor, "B N"] | None = None,
    ) -> Choice:
        """Choose `count` arms for each context; the seeds fix all that is random."""
        score = self.score(contexts, seeds=seeds)
        return self.search.best(score, self.arms, count=count, seeds=seeds, allowed=allowed)

    def score(self, contexts: Inputs, *, seeds: Seeds) -> Score:
        """Give this decision's score as a function of points of the arm space."""
        embedded = self.model.embed_contexts(contexts)
        score = self.exploration.score(self.model, embedded, seeds=seeds)
        return score.through(self.arms.place)
