"""Ids that no arm has are dropped from what is eligible, and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastbandit.arms.ids import IdTable
from fastbandit.arms.rows import ArmRows
from fastbandit.arms.stale_ids import check_known, drop_stale
from fastbandit.errors import UnknownArmError

ROWS = ArmRows.of(IdTable(["tea", "rum", "gin", ("a", 1)])).discarded(["gin"])[0]


@pytest.mark.parametrize(
    ("eligible", "left", "dropped"),
    [
        (None, None, [0, 0]),
        (["tea", "rum"], ["tea", "rum"], [0, 0]),
        (["tea", "old", "gin"], ["tea"], [2, 2]),
        ({"tea", "old"}, ["tea"], [1, 1]),
        ([["tea", "old"], ["rum"]], [["tea"], ["rum"]], [1, 0]),
        ([{"price": 1}, ["old", "tea"]], [{"price": 1}, ["tea"]], [0, 1]),
        ([("a", 1), ("b", 2)], [("a", 1)], [1, 1]),
        ({"price": {"<": 1}}, {"price": {"<": 1}}, [0, 0]),
    ],
)
def test_stale_ids_are_left_out(eligible: Any, left: Any, dropped: list[int]) -> None:
    found, counts = drop_stale(eligible, ROWS, contexts=2)

    assert found == left
    assert counts.tolist() == dropped


def test_a_mask_has_no_stale_ids() -> None:
    mask = np.array([True, False, True, False])

    found, counts = drop_stale(mask, ROWS, contexts=1)

    assert found is mask
    assert counts.tolist() == [0]


def test_where_nothing_else_is_left_stale_ids_stay_to_be_refused() -> None:
    found, counts = drop_stale(["old", "older"], ROWS, contexts=1)

    assert found == ["old", "older"]
    assert counts.tolist() == [0]


@pytest.mark.parametrize("eligible", [["tea", "old"], [["tea"], ["old"]], [None, ["old"], {}]])
def test_an_id_that_no_arm_ever_had_can_be_refused(eligible: Any) -> None:
    with pytest.raises(UnknownArmError, match="'old'"):
        check_known(eligible, ROWS.ids)


@pytest.mark.parametrize("eligible", [None, ["tea", "gin"], {"price": 1}, np.ones(4, dtype=bool)])
def test_an_id_that_some_arm_had_is_known(eligible: Any) -> None:
    check_known(eligible, ROWS.ids)


def test_ids_that_were_read_are_not_looked_up_again_until_the_catalogue_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, _ = drop_stale(["tea", "rum", "old"], ROWS, contexts=1)
    later = ROWS.discarded(["rum"])[0]
    with monkeypatch.context() as patched:
        patched.setattr(IdTable, "find", None)
        patched.setattr(IdTable, "rows", None)
        assert drop_stale(known, ROWS, contexts=1)[0] is known
        check_known(known, ROWS.ids)

    assert (known, known.found.tolist()) == (["tea", "rum"], [0, 1])
    assert drop_stale(known, later, contexts=1)[0] == ["tea"]
