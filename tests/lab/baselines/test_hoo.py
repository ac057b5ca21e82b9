"""Hierarchical optimistic optimisation: a tree of cells, and bounds that lead through it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fastbandit import Box
from fastbandit.errors import SettingError
from lab.baselines import HOO
from lab.baselines.hoo import CellTree
from lab.experiments.continuum import Continuum
from lab.experiments.run import run


def tree(dim: int = 1, *, roughness: float = 1.0, decay: float = 0.5) -> CellTree:
    return CellTree(dim, roughness=roughness, decay=decay, width=0.1)


def ones(count: int) -> Any:
    return np.ones((count, 1))


def bound_by_hand(cells: CellTree, cell: int, total: int) -> float:
    """Give a cell's bound by the definition in the paper, children first."""
    visits = cells._visits[cell]
    if visits == 0:
        return math.inf
    radius = 0.1 * math.sqrt(2 * math.log(total) / visits)
    upper = cells._sums[cell] / visits + radius + 0.5 ** cells._depth[cell]
    child = int(cells._first_child[cell])
    below = max(bound_by_hand(cells, c, total) for c in (child, child + 1))
    return float(min(upper, below))


def test_bounds_are_those_of_the_definition(numbers: np.random.Generator) -> None:
    cells = tree()
    cells.learn(numbers.random((40, 1)), numbers.random(40))

    expected = [bound_by_hand(cells, cell, 40) for cell in range(len(cells))]

    assert np.allclose(cells._bound[: len(cells)], expected)


def test_every_reward_opens_one_partition(numbers: np.random.Generator) -> None:
    cells = tree(3)
    cells.learn(numbers.random((200, 3)), numbers.random(200))

    assert len(cells) == 1 + 2 * 200
    assert (cells._visits[: len(cells)] > 0).sum() == 200
    assert cells._visits[0] == 200


def test_children_halve_the_longest_side_of_their_parent(numbers: np.random.Generator) -> None:
    cells = tree(2)
    cells.learn(numbers.random((50, 2)), numbers.random(50))
    sides = cells._high[: len(cells)] - cells._low[: len(cells)]

    assert np.allclose(sides.prod(axis=1), 0.5 ** cells._depth[: len(cells)])
    assert (sides.max(axis=1) <= 2.0 * sides.min(axis=1)).all()


def test_a_pick_lies_in_the_partition_with_the_highest_bounds() -> None:
    cells = tree(roughness=0.1)
    cells.learn(np.array([[0.5], [0.2], [0.8]]), np.array([0.5, 0.0, 1.0]))

    pick = cells.pick(np.array([0.5]))

    assert pick.share[0] in (0.625, 0.875)
    assert pick.partitions == 3
    assert np.isfinite(pick.score)


def test_choices_that_wait_for_rewards_spread() -> None:
    cells = tree()
    cells.learn(np.array([[0.5]]), np.array([0.5]))

    places = [float(cells.pick(np.array([0.5])).share[0]) for _ in range(6)]

    assert places == [0.25, 0.75, *places[2:]]
    assert sorted(places[2:]) == [0.125, 0.375, 0.625, 0.875]


def test_an_update_ends_all_waiting(numbers: np.random.Generator) -> None:
    waited, fresh = tree(), tree()
    for cells in (waited, fresh):
        cells.learn(np.array([[0.5]]), np.array([0.5]))
    picks = [waited.pick(numbers.random(1)).share for _ in range(4)]
    for cells in (waited, fresh):
        cells.learn(np.array(picks), np.full(4, 0.7))

    assert np.array_equal(waited.pick(np.array([0.5])).share, fresh.pick(np.array([0.5])).share)


def test_a_tree_grows_beyond_the_room_it_began_with(numbers: np.random.Generator) -> None:
    cells = tree(2)
    points = numbers.random((500, 2))

    cells.learn(points, points[:, 0])

    assert cells.favourite().share[0] > 0.5


def test_the_highest_peak_of_the_sines_is_found() -> None:
    world = Continuum("sines", noise=0.1, seed=1)
    played = run(world, HOO(box=world.arms), rounds=1_000, batch=50)

    assert played.rewards[-100:].mean() > 0.9 * played.best[0]


def test_more_visits_look_at_more_partitions() -> None:
    world = Continuum("sines", noise=0.0)
    bandit = HOO(box=world.arms)
    cells = []
    for first in range(0, 60, 20):
        decision = bandit.select(ones(20))
        cells.append(decision.evaluations.mean())
        bandit.update(
            contexts=ones(20), arms=decision.arms, rewards=world.observed(first, decision.arms)
        )

    assert cells[0] == 0
    assert 1 < cells[1] < cells[2]


@pytest.mark.parametrize(
    "settings", [{"roughness": -1.0}, {"width": np.inf}, {"decay": 1.0}, {"decay": 0.0}]
)
def test_settings_out_of_range_are_rejected(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        HOO(box=Box((0.0,), (1.0,)), **settings)
