"""Searches against the exact answer, judged by their gap."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from fakes import BowlReward, catalogue_of, seeds_of, vectors_of
from torch import Tensor

from fastbandit import Box, Exhaustive, GeneratorSearch, GradientAscent, Greedy, ThompsonSampling
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.catalogue import Catalogue
from fastbandit.errors import SettingError
from fastbandit.interfaces import ArmSpace, Exploration, Search, SearchFit
from fastbandit.score import Candidates, Score
from fastbandit.search.fit_generator import GeneratorFit
from fastbandit.search.gradient_ascent import climb, slope_of, start_points
from fastbandit.search.neighbours import hop
from fastbandit.search.ranking import Ranked, Tally, is_repeated, land
from fastbandit.types import Inputs

DIM = 3
CONTEXTS = torch.from_numpy(vectors_of(32, DIM, seed=4))


def score_of(arms: ArmSpace, exploration: Exploration) -> Score:
    score = exploration.score(BowlReward(DIM), CONTEXTS, seeds=seeds_of(32))
    return score.through(arms.to_embedding)


def box() -> BoxSpace:
    space = BoxSpace(Box([-3.0] * DIM, [3.0] * DIM, cover=2_000))
    return space.embedded_by(lambda values: values, device="cpu")


def trained(arms: ArmSpace, exploration: Exploration) -> Search:
    some = GeneratorFit(iterations=250, batch=128, targets=1024, sample=256)
    contexts = Inputs(dense=vectors_of(200, DIM, seed=5))
    rng = torch.Generator().manual_seed(1)
    search = GeneratorSearch()
    task = SearchFit(BowlReward(DIM), exploration, arms, contexts, some, rng)
    return search.fit(task, before=search)


@pytest.mark.parametrize("exploration", [Greedy(), ThompsonSampling()])
@pytest.mark.parametrize("count", [1_000, 6_000])
@pytest.mark.parametrize("name", ["ascent", "generator"])
def test_search_comes_close_to_the_best_arm(
    name: str, count: int, exploration: Exploration
) -> None:
    arms = catalogue_of(vectors_of(count, DIM))
    score = score_of(arms, exploration)
    search = GradientAscent() if name == "ascent" else trained(arms, exploration)

    found = search.best(score, arms, count=1, seeds=seeds_of(32))
    exact = Exhaustive().best(score, arms, count=1, seeds=seeds_of(32))

    gap = exact.scores - found.scores
    assert gap.min() >= -1e-5
    assert gap.mean() < 0.02


@pytest.mark.parametrize("name", ["ascent", "generator"])
def test_search_in_a_box_comes_close_to_the_best_point(name: str) -> None:
    arms = box()
    score = score_of(arms, Greedy())
    search = GradientAscent() if name == "ascent" else trained(arms, Greedy())

    found = search.best(score, arms, count=1, seeds=seeds_of(32))

    assert found.scores.max() <= 1e-6  # the best point scores 0
    assert found.scores.mean() > -0.05


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


def test_a_climb_never_goes_far_and_ends_higher() -> None:
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


def test_a_generator_search_without_a_generator_says_what_to_do() -> None:
    arms = catalogue_of(vectors_of(50, DIM))

    with pytest.raises(SettingError, match="trained generator"):
        GeneratorSearch().best(score_of(arms, Greedy()), arms, count=1, seeds=seeds_of(32))


def test_repeated_rows_are_marked_but_for_the_first() -> None:
    rows = torch.tensor([[5, 2, 5, 5, 2], [1, 2, 3, 4, 5]])

    assert is_repeated(rows).tolist() == [[False, False, True, True, True], [False] * 5]


def test_joined_rankings_count_an_arm_once() -> None:
    one = Ranked(torch.tensor([[3, 1]]), torch.zeros(1, 2, 1), torch.tensor([[2.0, 1.0]]))
    two = Ranked(torch.tensor([[1, 4]]), torch.zeros(1, 2, 1), torch.tensor([[1.0, 5.0]]))

    choice = one.joined(two).as_choice(5, Tally(1))

    assert choice.rows.tolist() == [[4, 3, 1, -1, -1]]


# -- landing on real arms


@pytest.mark.parametrize("partitions", [1, 3])
def test_landing_scores_what_the_nearest_cells_hold(partitions: int) -> None:
    arms = catalogue_of(vectors_of(512, DIM))  # cells of 32, all full
    points, tally = start_points(arms, 2, seeds_of(32)), Tally(32)

    landed = land(
        score_of(arms, Greedy()),
        arms,
        points,
        tally,
        partitions=partitions,
        neighbours=0,
        eligible=None,
    )

    assert torch.equal(landed.rows, arms.around(points, partitions, eligible=None).rows)
    assert tally.evaluations.tolist() == [2 * partitions * 32] * 32
    assert tally.lookups.tolist() == [2] * 32


def test_landing_by_neighbours_scores_just_so_many() -> None:
    arms = catalogue_of(vectors_of(512, DIM))
    points, tally = start_points(arms, 2, seeds_of(32)), Tally(32)

    landed = land(
        score_of(arms, Greedy()), arms, points, tally, partitions=9, neighbours=3, eligible=None
    )

    assert torch.equal(landed.rows, arms.nearest(points, 3, eligible=None).rows)
    assert tally.evaluations.tolist() == [6] * 32


def test_enough_cells_are_looked_into_for_all_the_arms_wanted() -> None:
    arms = catalogue_of(vectors_of(3_000, DIM))
    search = GradientAscent(starts=1, steps=1, partitions=1, hops=0)

    choice = search.best(score_of(arms, Greedy()), arms, count=100, seeds=seeds_of(32))

    assert (choice.rows >= 0).all()
    assert choice.lookups.tolist() == [1] * 32  # none to fill up


# -- hops


def hopped(
    arms: Catalogue, *, hops: int, beam: int, first: int = 1
) -> tuple[Ranked, Tensor, Tally]:
    """Hop from the first few arms, and give the ranking, the arms hopped from, and the costs."""
    asked, beside, tally = [], arms.neighbours, Tally(32)

    def watched(self: Catalogue, rows: Tensor) -> Candidates:
        asked.append(rows)
        return beside(rows)

    rows = torch.arange(first).expand(32, -1)
    score = score_of(arms, Greedy())
    start = Ranked(rows, arms.at(rows), score(arms.at(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Catalogue, "neighbours", watched)
        ranked = hop(score, arms, start, tally, hops=hops, beam=beam, eligible=None)
    return ranked, torch.cat(asked, dim=1), tally


@pytest.mark.parametrize(("hops", "beam"), [(4, 4), (12, 1)])
def test_hops_never_start_twice_from_an_arm(hops: int, beam: int) -> None:
    _, asked, _ = hopped(catalogue_of(vectors_of(300, DIM)), hops=hops, beam=beam, first=4)

    taken = [row[row >= 0].tolist() for row in asked]
    assert all(len(set(row)) == len(row) == hops * beam for row in taken)


def test_hops_start_from_the_best_arm_that_they_have_not_started_from() -> None:
    arms = catalogue_of(vectors_of(300, DIM))
    before, asked, _ = hopped(arms, hops=3, beam=1)
    scores = before.scores.masked_fill((before.rows[..., None] == asked[:, None]).any(-1), -1e9)

    _, further, _ = hopped(arms, hops=4, beam=1)

    best = before.rows.gather(1, scores.argmax(1, keepdim=True))
    assert torch.equal(further[:, 3:], best)


def test_a_beam_is_as_wide_as_it_can_be_after_each_hop() -> None:
    _, asked, _ = hopped(catalogue_of(vectors_of(300, DIM)), hops=3, beam=4, first=1)

    assert ((asked >= 0).sum(1) == 1 + 4 + 4).all()


def test_many_hops_see_every_arm_of_a_small_catalogue_and_end() -> None:
    arms = catalogue_of(vectors_of(17, DIM))  # every arm beside every other

    ranked, asked, tally = hopped(arms, hops=9, beam=4, first=4)

    assert all(sorted(row[row >= 0].tolist()) == list(range(17)) for row in asked)
    assert ((ranked.scores > float("-inf")).sum(1) == 17).all()
    assert tally.evaluations.tolist() == [17 * 16] * 32


def test_an_arm_alone_has_nowhere_to_hop() -> None:
    ranked, _, tally = hopped(catalogue_of(vectors_of(1, DIM)), hops=2, beam=3)

    assert ranked.as_choice(2, Tally(32)).rows.tolist() == [[0, -1]] * 32
    assert tally.evaluations.tolist() == [0] * 32
