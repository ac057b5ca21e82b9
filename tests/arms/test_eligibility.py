"""What the caller allows becomes a mask, and uniform choices stay inside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.arms.eligibility import draw_eligible, read_eligible
from fastbandit.arms.ids import IdTable
from fastbandit.errors import EligibilityError, ShapeError, UnknownArmError
from fastbandit.noise.philox import decision_seeds

NAMED = IdTable(["a", "b", "c"])


def eligible_rows(eligible: Any, table: IdTable = NAMED, *, contexts: int = 2) -> list[list[int]]:
    mask = read_eligible(eligible, table, contexts=contexts)
    assert mask is not None
    assert mask.dtype == np.bool_
    return [np.flatnonzero(row).tolist() for row in mask]


def test_without_a_limit_there_is_no_mask() -> None:
    assert read_eligible(None, NAMED, contexts=2) is None


@pytest.mark.parametrize("mask", [[True, False, True], np.array([1, 0, 1], dtype=bool)])
def test_one_mask_holds_for_all_contexts(mask: Any) -> None:
    assert eligible_rows(mask) == [[0, 2]]


@pytest.mark.parametrize("kind", [list, np.array])
def test_a_mask_for_each_context_is_kept(kind: Any) -> None:
    mask = kind([[True, False, True], [False, True, False]])

    assert eligible_rows(mask) == [[0, 2], [1]]


def test_a_list_of_numpy_booleans_is_a_mask_and_not_ids() -> None:
    mask = [np.True_, np.False_, np.False_]

    assert eligible_rows(mask, IdTable(count=3)) == [[0]]


@pytest.mark.parametrize("ids", [["c", "a"], ("c", "a"), {"c", "a"}, np.array(["c", "a"])])
def test_a_list_of_ids_holds_for_all_contexts(ids: Any) -> None:
    assert eligible_rows(ids) == [[0, 2]]


@pytest.mark.parametrize("group", [list, tuple, set, np.array])
def test_a_list_of_ids_for_each_context_is_read(group: Any) -> None:
    assert eligible_rows([group(["a"]), group(["b", "c"])]) == [[0], [1, 2]]


def test_rows_of_an_array_are_ids_of_one_context_each() -> None:
    assert eligible_rows(np.array([[0, 1], [2, 2]]), IdTable(count=3)) == [[0, 1], [2]]


def test_tuples_that_are_ids_are_read_as_ids() -> None:
    table = IdTable([(0, 1), (0, 2), (1, 2)])

    assert eligible_rows([(0, 1), (1, 2)], table) == [[0, 2]]
    assert eligible_rows([[(0, 1)], [(0, 2), (1, 2)]], table) == [[0], [1, 2]]


@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 3), (3, 1)])
def test_a_mask_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"needs shape \(3,\) or \(2, 3\)"):
        read_eligible(np.ones(shape, dtype=bool), NAMED, contexts=2)


def test_lists_need_to_be_as_many_as_the_contexts() -> None:
    with pytest.raises(ShapeError, match="each of the 2 contexts: got 3 lists"):
        read_eligible([["a"], ["b"], ["c"]], NAMED, contexts=2)


@pytest.mark.parametrize("eligible", [["a", "z"], [["a"], ["z"]]])
def test_an_unknown_id_is_named(eligible: Any) -> None:
    with pytest.raises(UnknownArmError, match="got 'z'"):
        read_eligible(eligible, NAMED, contexts=2)


def test_a_context_without_arms_is_named() -> None:
    with pytest.raises(EligibilityError, match="got none for context 1"):
        read_eligible([["a"], []], NAMED, contexts=2)


@pytest.mark.parametrize("eligible", [[], np.zeros(3, dtype=bool)])
def test_an_empty_set_for_all_contexts_is_refused(eligible: Any) -> None:
    with pytest.raises(EligibilityError, match="got none for all contexts"):
        read_eligible(eligible, NAMED, contexts=2)


def test_arms_that_are_not_alive_are_allowed_to_nobody() -> None:
    live = np.array([True, False, True])

    none = read_eligible(None, NAMED, contexts=2, live=live)
    some = read_eligible(["b", "c"], NAMED, contexts=2, live=live)

    assert none is not None
    assert none.tolist() == [[True, False, True]]
    assert some is not None
    assert some.tolist() == [[False, False, True]]


def test_a_context_whose_arms_are_all_gone_is_refused() -> None:
    with pytest.raises(EligibilityError):
        read_eligible(["b"], NAMED, contexts=2, live=np.array([True, False, True]))


@given(seed=st.integers(0, 2**64 - 1), arms=st.integers(1, 20), count=st.integers(1, 25))
def test_draws_are_different_allowed_arms_and_then_nothing(
    seed: int, arms: int, count: int
) -> None:
    seeds = decision_seeds(seed, 0, 3)
    eligible = np.arange(3 * arms).reshape(3, arms) % 3 != 1
    eligible[:, 0] = True

    for row, mask in zip(
        draw_eligible(seeds, eligible, arms=arms, count=count), eligible, strict=True
    ):
        real = row[row >= 0].tolist()
        assert len(set(real)) == len(real) == min(count, int(mask.sum()))
        assert mask[real].all()
        assert (row[len(real) :] == -1).all()


@pytest.mark.parametrize("masked", [False, True])
def test_draws_are_uniform_in_every_place(masked: bool) -> None:
    arms, draws = 5, 5_000
    eligible = np.ones((1, arms), dtype=bool) if masked else None

    rows = draw_eligible(decision_seeds(7, 0, draws), eligible, arms=arms, count=3)

    expected = draws / arms
    for place in rows.T:
        counts = np.bincount(place, minlength=arms)
        assert ((counts - expected) ** 2 / expected).sum() < 18.5  # 0.1 % of chi-square, 4 degrees


def test_a_draw_depends_on_its_own_seed_alone() -> None:
    seeds = decision_seeds(1, 0, 6)

    whole = draw_eligible(seeds, None, arms=100, count=2)
    parts = [draw_eligible(seeds[i : i + 1], None, arms=100, count=2) for i in range(6)]

    assert np.array_equal(whole, np.concatenate(parts))
