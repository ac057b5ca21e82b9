"""Policy: the four parts, and select()."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import torch
from jaxtyping import Bool
from torch import Tensor

from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue
from fastbandit.interfaces import Exploration, RewardModel, Search
from fastbandit.score import Choice, Score, Seeds
from fastbandit.types import Inputs

Arms: TypeAlias = Catalogue | BoxSpace

_CHUNK = 128  # contexts at a time: bounds memory, and keeps most of a batch's speed
_GPU_CHUNK = 65_536  # a GPU wants more at a time


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
        eligible: Bool[Tensor, "b N"] | None = None,
    ) -> Choice:
        """Choose `count` arms for each context; the seeds fix all that is random."""
        if not len(seeds):
            return no_choice(count, self.arms)
        choices = []
        chunk = _CHUNK if self.model.device == "cpu" else _GPU_CHUNK
        for first in range(0, len(seeds), chunk):
            part = slice(first, first + chunk)
            masks = eligible if eligible is None or len(eligible) == 1 else eligible[part]
            score = self.score(contexts.take(part), seeds=seeds[part])
            choices.append(
                self.search.best(score, self.arms, count=count, seeds=seeds[part], eligible=masks)
            )
        return joined(choices)

    def score(self, contexts: Inputs, *, seeds: Seeds) -> Score:
        """Return this decision's score as a function of points of the arm space."""
        embedded = self.model.embed_contexts(contexts)
        score = self.exploration.score(self.model, embedded, seeds=seeds)
        return score.through(self.arms.to_embedding)


def no_choice(count: int, arms: Arms) -> Choice:
    """Return the answer to no contexts at all."""
    dim = arms.dim
    nothing = torch.zeros(0, dtype=torch.int64)
    return Choice(
        nothing.view(0, 1).expand(0, count),
        torch.zeros(0, count, dim),
        torch.zeros(0, count),
        nothing,
        nothing,
    )


def joined(choices: Sequence[Choice]) -> Choice:
    """Put the choices of several batches of contexts together."""
    return Choice(*(torch.cat([getattr(c, f.name) for c in choices]) for f in fields(Choice)))
