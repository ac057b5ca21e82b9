"""An exhaustive search returns the best arms, however many it scores at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fakes import catalogue_of, seeds_of, vectors_of
from search_arms import CONTEXTS, DIM, score_of

from fastbandit import Exhaustive, Greedy, ThompsonSampling


def test_exhaustive_finds_the_known_best_arms_in_order() -> None:
    arms = catalogue_of(vectors_of(300, DIM))
    score = score_of(arms, Greedy())

    choice = Exhaustive(chunk=37).best(score, arms, count=5, seeds=seeds_of(32))

    distances = torch.cdist(CONTEXTS, torch.from_numpy(vectors_of(300, DIM)))
    assert torch.equal(choice.rows, distances.argsort(dim=1)[:, :5])


@pytest.mark.parametrize("chunk", [1, 7, 300, 10_000])
def test_the_size_of_a_chunk_does_not_matter(chunk: int) -> None:
    arms = catalogue_of(vectors_of(300, DIM))
    score = score_of(arms, ThompsonSampling())

    found = Exhaustive(chunk=chunk).best(score, arms, count=4, seeds=seeds_of(32))
    wanted = Exhaustive().best(score, arms, count=4, seeds=seeds_of(32))

    assert torch.equal(found.rows, wanted.rows)


def test_exhaustive_never_scores_more_than_a_chunk_at_once() -> None:
    arms = catalogue_of(vectors_of(300, DIM))
    score, sizes = score_of(arms, Greedy()), []

    def watched(points: torch.Tensor) -> torch.Tensor:
        sizes.append(points.shape[1])
        return score(points)

    Exhaustive(chunk=64).best(replace(score, function=watched), arms, count=1, seeds=seeds_of(32))

    assert max(sizes) <= 64


def test_arms_that_are_not_eligible_are_left_out() -> None:
    arms = catalogue_of(vectors_of(4, DIM))
    eligible = torch.tensor([[False, True, False, False]])

    choice = Exhaustive(chunk=3).best(
        score_of(arms, Greedy()), arms, count=2, seeds=seeds_of(32), eligible=eligible
    )

    assert choice.rows.tolist() == [[1, -1]] * 32
