"""Hops on the arms' neighbour graph, uphill in score: the last step climbs real arms."""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from fastbandit.interfaces import ArmSpace
from fastbandit.score import Score
from fastbandit.search.ranking import NOTHING, Ranked, Tally, rank


def hop(
    score: Score,
    arms: ArmSpace,
    ranked: Ranked,
    tally: Tally,
    *,
    hops: int,
    beam: int,
    eligible: Bool[Tensor, "b N"] | None,
) -> Ranked:
    """Score the neighbours of the `beam` best arms, `hops` times over, never twice of one."""
    waiting = ranked.scores  # of arms whose neighbours were not looked at
    for _ in range(hops):
        best = waiting.topk(min(beam, waiting.shape[1]), dim=1)
        rows = ranked.rows.gather(1, best.indices)
        beside = arms.neighbours(torch.where(best.values > NOTHING, rows, -1))
        if beside is None:
            return ranked
        known = ranked.rows.shape[1]
        ranked = ranked.joined(rank(score, beside, tally, eligible=eligible))
        waiting = waiting.scatter(1, best.indices, NOTHING)
        waiting = torch.cat([waiting, ranked.scores[:, known:]], dim=1)
    return ranked
