"""Predicates on columns of the arms, in a bandit that learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, Box, FrozenBandit
from fastbandit.errors import EligibilityError, InputError, SettingError, ShapeError

CONTEXTS = vectors_of(30, 4, seed=2)
CHEAP = {"price": {"<=": 2}}


def priced(count: int) -> Bandit:
    arms, prices = vectors_of(count, 3, seed=1), {"price": np.arange(count)}
    return Bandit(arms=arms, columns=prices, context=4, reward="real", seed=3)


def learned(count: int) -> Bandit:
    bandit = priced(count)
    taken = bandit.select(CONTEXTS)
    bandit.update(contexts=CONTEXTS, arms=taken.arms, rewards=CONTEXTS[:, 0])
    return bandit


@pytest.fixture(scope="module", params=[20, 600])
def bandit(request: pytest.FixtureRequest, little_training: None) -> Bandit:
    """A bandit of few arms, for which torch decides, and one of more, which is compiled."""
    return learned(request.param)


@pytest.mark.parametrize("count", [20, 600])
def test_a_predicate_is_kept_to_before_anything_is_learned(count: int) -> None:
    assert set(priced(count).select(CONTEXTS, eligible=CHEAP).arms) == {0, 1, 2}


def test_a_predicate_is_the_mask_of_its_rows(bandit: Bandit) -> None:
    seeds = np.arange(30, dtype=np.uint64)
    mask = np.arange(len(bandit)) % 3 == 0
    bandit.set_columns({"price": np.arange(len(bandit)), "third": mask})

    by_predicate = bandit.select(CONTEXTS, eligible={"third": True}, seeds=seeds)
    by_mask = bandit.select(CONTEXTS, eligible=mask, seeds=seeds)

    assert by_predicate.arms == by_mask.arms
    assert mask[by_predicate.rows].all()


def test_each_context_may_have_a_predicate_of_its_own(bandit: Bandit) -> None:
    some = [{"price": 7}, {"price": {"in": [9]}}]

    assert bandit.select(CONTEXTS[:2], eligible=some).arms == [7, 9]
    with pytest.raises(ShapeError, match="one predicate for each"):
        bandit.select(CONTEXTS, eligible=some)


def test_no_arm_of_a_predicate_is_an_error(bandit: Bandit) -> None:
    with pytest.raises(EligibilityError):
        bandit.select(CONTEXTS, eligible={"price": -1})


def test_columns_are_saved_and_loaded(bandit: Bandit, tmp_path: Path) -> None:
    bandit.save(tmp_path / "bandit")

    loaded = Bandit.load(tmp_path / "bandit")

    assert set(loaded.select(CONTEXTS, eligible=CHEAP).arms) <= {0, 1, 2}


def test_columns_are_handed_on_to_a_frozen_bandit(bandit: Bandit, tmp_path: Path) -> None:
    bandit.freeze().save(tmp_path / "frozen")

    frozen = FrozenBandit.load(tmp_path / "frozen")

    assert frozen.select_one(CONTEXTS[0], eligible={"price": 5}).arm == 5


def test_arms_come_with_their_columns() -> None:
    bandit = priced(20)
    bandit.add_arms(vectors_of(1, 3), ids=["new"], columns={"price": [-1]})
    counts = bandit.upsert_arms(vectors_of(2, 3), ids=["new", "x"], columns={"price": [-2, -3]})

    assert counts == (1, 1, 0)
    assert bandit.select(CONTEXTS[:1], eligible={"price": -2}).arms == ["new"]
    with pytest.raises(InputError, match="price"):
        bandit.add_arms(vectors_of(1, 3), ids=["y"])


def test_the_same_arm_twice_is_left_alone() -> None:
    bandit = priced(20)

    counts = bandit.upsert_arms(
        vectors_of(20, 3, seed=1)[:2], ids=[0, 1], columns={"price": [0, 9]}
    )

    assert counts == (0, 1, 1)
    assert len(bandit) == 20


def test_a_trial_changes_nothing() -> None:
    bandit = priced(20)

    counts = bandit.upsert_arms(vectors_of(1, 3), ids=["x"], columns={"price": [1]}, is_trial=True)
    missing = bandit.discard_arms([3, "y"], is_trial=True)

    assert (counts.added, missing, len(bandit)) == (1, ["y"], 20)
    assert "x" not in bandit
    assert 3 in bandit


def test_a_predicate_needs_columns() -> None:
    bandit = Bandit(arms=vectors_of(5, 3), context=4)

    with pytest.raises(SettingError, match="set_columns"):
        bandit.select(CONTEXTS, eligible=CHEAP)


def test_a_box_has_no_columns() -> None:
    with pytest.raises(SettingError, match="columns"):
        Bandit(arms=Box((0.0,), (1.0,)), columns={"price": [1]}, context=4)
