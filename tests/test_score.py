"""A score is a function of arms, with what they have beside their points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from fakes import BowlReward
from torch import Tensor

from fastbandit.score import Affine, Candidates, Score

CONTEXTS = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
POINTS = torch.tensor([[[0.0, 0.0], [1.0, 1.0]]])
BOWL = BowlReward(2).mean(CONTEXTS)
SCALED = Affine(torch.tensor([1.0, 0.0]), 2 * torch.eye(2))


@dataclass
class TenOfRow1:
    """An own part of 10 for row 1."""

    def __call__(self, rows: Tensor) -> Tensor:
        return torch.where(rows == 1, 10.0, 0.0).expand(2, -1)


class Listed(TenOfRow1):
    """The same part, its best arm listed."""

    def best(self) -> tuple[Tensor, Tensor]:
        return torch.ones(2, 1, dtype=torch.int64), torch.full((2, 1), 10.0)


class Parabola:
    """Minus the square of the first number; its slope is said to be 7, to be seen."""

    def __call__(self, arms: Tensor) -> Tensor:
        return -arms[..., 0].square()

    def slope(self, arms: Tensor) -> tuple[Tensor, Tensor]:
        return self(arms), torch.full_like(arms, 7.0)


class Sum:
    """The sum of an arm's numbers; a map that is folded into it is remembered."""

    def __init__(self, affine: Affine | None = None) -> None:
        self.affine = affine

    def __call__(self, arms: Tensor) -> Tensor:
        return (arms if self.affine is None else self.affine(arms)).sum(-1).expand(2, -1)

    def through(self, affine: Affine) -> Sum:
        return Sum(affine)


def test_an_affine_map_is_its_centre_and_points_times_axes() -> None:
    assert SCALED(POINTS).tolist() == [[[1.0, 0.0], [3.0, 2.0]]]


def test_real_arms_have_their_own_part_beside_that_of_the_point() -> None:
    candidates = Candidates(torch.tensor([[0, 1]]), POINTS)

    plain, both = BOWL.of(candidates), replace(BOWL, own=TenOfRow1()).of(candidates)

    assert plain.tolist() == [[-1.0, -1.0], [-4.0, -2.0]]
    assert (both - plain).tolist() == [[0.0, 10.0], [0.0, 10.0]]


def test_a_slope_points_to_the_middle_of_a_bowl() -> None:
    scores, slopes = BOWL.slope(POINTS.expand(2, -1, -1))

    assert torch.equal(scores, BOWL(POINTS))
    assert torch.equal(slopes, 2 * (CONTEXTS[:, None] - POINTS))


def test_a_function_that_knows_its_slope_is_asked_for_it() -> None:
    score = Score(Parabola(), CONTEXTS, CONTEXTS[:, :0])

    assert (score.slope(POINTS.expand(2, -1, -1))[1] == 7.0).all()


def test_a_search_finds_its_way_by_the_surrogate_where_there_is_one() -> None:
    dear = replace(BOWL, surrogate=Sum())

    assert torch.equal(dear.by_surrogate()(POINTS), Sum()(POINTS))
    assert dear.by_surrogate().surrogate is None
    assert torch.equal(BOWL.by_surrogate()(POINTS), BOWL(POINTS))


def test_own_parts_that_are_listed_are_left_out_on_the_way() -> None:
    listed, plain = (replace(BOWL, own=own) for own in (Listed(), TenOfRow1()))

    assert listed.by_surrogate().own is None
    assert plain.by_surrogate().own is plain.own


def test_a_score_through_a_map_is_the_map_and_then_the_score() -> None:
    score = replace(BOWL, surrogate=Sum()).through(SCALED)

    assert torch.equal(score(POINTS), BOWL(SCALED(POINTS)))
    assert torch.equal(score.by_surrogate()(POINTS), Sum()(SCALED(POINTS)))


def test_a_function_that_folds_takes_an_affine_map_into_itself() -> None:
    score = Score(Sum(), CONTEXTS, CONTEXTS[:, :0]).through(SCALED)

    assert isinstance(score.function, Sum)
    assert score.function.affine is SCALED
