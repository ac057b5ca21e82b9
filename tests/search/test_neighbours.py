"""Hops on the neighbour graph."""

from __future__ import annotations

import pytest
import torch
from fakes import catalogue_of, vectors_of
from search_arms import DIM, score_of
from torch import Tensor

from fastbandit import Greedy
from fastbandit.arms.catalogue import Catalogue
from fastbandit.score import Candidates
from fastbandit.search.ranking import Ranked, SearchRun, Tally


def hopped(
    arms: Catalogue, *, hops: int, beam: int, first: int = 1
) -> tuple[Ranked, Tensor, Tally]:
    """Hop from the first few arms, and return the ranking, the arms hopped from, and the costs."""
    asked, beside = [], arms.neighbours

    def watched(self: Catalogue, rows: Tensor) -> Candidates:
        asked.append(rows)
        return beside(rows)

    rows = torch.arange(first).expand(32, -1)
    run = SearchRun(score_of(arms, Greedy()), arms)
    start = Ranked(rows, arms.at(rows), run.score(arms.at(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Catalogue, "neighbours", watched)
        ranked = run.hop(start, hops=hops, beam=beam)
    return ranked, torch.cat(asked, dim=1), run.tally


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
