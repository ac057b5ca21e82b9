"""Draws among few arms choose what deciding for one context after the other chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes import seeds_of, vectors_of
from little_frozen import CONTEXTS, fresh, frozen_bandit

from fastbandit import FrozenBandit
from fastbandit.runtime.few_draws import best_of_few
from fastbandit.types import Inputs

ARMS, SEEDS = vectors_of(40, 3, seed=1), seeds_of(300)
CONTEXT = np.ascontiguousarray(CONTEXTS[0], dtype=np.float32)


@pytest.fixture(scope="module")
def frozen(little_training: None) -> FrozenBandit:
    return frozen_bandit(arms=ARMS, posterior="dropout")


def best_of(frozen: FrozenBandit, context: Any, rows: Any, seeds: Any = SEEDS) -> Any:
    model, catalogue, _ = frozen.parts
    return best_of_few(
        model, catalogue, catalogue.only(rows), Inputs(context[None]), seeds, threads=1
    )


@pytest.mark.parametrize("rows", [[7], [3, 5, 8], [*range(0, 40, 2), 39]])
def test_they_are_those_of_decisions(frozen: FrozenBandit, rows: list[int]) -> None:
    frozen = fresh(frozen)
    frozen.add_arms(vectors_of(2, 3, seed=9))
    among = np.array([*rows, 40, 41])
    different = 0

    for context in np.ascontiguousarray(CONTEXTS[:10], dtype=np.float32):
        found = best_of(frozen, context, among)
        repeated = context[None].repeat(len(SEEDS), 0)
        chosen = frozen.select(repeated, eligible=among.tolist(), seeds=SEEDS)
        np.testing.assert_array_equal(found, chosen.rows[:, 0])
        different += len(set(found.tolist())) > 1
    assert different


def test_parts_of_the_draws_are_the_same(frozen: FrozenBandit) -> None:
    rows = np.arange(10)

    parts = [best_of(frozen, CONTEXT, rows, SEEDS[at : at + 100]) for at in (0, 100, 200)]

    np.testing.assert_array_equal(np.concatenate(parts), best_of(frozen, CONTEXT, rows))


def test_a_context_that_is_not_finite_is_left_to_others(frozen: FrozenBandit) -> None:
    assert best_of(frozen, np.full_like(CONTEXT, np.nan), np.arange(3)) is None


def test_other_draws_and_many_arms_are_left_to_others(frozen: FrozenBandit) -> None:
    model, catalogue, _ = frozen.parts
    last_layer = frozen_bandit(arms=ARMS, posterior="last-layer")

    assert (
        best_of_few(model, catalogue, catalogue.all_eligible, Inputs(CONTEXT[None]), SEEDS) is None
    )
    assert best_of(last_layer, CONTEXT, np.arange(3)) is None
