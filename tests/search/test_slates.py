"""Slates: the plain best k without diversity, and arms ever farther apart with more of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from fakes import same_decision, vectors_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fastbandit import Bandit, Box
from fastbandit.errors import SettingError
from fastbandit.search.slates import candidates_for, pick_apart
from fastbandit.settings.files import Settings

KNOBS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
QUICK = Settings(
    {
        "training.reward": {"iterations": 60},
        "training.generator": {"iterations": 30, "targets": 128, "sample": 64},
    },
)
CONTEXTS = vectors_of(7, 3, seed=6)


def trained(arms: Any, **more: Any) -> Bandit:
    bandit = Bandit(arms=arms, context=3, reward="real", preset=QUICK, progress=False, **more)
    contexts = vectors_of(80, 3, seed=5)
    chosen: Any = vectors_of(80, 2, seed=4).clip(-1, 1)
    if not isinstance(arms, Box):
        chosen = np.arange(80) % len(arms)
    bandit.update(contexts=contexts, arms=chosen, rewards=contexts[:, 0])
    return bandit


def apart(points: Any) -> float:
    """Give the mean distance of the pairs of each slate: points (B, k, D)."""
    gaps = np.linalg.norm(points[:, :, None] - points[:, None], axis=3)
    return float(gaps.sum() / (points.shape[0] * points.shape[1] * (points.shape[1] - 1)))


# -- picking


@settings(max_examples=60, deadline=None)
@given(
    arrays.arrays(np.float32, (3, 12), elements=st.floats(-9, 9, width=32)),
    arrays.arrays(np.float32, (3, 12, 2), elements=st.floats(-9, 9, width=32)),
    st.integers(1, 12),
    st.floats(0, 1),
    st.integers(0, 12),
)
def test_picks_are_different_arms_and_all_there_are(
    scores: Any, points: Any, k: int, diversity: float, arms: int
) -> None:
    scores = -np.sort(-scores, axis=1)
    scores[:, arms:] = -np.inf

    picked = pick_apart(scores, points, k=k, diversity=diversity)

    for row, marks in zip(picked, scores, strict=True):
        taken = row[np.isfinite(marks[row])]
        assert len(set(taken.tolist())) == len(taken) == min(k, arms)
        assert np.isinf(marks[row[len(taken) :]]).all()
        if arms:
            assert row[0] == 0


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(np.float32, (2, 9), elements=st.floats(-9, 9, width=32), unique=True))
def test_without_diversity_the_best_are_picked_in_order(scores: Any) -> None:
    scores = -np.sort(-scores, axis=1)

    picked = pick_apart(scores, np.zeros((2, 9, 2), np.float32), k=4, diversity=0.0)

    assert np.allclose(np.take_along_axis(scores, picked, 1), scores[:, :4], atol=1e-4)


def test_arms_lie_farther_apart_as_diversity_grows() -> None:
    points = np.random.default_rng(3).normal(size=(20, 50, 3))
    scores = -np.sort(np.square(points).sum(2), axis=1)
    points = np.take_along_axis(points, np.argsort(np.square(points).sum(2), 1)[..., None], 1)

    slates = [pick_apart(scores, points, k=8, diversity=knob) for knob in KNOBS]

    spreads = [apart(np.take_along_axis(points, each[..., None], 1)) for each in slates]
    worth = [float(np.take_along_axis(scores, each, 1).mean()) for each in slates]
    assert all(two >= one - 1e-9 for one, two in pairwise(spreads))
    assert all(two <= one + 1e-9 for one, two in pairwise(worth))
    assert spreads[-1] > 1.5 * spreads[0]


def test_only_a_slate_with_diversity_looks_for_more_arms() -> None:
    assert candidates_for(1, 0.5) == 1
    assert candidates_for(10, 0.0) == 10
    assert candidates_for(10, 0.5) > 10


# -- bandits


@pytest.mark.parametrize("count", [40, 700])  # the latter is decided by compiled code
@pytest.mark.parametrize("search", ["generator", "exhaustive"])
def test_a_bandit_without_diversity_chooses_the_plain_k(count: int, search: str) -> None:
    bandit = trained(vectors_of(count, 3, seed=2), search=search)
    plain = bandit.select(CONTEXTS, k=5)

    assert same_decision(bandit.select(CONTEXTS, k=5, diversity=0.0, seeds=plain.seeds), plain)
    one = bandit.select(CONTEXTS)
    assert same_decision(bandit.select(CONTEXTS, k=1, diversity=0.9, seeds=one.seeds), one)


@pytest.mark.parametrize("count", [40, 700])
def test_a_slate_has_different_arms_the_best_first_and_repeats_itself(count: int) -> None:
    bandit = trained(vectors_of(count, 3, seed=2), search="exhaustive")
    plain = bandit.select(CONTEXTS, k=5)

    slate = bandit.select(CONTEXTS, k=5, diversity=0.6, seeds=plain.seeds)

    assert same_decision(bandit.select(CONTEXTS, k=5, diversity=0.6, seeds=plain.seeds), slate)
    assert all(len(set(row.tolist())) == 5 for row in slate.rows)
    assert slate.rows[:, 0].tolist() == plain.rows[:, 0].tolist()
    assert not np.array_equal(slate.rows, plain.rows)


def test_a_slate_of_a_frozen_bandit_is_that_of_the_bandit() -> None:
    bandit = trained(vectors_of(40, 3, seed=2))
    frozen = bandit.freeze()

    mine = bandit.select(CONTEXTS, k=4, diversity=0.5)

    theirs = frozen.select(CONTEXTS, k=4, diversity=0.5, seeds=mine.seeds)
    assert theirs.arms == mine.arms


def test_a_slate_spreads_over_arms_that_were_added_to_a_frozen_bandit() -> None:
    frozen = trained(vectors_of(40, 3, seed=2)).freeze()
    frozen.add_arms(vectors_of(3, 3, seed=9), ids=["x", "y", "z"])

    slate = frozen.select(CONTEXTS, k=43, diversity=0.5)

    assert all(set(arms) == {*range(40), "x", "y", "z"} for arms in slate.arms)  # type: ignore[arg-type]


def test_a_slate_holds_all_that_are_eligible_where_those_are_few() -> None:
    bandit = trained(vectors_of(40, 3, seed=2))

    slate = bandit.select(CONTEXTS, k=5, diversity=0.5, eligible=[3, 8, 9])

    assert all(sorted(arms) == [3, 8, 9] for arms in slate.arms)  # type: ignore[arg-type]


def test_points_of_a_box_spread_out_too() -> None:
    bandit = trained(Box([-1.0, -1.0], [1.0, 1.0], cover=400), search="exhaustive")
    plain = bandit.select(CONTEXTS, k=6)

    slate = bandit.select(CONTEXTS, k=6, diversity=0.7, seeds=plain.seeds)

    assert np.asarray(slate.arms).shape == (7, 6, 2)
    assert apart(np.asarray(slate.arms)) > apart(np.asarray(plain.arms))


def test_before_the_first_update_a_slate_is_any_arms() -> None:
    bandit = Bandit(arms=vectors_of(40, 3), context=3)

    slate = bandit.select(CONTEXTS, k=4, diversity=0.5)

    assert slate.uniform
    frozen = bandit.freeze().select(CONTEXTS, k=4, diversity=0.5, seeds=slate.seeds)
    assert frozen.arms == slate.arms


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), True, "0.3"])
def test_a_diversity_that_is_no_share_is_refused(wrong: Any) -> None:
    bandit = Bandit(arms=vectors_of(40, 3), context=3)

    with pytest.raises(SettingError, match="from 0 to 1: got"):
        bandit.select(CONTEXTS, k=2, diversity=wrong)


def test_a_slate_with_diversity_refuses_uniform_mixing() -> None:
    frozen = Bandit(arms=vectors_of(40, 3), context=3).freeze()

    with pytest.raises(SettingError, match="needs epsilon=0"):
        frozen.select(CONTEXTS, k=2, diversity=0.5, epsilon=0.1)
