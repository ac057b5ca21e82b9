"""Arms that span all others, and the search among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fakes import catalogue_of, vectors_of

from fastbandit import Bandit, Box, SpannerSearch
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.spanner import spanning_positions
from fastbandit.errors import SettingError
from fastbandit.settings.files import Settings

POINTS = torch.from_numpy(vectors_of(300, 3))
QUICK = Settings({"training.reward": {"iterations": 40}})


def volume(points: Any) -> float:
    lifted = torch.cat([points, torch.ones(len(points), 1)], dim=1).double()
    return float(torch.logdet(lifted.T @ lifted + 1e-3 * torch.eye(4)))


def test_spanning_points_are_different_and_the_first_of_many_are_those_of_few() -> None:
    few, many = spanning_positions(POINTS, 6), spanning_positions(POINTS, 40)

    assert len(set(many.tolist())) == 40
    assert many[:6].tolist() == few.tolist()


def test_each_next_point_adds_the_most_volume() -> None:
    positions = spanning_positions(POINTS, 6).tolist()

    for taken in range(1, 6):
        others = set(range(300)) - set(positions[:taken])
        gained = [volume(POINTS[[*positions[:taken], other]]) for other in others]
        assert volume(POINTS[positions[: taken + 1]]) == pytest.approx(max(gained))


def test_a_spanner_holds_more_than_points_by_lot() -> None:
    lots = torch.randint(300, (50, 8), generator=torch.Generator().manual_seed(1))

    assert volume(POINTS[spanning_positions(POINTS, 8)]) > max(volume(POINTS[lot]) for lot in lots)


def test_no_more_points_span_than_there_are() -> None:
    assert sorted(spanning_positions(POINTS[:5], 9).tolist()) == list(range(5))


def test_equal_points_are_spanned_by_different_places() -> None:
    positions = spanning_positions(POINTS[:1].repeat(7, 1), 7)

    assert sorted(positions.tolist()) == list(range(7))


@pytest.mark.parametrize("count", [5, 100])
def test_arms_that_were_removed_span_nothing(count: int) -> None:
    arms = catalogue_of(vectors_of(150, 3))
    gone = arms.spanning(3).rows[0].tolist()

    left = arms.discard(gone)[0].spanning(count)

    assert left.rows.shape == (1, count)
    assert not set(gone) & set(left.rows[0].tolist())


def test_the_points_of_a_box_that_span_it_lie_at_its_corners() -> None:
    box = BoxSpace(Box([-1.0, 0.0], [1.0, 1.0], cover=500)).embedded_by(lambda v: v, device="cpu")

    points = box.spanning(4).points[0]

    assert ((points - (box.low + box.high) / 2).abs() > 0.35 * (box.high - box.low)).all()


def bandit_of(search: Any, count: int = 600) -> Bandit:
    arms = vectors_of(count, 3, seed=2)
    bandit = Bandit(
        arms=arms, context=3, search=search, posterior="neural", preset=QUICK, progress=False
    )
    contexts = vectors_of(80, 3, seed=5)
    bandit.update(contexts=contexts, arms=np.arange(80), rewards=contexts[:, 0] > 0)
    return bandit


def test_a_bandit_takes_it_by_name_and_torch_decides() -> None:
    bandit = bandit_of("spanner")

    decision = bandit.select(vectors_of(4, 3, seed=6))

    assert bandit.blueprint.search == SpannerSearch()
    assert (decision.lookups == 0).all()
    assert (decision.evaluations <= 32 + 4 * 3 * 16).all()
    with pytest.raises(SettingError, match="search cannot be frozen"):
        bandit.freeze()


def test_without_hops_only_the_spanner_is_chosen_and_hops_come_nearer_to_the_best() -> None:
    contexts = vectors_of(30, 3, seed=6)
    alone, hopping = bandit_of(SpannerSearch(size=8, hops=0)), bandit_of(SpannerSearch(size=8))

    chosen = alone.select(contexts).rows[:, 0]

    arms: Any = alone.policy.arms
    assert set(chosen.tolist()) <= set(arms.spanning(8).rows[0].tolist())
    assert hopping.audit(contexts).quality > alone.audit(contexts).quality
