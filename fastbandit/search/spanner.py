"""Choose among a few arms that span all others, then hop: the arms' volume in place of a model.

The subset is that of `fastbandit.arms.spanner`. It is the same for all contexts, so it costs no
look-up; but it knows nothing of the score, and without hops it never chooses any other arm.
"""

from __future__ import annotations

import torch

from fastbandit.declaration import part, setting
from fastbandit.interfaces import ArmSpace
from fastbandit.score import Choice, Eligible, Score, Seeds
from fastbandit.search.ranking import SearchRun


@part("search", name="spanner")
class SpannerSearch:
    """Scores the `size` arms that span all others, and hops from the `beam` best, `hops` times."""

    size: int = 32
    hops: int = setting(default=4, least=0)
    beam: int = 3

    @torch.no_grad()
    def best(
        self, score: Score, arms: ArmSpace, *, count: int, seeds: Seeds, eligible: Eligible = None
    ) -> Choice:
        run = SearchRun(score, arms, count=count, eligible=eligible)
        ranked = run.rank(run.with_few(arms.spanning(max(self.size, count))))
        return run.choice(run.fill(run.hop(ranked, hops=self.hops, beam=self.beam)))
