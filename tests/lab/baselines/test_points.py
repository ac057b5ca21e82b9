"""Baselines on a box: the same select and update, points instead of ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fastbandit import Box
from fastbandit.errors import (
    FastbanditError,
    InputError,
    NotFiniteError,
    RewardError,
    SettingError,
    ShapeError,
)
from fastbandit.noise.philox import decision_seeds
from lab.baselines import HOO, GaussianProcessTS, GaussianProcessUCB, GridLinearTS
from lab.baselines.points import cover

pytest.importorskip("sklearn")

Make = Callable[..., Any]
LINE = Box((0.0,), (1.0,))
PLANE = Box((-2.0, 10.0), (2.0, 30.0))
every = pytest.mark.parametrize("make", [GaussianProcessUCB, GaussianProcessTS, HOO, GridLinearTS])
every_but_ucb = pytest.mark.parametrize("make", [GaussianProcessTS, HOO, GridLinearTS])
boxes = pytest.mark.parametrize("box", [LINE, PLANE], ids=["line", "plane"])


def ones(count: int) -> np.ndarray[Any, Any]:
    return np.ones((count, 1))


def trained(make: Make, box: Box = LINE, *, rounds: int = 20, **settings: Any) -> Any:
    """Teach rewards that are highest in the upper corner."""
    bandit = make(box=box, **settings)
    decision = bandit.select(ones(rounds))
    bandit.update(contexts=ones(rounds), arms=decision.arms, rewards=slope(box, decision.arms))
    return bandit


def slope(box: Box, points: Any) -> Any:
    low, high = np.asarray(box.low), np.asarray(box.high)
    return ((points - low) / (high - low)).mean(axis=1)


@boxes
@every
def test_a_decision_is_points_of_the_box(make: Make, box: Box) -> None:
    decision = trained(make, box).select(ones(7))

    assert decision.arms.shape == (7, box.dim)
    assert decision.arms.dtype == np.float32
    assert ((decision.arms >= box.low) & (decision.arms <= box.high)).all()
    assert decision.rows.tolist() == [[0]] * 7
    assert decision.scores.shape == (7, 1)
    assert np.isfinite(decision.scores).all()
    assert decision.version == 1
    assert (decision.evaluations > 0).all()
    assert decision.lookups.tolist() == [0] * 7


@boxes
@every
def test_the_first_choices_are_spread_over_the_box(make: Make, box: Box) -> None:
    decision = make(box=box).select(ones(2_000))

    share = (decision.arms - box.low) / (np.asarray(box.high) - box.low)
    assert decision.uniform
    assert decision.version == 0
    assert np.allclose(share.mean(axis=0), 0.5, atol=0.03)
    assert np.allclose(share.std(axis=0), 12**-0.5, atol=0.02)


@boxes
@every
def test_a_seed_replays_all_choices(make: Make, box: Box) -> None:
    one, two = (trained(make, box, seed=4).select(ones(5)) for _ in range(2))
    first, other = (make(box=box, seed=seed).select(ones(5)) for seed in (4, 5))

    assert np.array_equal(one.arms, two.arms)
    assert np.array_equal(one.seeds, decision_seeds(4, 20, 5))
    assert not np.array_equal(first.arms, other.arms)


@boxes
@every_but_ucb
def test_choices_do_not_depend_on_batches(make: Make, box: Box) -> None:
    whole, split = trained(make, box), trained(make, box)

    at_once = whole.select(ones(6)).arms
    one_by_one = [split.select(ones(1)).arms for _ in range(6)]

    assert np.allclose(at_once, np.concatenate(one_by_one), atol=1e-6)


@boxes
@every
def test_without_exploration_all_choices_are_one_and_near_the_best(make: Make, box: Box) -> None:
    bandit = trained(make, box, rounds=60)

    points = bandit.select(ones(4), explore=False).arms

    assert len(np.unique(points, axis=0)) == 1
    assert slope(box, points)[0] > 0.7


@every
def test_no_contexts_are_no_decisions(make: Make) -> None:
    for bandit in (make(box=PLANE), trained(make, PLANE)):
        assert bandit.select(np.zeros((0, 1))).arms.shape == (0, 2)


@every
def test_an_update_without_rewards_changes_nothing(make: Make) -> None:
    bandit = make(box=LINE)
    bandit.update(contexts=np.zeros((0, 1)), arms=np.zeros((0, 1)), rewards=[])

    assert bandit.select(ones(1)).uniform


@every
def test_equal_rewards_and_equal_points_are_no_trouble(make: Make) -> None:
    bandit = make(box=LINE)
    for _ in range(2):
        bandit.update(contexts=ones(5), arms=[[0.5]] * 5, rewards=[1.0] * 5)

    assert np.isfinite(bandit.select(ones(3)).arms).all()


@every
def test_one_reward_is_enough_to_go_on(make: Make) -> None:
    bandit = make(box=PLANE)
    bandit.update(contexts=ones(1), arms=[[0.0, 20.0]], rewards=[1.0])

    assert bandit.select(ones(2)).arms.shape == (2, 2)


BAD: list[tuple[dict[str, Any], type[FastbanditError]]] = [
    ({"arms": [[0.2], [1.5]]}, InputError),
    ({"arms": [[0.2], [np.nan]]}, NotFiniteError),
    ({"arms": [[0.2]]}, ShapeError),
    ({"arms": [0.2, 0.3]}, ShapeError),
    ({"contexts": ones(3)}, ShapeError),
    ({"rewards": [0.0, 0.5]}, RewardError),
    ({"rewards": [0.0]}, ShapeError),
]


@every
@pytest.mark.parametrize(("bad", "error"), BAD)
def test_a_bad_update_raises_and_leaves_the_bandit_as_it_was(
    make: Make, bad: dict[str, Any], error: type[FastbanditError]
) -> None:
    good = {"contexts": ones(2), "arms": [[0.2], [0.8]], "rewards": [0.0, 1.0]}
    bandit, compiled = (make(box=LINE, reward="binary") for _ in range(2))
    for each in (bandit, compiled):
        each.update(**good)

    with pytest.raises(error):
        bandit.update(**(good | bad))

    after, expected = (each.select(ones(3)) for each in (bandit, compiled))
    assert after.version == 1
    assert np.array_equal(after.arms, expected.arms)


@every
def test_a_bad_select_uses_up_no_decision(make: Make) -> None:
    bandit = make(box=LINE)

    with pytest.raises(NotFiniteError):
        bandit.select([[np.nan]])

    assert np.array_equal(bandit.select(ones(1)).seeds, decision_seeds(0, 0, 1))


@every
@pytest.mark.parametrize("settings", [{"box": [0.0, 1.0]}, {"reward": "counts"}, {"seed": "now"}])
def test_bad_settings_are_rejected(make: Make, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        make(**({"box": LINE} | settings))


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_a_cover_is_spread_evenly(dim: int) -> None:
    points = cover(1_000, dim)

    assert points.shape == (1_000, dim)
    assert ((points >= 0) & (points <= 1)).all()
    assert np.allclose(points.mean(axis=0), 0.5, atol=0.01)
    assert (np.histogram(points[:, -1], bins=10, range=(0, 1))[0] > 80).all()
