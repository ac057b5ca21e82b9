"""Many decisions at once."""

from __future__ import annotations

import numpy as np
import pytest
from little_frozen import CONTEXTS, frozen_bandit

from fastbandit import FrozenBandit
from fastbandit.arms.eligibility import draw_eligible
from fastbandit.errors import NotFiniteError
from fastbandit.runtime.batches import Terms, decide_all, draw_all

SEEDS = np.arange(30, dtype=np.uint64)


@pytest.fixture(scope="module")
def frozen(little_training: None) -> FrozenBandit:
    return frozen_bandit(arms=np.random.default_rng(1).normal(size=(40, 3)))


def test_one_list_for_each_context_is_kept_to(frozen: FrozenBandit) -> None:
    model, catalogue, _ = frozen.parts
    lists = [[number, number + 1] for number in range(30)]

    answers = decide_all(model, catalogue, CONTEXTS, SEEDS, Terms(2, lists))

    assert np.sort(answers.rows, axis=1).tolist() == lists


def test_more_arms_than_are_eligible_leave_the_rest_empty(frozen: FrozenBandit) -> None:
    model, catalogue, _ = frozen.parts

    answers = decide_all(model, catalogue, CONTEXTS, SEEDS, Terms(3, [7]))

    assert answers.rows.tolist() == [[7, -1, -1]] * 30


def test_with_epsilon_1_arms_are_drawn_evenly(frozen: FrozenBandit) -> None:
    model, catalogue, _ = frozen.parts

    mixed = decide_all(model, catalogue, CONTEXTS, SEEDS, Terms(1, epsilon=1.0))
    drawn = draw_all(catalogue, SEEDS, Terms(1))

    assert mixed.rows.tolist() == drawn.rows.tolist()
    assert drawn.rows.tolist() == draw_eligible(SEEDS, None, arms=40, count=1).tolist()


def test_a_context_that_is_not_finite_is_named(frozen: FrozenBandit) -> None:
    model, catalogue, _ = frozen.parts
    contexts = CONTEXTS.copy()
    contexts[4] = np.nan

    with pytest.raises(NotFiniteError, match="a row, 4,"):
        decide_all(model, catalogue, contexts, SEEDS, Terms(1))


def test_a_slate_takes_arms_from_its_answers(frozen: FrozenBandit) -> None:
    model, catalogue, _ = frozen.parts
    answers = decide_all(model, catalogue, CONTEXTS, SEEDS, Terms(8))

    slate = answers.slate(catalogue, k=3, diversity=0.5)

    assert slate.rows.shape == (30, 3)
    assert slate.rows[:, 0].tolist() == answers.rows[:, 0].tolist()
    assert all(set(few) <= set(many) for few, many in zip(slate.rows, answers.rows, strict=True))
