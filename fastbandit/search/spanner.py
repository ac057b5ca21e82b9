"""Choose among a few arms that span all others, then hop: the arms' volume in place of a model.

The subset is told in `fastbandit.arms.spanner`. It is the same for all contexts, so it costs no
look-up; but it knows nothing of the score, and without hops it never chooses any other arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from fastbandit.interfaces import ArmSpace, Candidates, Choice, Score, Seeds
from fastbandit.ranges import check_fields
from fastbandit.search.limits import FEW
from fastbandit.search.neighbours import hop
from fastbandit.search.ranking import Tally, fill, rank, settle


@dataclass(frozen=True)
class SpannerSearch:
    """Scores the `size` arms that span all others, and hops from the `beam` best, `hops` times."""

    size: int = 32
    hops: int = 4
    beam: int = 3

    def __post_init__(self) -> None:
        check_fields(self)

    @torch.no_grad()
    def best(
        self,
        score: Score,
        arms: ArmSpace,
        *,
        count: int,
        seeds: Seeds,
        allowed: Bool[Tensor, "b N"] | None = None,
    ) -> Choice:
        tally, guess = Tally(len(seeds), score.contexts.device), score.guessed()
        candidates = _with_few(arms.spanning(max(self.size, count)), arms, allowed, len(seeds))
        ranked = rank(guess, candidates, tally, allowed=allowed)
        ranked = hop(guess, arms, ranked, tally, hops=self.hops, beam=self.beam, allowed=allowed)
        ranked = fill(guess, arms, ranked, tally, count=count, allowed=allowed)
        ranked = settle(score, arms, ranked, tally, count=count, allowed=allowed)
        return ranked.as_choice(count, tally)


def _with_few(
    spanner: Candidates, arms: ArmSpace, allowed: Bool[Tensor, "b N"] | None, contexts: int
) -> Candidates:
    """Repeat the spanner for each context, with all arms of those that are allowed only a few."""
    few = arms.few(allowed, FEW)
    parts = [spanner] if few is None else [spanner, few]
    return Candidates(
        torch.cat([part.rows.expand(contexts, -1) for part in parts], dim=1),
        torch.cat([part.points.expand(contexts, -1, -1) for part in parts], dim=1),
    )
