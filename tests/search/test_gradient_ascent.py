"""A search by gradient ascent, and the climbs that it is made of."""

from __future__ import annotations

import pytest
import torch
from fakes import catalogue_of, seeds_of, vectors_of
from search_arms import CONTEXTS, DIM, box, gap_of, score_of

from fastbandit import GradientAscent, Greedy, ThompsonSampling
from fastbandit.interfaces import Exploration
from fastbandit.search.gradient_ascent import best_points, climb, slope_of, start_points
from fastbandit.search.ranking import Tally


@pytest.mark.parametrize("exploration", [Greedy(), ThompsonSampling()])
@pytest.mark.parametrize("count", [1_000, 6_000])
def test_an_ascent_comes_close_to_the_best_arm(count: int, exploration: Exploration) -> None:
    arms = catalogue_of(vectors_of(count, DIM))

    gap = gap_of(GradientAscent(), score_of(arms, exploration), arms)

    assert gap.min() >= -1e-5
    assert gap.mean() < 0.02


def test_an_ascent_in_a_box_comes_close_to_the_best_point() -> None:
    arms = box()

    found = GradientAscent().best(score_of(arms, Greedy()), arms, count=1, seeds=seeds_of(32))

    assert found.scores.max() <= 1e-6  # the best point scores 0
    assert found.scores.mean() > -0.05


def test_enough_partitions_are_looked_into_for_all_the_arms_wanted() -> None:
    arms = catalogue_of(vectors_of(3_000, DIM))
    search = GradientAscent(starts=1, steps=1, partitions=1, hops=0)

    choice = search.best(score_of(arms, Greedy()), arms, count=100, seeds=seeds_of(32))

    assert (choice.rows >= 0).all()
    assert choice.lookups.tolist() == [1] * 32  # none to fill up


def test_a_climb_never_leaves_the_box_and_ends_higher() -> None:
    arms = box()
    score = score_of(arms, Greedy())
    starts = start_points(arms, 4, seeds_of(32))

    ends = climb(score, starts, arms, Tally(32), steps=30, step_size=0.25)

    assert (score(ends) >= score(starts) - 1e-3).all()
    assert (ends >= arms.low).all()
    assert (ends <= arms.high).all()


def test_a_climb_that_is_high_enough_stands_still() -> None:
    arms = box()
    score = score_of(arms, Greedy())
    starts = start_points(arms, 4, seeds_of(32))

    ends = climb(score, starts, arms, Tally(32), steps=5, step_size=0.5, enough=-1e9)

    assert torch.equal(ends, starts)


def test_slopes_are_those_of_the_bowl_and_cost_two() -> None:
    arms = catalogue_of(vectors_of(50, DIM))
    score = score_of(arms, Greedy())
    points, tally = torch.from_numpy(vectors_of(32 * 2, DIM)).view(32, 2, DIM), Tally(32)

    scores, slopes = slope_of(score, points, tally)

    toward = CONTEXTS[:, None] - arms.to_embedding(points)
    assert torch.allclose(scores, -toward.square().sum(-1), atol=1e-4)
    assert torch.allclose(slopes, 2 * toward @ arms.to_embedding.axes.T, atol=1e-3)
    assert tally.evaluations.tolist() == [4] * 32


def test_starts_come_from_each_decisions_own_seed() -> None:
    arms = box()

    whole = start_points(arms, 3, seeds_of(8))

    assert torch.equal(start_points(arms, 3, seeds_of(8)[5:6]), whole[5:6])


def test_the_points_with_the_highest_score_come_first() -> None:
    arms = box()
    points = torch.tensor([[[1.0] * DIM, [0.0] * DIM, [0.5] * DIM]]).expand(32, -1, -1)
    score, tally = score_of(arms, Greedy()), Tally(32)

    best = best_points(score, points, 2, tally)

    assert torch.equal(score(best), score(points).sort(dim=1, descending=True).values[:, :2])
    assert tally.evaluations.tolist() == [3] * 32
