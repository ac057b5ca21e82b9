"""A policy chooses by its four parts, on a bowl whose best arm is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fakes import BowlReward, catalogue_of, seeds_of, vectors_of

from fastbandit import Exhaustive, Greedy, ThompsonSampling, policy
from fastbandit.interfaces import Exploration
from fastbandit.policy import Policy
from fastbandit.types import Inputs

ARMS, CONTEXTS = vectors_of(40, 2, seed=1), vectors_of(7, 2, seed=2)
DISTANCES = np.square(CONTEXTS[:, None] - ARMS).sum(axis=2)


def made(exploration: Exploration | None = None) -> Policy:
    return Policy(BowlReward(2), exploration or Greedy(), Exhaustive(), catalogue_of(ARMS))


def test_the_nearest_arms_of_a_bowl_are_chosen_best_first() -> None:
    choice = made().select(Inputs(dense=CONTEXTS), seeds=seeds_of(7), count=3)

    order = np.argsort(DISTANCES, axis=1)[:, :3]
    assert np.array_equal(choice.rows, order)
    assert np.allclose(choice.scores, -np.take_along_axis(DISTANCES, order, axis=1), atol=1e-5)


def test_an_arm_that_a_context_may_not_have_is_not_chosen() -> None:
    eligible = torch.ones(7, 40, dtype=torch.bool)
    eligible[3, int(DISTANCES[3].argmin())] = False

    choice = made().select(Inputs(dense=CONTEXTS), seeds=seeds_of(7), eligible=eligible)

    nearest = DISTANCES.argmin(axis=1)
    nearest[3] = np.argsort(DISTANCES[3])[1]
    assert np.array_equal(choice.rows[:, 0], nearest)


@pytest.mark.parametrize("contexts_of_mask", [1, 7])
def test_a_batch_in_chunks_is_chosen_for_as_a_whole_one(
    contexts_of_mask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, seeds = Inputs(dense=CONTEXTS), seeds_of(7)
    numbers = torch.rand(contexts_of_mask, 40, generator=torch.Generator().manual_seed(1))
    whole = made(ThompsonSampling(1.0)).select(inputs, seeds=seeds, eligible=numbers > 0.5)

    monkeypatch.setattr(policy, "_CHUNK", 3)
    parts = made(ThompsonSampling(1.0)).select(inputs, seeds=seeds, eligible=numbers > 0.5)

    assert torch.equal(parts.rows, whole.rows)
    assert torch.allclose(parts.scores, whole.scores)


def test_no_contexts_have_an_empty_choice() -> None:
    choice = made().select(Inputs(dense=CONTEXTS[:0]), seeds=seeds_of(0), count=3)

    assert choice.rows.shape == choice.scores.shape == (0, 3)
    assert choice.points.shape == (0, 3, 2)


def test_the_score_of_a_policy_is_a_function_of_points_of_the_arm_space() -> None:
    chosen = made()
    points = chosen.arms.all().points

    scores = chosen.score(Inputs(dense=CONTEXTS), seeds=seeds_of(7))(points)

    assert np.allclose(scores, -DISTANCES, atol=1e-5)
