"""Hops on the arms' neighbour graph, uphill in score: the last step climbs real arms."""

from __future__ import annotations

from jaxtyping import Bool
from torch import Tensor

from fastbandit.interfaces import ArmSpace, Score
from fastbandit.search.ranking import Ranked, Tally, rank


def hop(
    score: Score,
    arms: ArmSpace,
    ranked: Ranked,
    tally: Tally,
    *,
    hops: int,
    beam: int,
    allowed: Bool[Tensor, "b N"] | None,
) -> Ranked:
    """Score the neighbours of the `beam` best arms, `hops` times over."""
    for _ in range(hops):
        beside = arms.neighbours(ranked.best(beam).rows)
        if beside is None:
            return ranked
        ranked = ranked.joined(rank(score, beside, tally, allowed=allowed))
    return ranked
