"""What a frozen bandit may choose: by columns, ids and masks, among arms old and new."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import vectors_of
from little_frozen import fresh, frozen_bandit

from fastbandit import FrozenBandit
from fastbandit.errors import EligibilityError, InputError, SettingError, ShapeError

CONTEXT = np.ones(4, dtype=np.float32)


@pytest.fixture(scope="module")
def frozen(little_training: None) -> FrozenBandit:
    return frozen_bandit(arms=vectors_of(3000, 3, seed=1))


@pytest.fixture
def priced(frozen: FrozenBandit) -> FrozenBandit:
    """A bandit of 3,000 arms whose price is their row, with the arms of a fresh start."""
    bandit = fresh(frozen)
    bandit.set_columns({"price": np.arange(3000), "even": np.arange(3000) % 2 == 0})
    return bandit


@pytest.mark.parametrize("limit", [1, 100, 2500])
def test_decisions_keep_to_a_predicate(priced: FrozenBandit, limit: int) -> None:
    predicate = {"price": {"<": limit}}

    many = priced.select(np.tile(CONTEXT, (50, 1)), eligible=predicate).rows
    ones = [priced.select_one(CONTEXT, seed=seed, eligible=predicate).row for seed in range(50)]

    assert many.max() < limit
    assert max(ones) < limit


def test_a_predicate_is_the_mask_of_its_rows(priced: FrozenBandit) -> None:
    contexts, seeds = vectors_of(40, 4), np.arange(40, dtype=np.uint64)

    by_predicate = priced.select(contexts, eligible={"even": True}, seeds=seeds, k=3)
    by_mask = priced.select(contexts, eligible=np.arange(3000) % 2 == 0, seeds=seeds, k=3)

    np.testing.assert_array_equal(by_predicate.rows, by_mask.rows)


def test_each_context_may_have_a_predicate_of_its_own(priced: FrozenBandit) -> None:
    decision = priced.select(vectors_of(2, 4), eligible=[{"price": 7}, {"price": {"in": [9]}}])

    assert decision.arms == [7, 9]


def test_predicates_for_another_number_of_contexts_are_rejected(priced: FrozenBandit) -> None:
    with pytest.raises(ShapeError, match="one predicate for each"):
        priced.select(vectors_of(3, 4), eligible=[{"price": 7}, {"price": 9}])


def test_a_discarded_arm_stays_out_whatever_the_predicate(priced: FrozenBandit) -> None:
    assert priced.select_one(CONTEXT, eligible={"price": {"<": 2}, "even": True}).arm == 0

    priced.discard_arms([0])

    assert priced.select_one(CONTEXT, eligible={"price": {"<": 2}}).arm == 1
    with pytest.raises(EligibilityError):
        priced.select_one(CONTEXT, eligible={"price": 0})


def test_a_new_arm_is_found_by_its_columns(priced: FrozenBandit) -> None:
    priced.add_arms(
        vectors_of(2, 3), ids=["a", "b"], columns={"price": [-1, -2], "even": [False, False]}
    )

    assert priced.select_one(CONTEXT, eligible={"price": -2}).arm == "b"


def test_a_new_arm_without_its_columns_changes_nothing(priced: FrozenBandit) -> None:
    with pytest.raises(InputError, match="price, even"):
        priced.add_arms(vectors_of(1, 3))

    assert len(priced) == 3000


def test_columns_stay_when_arms_move_into_partitions(priced: FrozenBandit) -> None:
    priced.discard_arms(range(10))
    priced.add_arms(vectors_of(1, 3), columns={"price": [-5], "even": [False]})

    priced.index()

    assert priced.select_one(CONTEXT, eligible={"price": {"<": 0}}).row == 3000
    assert priced.select_one(CONTEXT, eligible={"price": {"<": 11}, "even": True}).row == 10


def test_columns_for_other_rows_leave_those_there_were(priced: FrozenBandit) -> None:
    with pytest.raises(ShapeError, match="3000 rows"):
        priced.set_columns({"price": [1, 2, 3]})

    assert priced.select_one(CONTEXT, eligible={"price": 4}).arm == 4


def test_a_predicate_needs_columns(frozen: FrozenBandit) -> None:
    with pytest.raises(SettingError, match="set_columns"):
        frozen.select_one(CONTEXT, eligible={"price": 4})
    with pytest.raises(SettingError, match="set_columns"):
        frozen.add_arms(vectors_of(1, 3), columns={"price": [4]})


# -- eligible rows, by themselves


def test_few_eligible_rows_are_listed_by_position(priced: FrozenBandit) -> None:
    catalogue = priced.parts[1]

    some = catalogue.eligible([7, 3, 7])

    assert (len(some.mask), some.size) == (0, 2)
    assert catalogue.arms.order[some.listed].tolist() == [3, 7]
    assert catalogue.rows_of(some).tolist() == [3, 7]  # type: ignore[union-attr]


def test_many_eligible_rows_are_a_mask(priced: FrozenBandit) -> None:
    some = priced.parts[1].eligible({"even": True})

    assert (int(some.mask.sum()), some.size, len(some.listed)) == (1500, 1500, 0)


def test_no_mask_is_needed_while_all_arms_are_live(priced: FrozenBandit) -> None:
    assert len(priced.parts[1].all_eligible.mask) == 0

    priced.discard_arms([5])

    assert not priced.parts[1].all_eligible.mask[5]


def test_the_same_predicate_is_answered_once(priced: FrozenBandit) -> None:
    catalogue = priced.parts[1]

    assert catalogue.eligible({"even": True}) is catalogue.eligible({"even": True})


def test_an_upsert_leaves_what_is_there_just_so(priced: FrozenBandit) -> None:
    arms, columns = vectors_of(3000, 3, seed=1)[:2], {"price": [0, 9], "even": [True, False]}

    counts = priced.upsert_arms(arms, ids=[0, 1], columns=columns)

    assert counts == (0, 1, 1)
    assert len(priced) == 3000
    assert priced.select_one(CONTEXT, eligible={"price": 9, "even": False}).arm in (1, 9)
