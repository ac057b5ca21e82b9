"""A frozen bandit answers the same by every way to ask, and refuses what it cannot read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes import seeds_of, vectors_of
from hardly_trained import CONTEXT_KINDS, CONTEXTS, COUNT, FEW, trained

from fastbandit import Bandit, FrozenBandit
from fastbandit.errors import NotFiniteError, SettingError, ShapeError

pytestmark = pytest.mark.usefixtures("hardly_any_training")


@pytest.fixture(scope="module")
def bandit(hardly_any_training: None) -> Bandit:
    return trained(search="exhaustive", posterior="dropout")


@pytest.mark.slow
def test_seeds_go_on_where_the_bandit_stopped() -> None:
    bandit = trained()
    frozen = bandit.freeze()

    for _ in range(2):
        expected, answer = bandit.select(CONTEXTS), frozen.select(CONTEXTS)

        np.testing.assert_array_equal(answer.seeds, expected.seeds)
        assert answer.arms == expected.arms
        assert answer.version == expected.version


@pytest.mark.slow
@pytest.mark.parametrize("context", CONTEXT_KINDS)
def test_one_context_is_decided_as_many_are(context: str) -> None:
    kind, contexts = CONTEXT_KINDS[context]
    frozen = trained(contexts, context=kind).freeze()
    many = frozen.select(contexts, seeds=seeds_of(COUNT))

    for number in range(0, COUNT, 5):
        one = contexts[number] if context == "dense" else part_of(contexts, number)
        chosen = frozen.select_one(one, seed=int(many.seeds[number]))

        assert chosen.row == many.rows[number, 0]
        assert chosen.arm == many.arms[number]
        assert chosen.score == pytest.approx(many.scores[number, 0], rel=1e-5, abs=1e-6)
        assert chosen.evaluations == many.evaluations[number]


def part_of(contexts: Any, number: int) -> Any:
    rows = slice(number, number + 1)
    return tuple(p[rows] for p in contexts) if isinstance(contexts, tuple) else contexts[rows]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads: int) -> None:
    frozen = trained().freeze()
    contexts, seeds = vectors_of(200, 4, seed=6), seeds_of(200)

    one = frozen.select(contexts, seeds=seeds, threads=1)
    some = frozen.select(contexts, seeds=seeds, threads=threads)

    np.testing.assert_array_equal(one.rows, some.rows)
    np.testing.assert_array_equal(one.scores, some.scores)


@pytest.mark.slow
def test_no_contexts_are_no_decisions() -> None:
    bandit = trained()
    frozen = bandit.freeze()

    assert len(frozen.select(CONTEXTS[:0])) == 0
    np.testing.assert_array_equal(frozen.select(CONTEXTS).seeds, bandit.select(CONTEXTS).seeds)


@pytest.mark.parametrize("context", [[1.0, 2.0], [[1.0, 2.0, 3.0, 4.0]], "abcd", None])
def test_one_context_is_one_row_of_numbers(frozen: FrozenBandit, context: Any) -> None:
    with pytest.raises(ShapeError, match="numbers in a row"):
        frozen.select_one(context)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_context_without_finite_numbers_is_rejected(frozen: FrozenBandit, wrong: float) -> None:
    with pytest.raises(NotFiniteError):
        frozen.select_one([wrong, 0, 0, 0])


def test_contexts_too_large_to_embed_are_clipped(frozen: FrozenBandit) -> None:
    decision = frozen.select(np.full((2, 4), 3e38))

    assert decision.clipped.all()
    assert np.isfinite(decision.scores).all()


def test_contexts_too_large_to_embed_are_rejected_where_nothing_is_clipped(
    frozen: FrozenBandit,
) -> None:
    model, catalogue, codec = frozen.parts
    nothing = np.zeros((0, 0), np.float32)
    old = FrozenBandit(replace(model, bounds=nothing), catalogue, codec)

    with pytest.raises(NotFiniteError):
        old.select(np.full((2, 4), 3e38))


def test_a_slate_with_diversity_needs_epsilon_0(frozen: FrozenBandit) -> None:
    with pytest.raises(SettingError, match="needs epsilon=0"):
        frozen.select(CONTEXTS, k=2, diversity=0.5, epsilon=0.1)


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_a_number_of_arms_below_1_is_refused(frozen: FrozenBandit, k: Any) -> None:
    with pytest.raises(SettingError, match="k needs to be at least 1"):
        frozen.select(CONTEXTS, k=k)


def test_a_refused_request_uses_up_no_seed(frozen: FrozenBandit) -> None:
    with pytest.raises(NotFiniteError):
        frozen.select_one([np.nan, 0, 0, 0])

    first = frozen.select_one(CONTEXTS[0])
    assert first.seed == frozen._seeds.seed_of(COUNT)  # the bandit decided so often before


def test_it_has_as_many_arms_as_can_be_chosen(frozen: FrozenBandit) -> None:
    frozen.discard_arms([3])

    assert len(frozen) == len(FEW) - 1
    assert 3 not in frozen
