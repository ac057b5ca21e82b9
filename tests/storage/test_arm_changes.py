"""A bandit's arms follow the log."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from fakes import vectors_of

from fastbandit import Bandit, Schema
from fastbandit.errors import EligibilityError, FastbanditError
from fastbandit.storage.arm_changes import apply_change, apply_changes, by_name
from fastbandit.storage.events import Arm, ArmsChanged

ARMS = vectors_of(4, 2, seed=2)


@pytest.fixture
def bandit() -> Bandit:
    return Bandit(arms=ARMS, ids=["a", "b", "c", "d"], context=2)


def features_by_id(bandit: Bandit) -> dict[str, list[float]]:
    catalogue = bandit.policy.arms
    rows = np.flatnonzero(catalogue.live)  # type: ignore[union-attr]
    features = catalogue.features.dense[rows].tolist()  # type: ignore[union-attr]
    return dict(zip(catalogue.table.ids(rows), features, strict=True))  # type: ignore[union-attr]


def test_arms_are_put_in_place_of_those_of_the_same_id(bandit: Bandit) -> None:
    bandit.upsert_arms([[1.0, 2.0], [3.0, 4.0]], ids=["a", "e"])

    assert len(bandit) == 5
    assert features_by_id(bandit)["a"] == [1.0, 2.0]
    assert features_by_id(bandit)["e"] == [3.0, 4.0]


def test_arms_that_cannot_be_put_change_nothing(bandit: Bandit) -> None:
    with pytest.raises(FastbanditError):
        bandit.upsert_arms([[1.0, 2.0, 3.0]], ids=["a"])

    assert len(bandit) == 4


def test_changes_of_one_arm_are_made_in_their_order(bandit: Bandit) -> None:
    changes = [
        ArmsChanged([Arm("a", [1.0, 1.0]), Arm("e", [2.0, 2.0])], ["b"]),
        ArmsChanged([Arm("b", [3.0, 3.0])], ["e"]),
        ArmsChanged([], ["c", "nobody", "c"]),
        ArmsChanged([Arm("a", [4.0, 4.0])]),
    ]
    apply_changes(bandit, changes)

    expected = {"a": [4.0, 4.0], "b": [3.0, 3.0], "d": ARMS[3].tolist()}
    assert features_by_id(bandit) == expected


def test_an_arm_that_is_there_just_so_is_left_alone(bandit: Bandit) -> None:
    apply_changes(bandit, [ArmsChanged([Arm("a", ARMS[0].tolist())])])

    assert len(bandit.policy.arms.table) == 4  # type: ignore[union-attr]


def test_a_change_that_would_take_the_last_arm_takes_none(bandit: Bandit) -> None:
    changes = [
        ArmsChanged([], ["a", "b"]),
        ArmsChanged([], ["c", "d"]),
        ArmsChanged([Arm("e", [1.0, 1.0])], ["nobody"]),
        ArmsChanged([Arm("f", [1.0, 1.0])], ["c", "d", "e", "f"]),
        ArmsChanged([], ["d", "e", "f"]),
    ]
    apply_changes(bandit, changes)

    assert list(features_by_id(bandit)) == ["c"]


def test_what_learns_and_what_serves_hold_the_same_arms() -> None:
    numbers = np.random.default_rng(3)
    for _ in range(50):
        bandit = Bandit(arms=ARMS[:2], ids=["a", "b"], context=2)
        frozen, changes = bandit.freeze(), []
        for _ in range(8):
            put = [Arm(str(id), [1.0, 1.0]) for id in numbers.choice([*"abc"], numbers.integers(2))]
            taken = numbers.choice([*"abc"], numbers.integers(3), replace=False).tolist()
            changes.append(ArmsChanged(put, taken))
            with suppress(EligibilityError):
                apply_change(frozen, changes[-1])
        apply_changes(bandit, changes)

        served = frozen.parts[1]
        assert set(served.ids.ids(served.rows.live_rows)) == set(features_by_id(bandit))


def test_columns_grow_with_the_rows(bandit: Bandit) -> None:
    bandit.set_columns({"price": [1.0, 2.0, 3.0, 4.0]})
    same, dearer = (Arm(id, ARMS[0].tolist(), {"price": 1.0}) for id in ("a", "b"))
    apply_changes(bandit, [ArmsChanged([same, dearer])])

    assert bandit.columns is not None
    assert bandit.columns["price"].values.tolist() == [1.0, 2.0, 3.0, 4.0, 1.0]


@pytest.mark.parametrize("is_frozen", [False, True])
def test_an_arm_known_by_its_id_is_left_alone_while_its_columns_are_the_same(
    is_frozen: bool,
) -> None:
    bandit: Any = Bandit(ids=["a", "b"], columns={"price": [1.0, 2.0]}, context=2)
    bandit = bandit.freeze() if is_frozen else bandit

    same = apply_change(bandit, ArmsChanged([Arm("a", [], {"price": 1.0})]))
    other = apply_change(bandit, ArmsChanged([Arm("b", [], {"price": 3.0})]))

    assert (same.unchanged, other.changed) == (1, 1)
    assert bandit.columns["price"].values.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("first", [[True, False], [True, None]])
def test_a_flag_that_is_missing_is_neither_true_nor_false(first: list[bool | None]) -> None:
    schema = Schema.infer({"adult": [True, False]})
    bandit = Bandit(arms=schema.table({"adult": first}), ids=["a", "b"], context=2)
    put = by_name([Arm("c", {"adult": None})], schema, wanted=["adult"])

    apply_change(bandit, ArmsChanged(put))

    assert bandit.columns is not None
    missing = [first[1] is None, True]
    assert (~bandit.columns.mask({"adult": False}))[1:].tolist() == missing
    assert bandit.columns.mask({"adult": {"not": True}}).tolist() == [False, True, True]
    assert bandit.columns.row(2) == {"adult": None}
    assert apply_change(bandit, ArmsChanged(put)).unchanged == 1


def test_an_update_may_have_a_number_of_its_own_and_tells_its_losses(
    little_training: None,
) -> None:
    told: list[tuple[int, float]] = []
    bandit = Bandit(arms=ARMS, context=2)
    bandit.update(
        contexts=ARMS,
        arms=[0, 1, 2, 3],
        rewards=[0, 1, 0, 1],
        version=7,
        curve=lambda *point: told.append(point),
    )

    assert (bandit.version, bandit.freeze().version) == (7, 7)
    assert [steps for steps, _ in told] == [40]
