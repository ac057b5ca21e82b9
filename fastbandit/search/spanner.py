"""Choose among a few arms that span all others, then hop: the arms' volume in place of a model.

The subset is told in `fastbandit.arms.spanner`. It is the same for all contexts, so it costs no
look-up; but it knows nothing of the score, and without hops it never chooses any other arm.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from fastbandit.declaration import part, setting
from fastbandit.interfaces import ArmSpace
from fastbandit.score import Candidates, Choice, Score, Seeds
from fastbandit.search.limits import FEW
from fastbandit.search.neighbours import hop
from fastbandit.search.ranking import Tally, fill, rank, rerank


@part("search", name="spanner")
class SpannerSearch:
    """Scores the `size` arms that span all others, and hops from the `beam` best, `hops` times."""

    size: int = 32
    hops: int = setting(default=4, least=0)
    beam: int = 3

    @torch.no_grad()
    def best(
        self,
        score: Score,
        arms: ArmSpace,
        *,
        count: int,
        seeds: Seeds,
        eligible: Bool[Tensor, "b N"] | None = None,
    ) -> Choice:
        tally, surrogate = Tally(len(seeds), score.contexts.device), score.by_surrogate()
        candidates = _with_few(arms.spanning(max(self.size, count)), arms, eligible, len(seeds))
        ranked = rank(surrogate, candidates, tally, eligible=eligible)
        ranked = hop(
            surrogate, arms, ranked, tally, hops=self.hops, beam=self.beam, eligible=eligible
        )
        ranked = fill(surrogate, arms, ranked, tally, count=count, eligible=eligible)
        ranked = rerank(score, arms, ranked, tally, count=count, eligible=eligible)
        return ranked.as_choice(count, tally)


def _with_few(
    spanner: Candidates, arms: ArmSpace, eligible: Bool[Tensor, "b N"] | None, contexts: int
) -> Candidates:
    """Repeat the spanner for each context, with all arms of those that are allowed only a few."""
    few = arms.few(eligible, FEW)
    parts = [spanner] if few is None else [spanner, few]
    return Candidates(
        torch.cat([part.rows.expand(contexts, -1) for part in parts], dim=1),
        torch.cat([part.points.expand(contexts, -1, -1) for part in parts], dim=1),
    )
