"""What searches share: landing on real arms, and ranking them."""

from __future__ import annotations

import pytest
import torch
from fakes import catalogue_of, seeds_of, vectors_of
from search_arms import DIM, score_of

from fastbandit import Greedy
from fastbandit.search.gradient_ascent import start_points
from fastbandit.search.ranking import Ranked, SearchRun, Tally, is_repeated


def test_repeated_rows_are_marked_but_for_the_first() -> None:
    rows = torch.tensor([[5, 2, 5, 5, 2], [1, 2, 3, 4, 5]])

    assert is_repeated(rows).tolist() == [[False, False, True, True, True], [False] * 5]


def test_joined_rankings_count_an_arm_once() -> None:
    one = Ranked(torch.tensor([[3, 1]]), torch.zeros(1, 2, 1), torch.tensor([[2.0, 1.0]]))
    two = Ranked(torch.tensor([[1, 4]]), torch.zeros(1, 2, 1), torch.tensor([[1.0, 5.0]]))

    choice = one.joined(two).as_choice(5, Tally(1))

    assert choice.rows.tolist() == [[4, 3, 1, -1, -1]]


@pytest.mark.parametrize("partitions", [1, 3])
def test_landing_scores_what_the_nearest_partitions_hold(partitions: int) -> None:
    arms = catalogue_of(vectors_of(512, DIM))  # partitions of 32, all full
    points, run = start_points(arms, 2, seeds_of(32)), SearchRun(score_of(arms, Greedy()), arms)

    landed = run.land(points, partitions=partitions)

    assert torch.equal(landed.rows, arms.around(points, partitions, eligible=None).rows)
    assert run.tally.evaluations.tolist() == [2 * partitions * 32] * 32
    assert run.tally.lookups.tolist() == [2] * 32


def test_landing_by_neighbours_scores_just_so_many() -> None:
    arms = catalogue_of(vectors_of(512, DIM))
    points, run = start_points(arms, 2, seeds_of(32)), SearchRun(score_of(arms, Greedy()), arms)

    landed = run.land(points, partitions=9, neighbours=3)

    assert torch.equal(landed.rows, arms.nearest(points, 3, eligible=None).rows)
    assert run.tally.evaluations.tolist() == [6] * 32


def test_a_ranking_of_too_few_arms_is_filled_up() -> None:
    arms = catalogue_of(vectors_of(6, DIM))
    run, rows = SearchRun(score_of(arms, Greedy()), arms, count=6), torch.zeros(32, 1).long()
    one = Ranked(rows, arms.at(rows), run.score(arms.at(rows)))

    choice = run.choice(run.fill(one))

    assert choice.rows.sort(dim=1).values.tolist() == [[*range(6)]] * 32
    assert choice.lookups.tolist() == [1] * 32
