"""Decisions by torch."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fakes import BowlReward, catalogue_of, seeds_of, vectors_of

from fastbandit import Box, Dense, Exhaustive, Greedy
from fastbandit.arms.box_space import BoxSpace
from fastbandit.arms.spaces import read_request, table_of
from fastbandit.errors import SettingError
from fastbandit.policy import Arms, Policy
from fastbandit.runtime.torch_decisions import check_device, decide_by_torch
from fastbandit.types import Decision

ARMS = vectors_of(20, 2)
CONTEXTS = ARMS[[3, 11]]  # the best arm of a bowl is where the context is
BOX = BoxSpace(Box([-3.0, -3.0], [3.0, 3.0], cover=400))


def decided(
    arms: Arms, *, k: int = 1, version: int = 1, diversity: float = 0.0, seed: int = 0
) -> Decision:
    policy = Policy(BowlReward(2), Greedy(), Exhaustive(), arms)
    plan = SimpleNamespace(context=Dense(2), reward="real", seed=1, weights=())
    table = table_of(arms, plan)
    request = read_request(arms, table, CONTEXTS, k=k, eligible=None, first=0)
    request = replace(request, seeds=seeds_of(2, first=seed))
    return decide_by_torch(policy, table, request, version=version, diversity=diversity)


def test_the_arm_with_the_highest_score_is_chosen() -> None:
    decision = decided(catalogue_of(ARMS))

    assert decision.arms == [3, 11]
    assert decision.scores.ravel().tolist() == pytest.approx([0, 0], abs=1e-6)
    assert decision.evaluations.tolist() == [20, 20]


def test_rows_beyond_the_last_arm_have_no_score() -> None:
    decision = decided(catalogue_of(ARMS), k=21)

    assert decision.rows[:, 20].tolist() == [-1, -1]
    assert np.isneginf(decision.scores[:, 20]).all()


def test_a_slate_with_diversity_begins_with_the_best_arm_and_goes_elsewhere() -> None:
    alike, apart = (decided(catalogue_of(ARMS), k=4, diversity=d) for d in (0.0, 0.9))

    assert apart.rows.shape == (2, 4)
    assert apart.rows[:, 0].tolist() == [3, 11]
    assert not np.array_equal(alike.rows, apart.rows)


def test_arms_of_a_box_are_values_near_the_best_point() -> None:
    decision = decided(BOX.embedded_by(lambda values: values, device="cpu"))

    np.testing.assert_allclose(decision.arms, CONTEXTS, atol=0.5)
    assert decision.rows.tolist() == [[0], [0]]


def test_before_an_update_points_of_a_box_are_drawn_from_the_seeds() -> None:
    one, same, other = (decided(BOX, k=3, version=0, seed=seed) for seed in (0, 0, 5))

    assert one.uniform
    assert np.shape(one.arms) == (2, 3, 2)
    assert np.abs(one.arms).max() <= 3.0
    np.testing.assert_array_equal(one.arms, same.arms)
    assert not np.array_equal(one.arms, other.arms)


@pytest.mark.parametrize("device", ["abacus", "cuda:x"])
def test_a_device_that_torch_does_not_know_is_refused(device: str) -> None:
    with pytest.raises(SettingError, match="Use 'cpu' or 'cuda'"):
        check_device(device)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)

    with pytest.raises(SettingError, match="found none"):
        check_device("cuda")
