"""Searches and indexes agree on the numbers that they share."""

from __future__ import annotations

from dataclasses import replace

import torch
from fakes import catalogue_of, seeds_of, vectors_of
from search_arms import DIM, score_of

from fastbandit import Greedy
from fastbandit.search.gradient_ascent import start_points
from fastbandit.search.limits import FEW, RERANKED
from fastbandit.search.ranking import Ranked, SearchRun


def scored_of(eligible_count: int) -> int:
    """Return how many eligible arms a context has scored after it landed from one point."""
    arms = catalogue_of(vectors_of(FEW + 500, DIM))
    eligible = (torch.arange(FEW + 500) < eligible_count)[None]
    run = SearchRun(score_of(arms, Greedy()), arms, eligible=eligible)
    ranked = run.land(start_points(arms, 1, seeds_of(32)))
    return int((ranked.scores > float("-inf")).sum(1).min())


def test_a_few_eligible_arms_are_all_scored() -> None:
    assert scored_of(FEW) == FEW


def test_more_eligible_arms_are_looked_up() -> None:
    assert scored_of(FEW + 1) < FEW


def test_so_many_arms_are_scored_again_where_there_is_a_surrogate() -> None:
    arms = catalogue_of(vectors_of(30, DIM))
    score = score_of(arms, Greedy())
    rows = torch.arange(30).expand(32, -1)
    ranked = Ranked(rows, arms.at(rows), rows.float())

    run = SearchRun(replace(score, surrogate=score.function), arms)

    again = run.rerank(ranked)

    assert again.rows[0].tolist() == [*range(29, 29 - RERANKED, -1)]
    assert torch.allclose(again.scores, score(again.points))
    assert run.tally.evaluations.tolist() == [RERANKED] * 32
