"""Ids are names outside, rows inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.arms.ids import IdTable
from fastbandit.errors import DuplicateArmError, InputError, ShapeError, UnknownArmError


def test_ids_and_rows_are_found_from_each_other() -> None:
    table = IdTable(["a", "b", ("c", 1)])

    assert table.rows([("c", 1), "a"]).tolist() == [2, 0]
    assert table.ids([1, 2]) == ["b", ("c", 1)]


@given(
    st.lists(st.one_of(st.text(), st.integers(), st.tuples(st.integers())), min_size=1, unique=True)
)
def test_any_hashable_ids_come_back_as_they_went_in(ids: list[Any]) -> None:
    table = IdTable(ids)

    assert table.ids(table.rows(ids)) == ids == list(table)


def test_without_ids_the_rows_are_their_own_names() -> None:
    table = IdTable(count=5)

    assert table.is_numbered
    assert table.rows([4, 0]).tolist() == [4, 0]
    assert table.ids(np.array([3])) == [3]


def test_a_numbered_table_of_a_billion_arms_costs_nothing() -> None:
    assert IdTable(count=10**9).rows([10**9 - 1]).tolist() == [10**9 - 1]


@pytest.mark.parametrize("ids", [None, [0, 1, 2, 3]])
@pytest.mark.parametrize("id", [3, np.int64(3), np.uint8(3), 3.0, np.float32(3)])
def test_equal_numbers_are_equal_ids(ids: list[int] | None, id: Any) -> None:
    assert IdTable(ids, count=4).rows([id]).tolist() == [3]


def test_numpy_scalars_are_the_python_values_they_hold() -> None:
    table = IdTable(np.array(["x", "y"]))

    assert table.rows(["y", np.str_("x")]).tolist() == [1, 0]
    assert type(table.ids([0])[0]) is str


@pytest.mark.parametrize("bad", [5, -1, 2.5, "3", None, (1,), [1], float("nan"), 2**80])
def test_an_unknown_id_of_a_numbered_table_is_named(bad: Any) -> None:
    with pytest.raises(UnknownArmError) as caught:
        IdTable(count=5).rows([0, bad])

    assert f"one of the 5 arms, 0 to 4: got {bad!r}. Add that arm first" in str(caught.value)


@pytest.mark.parametrize("bad", ["c", 0, None, ["a"]])
def test_an_unknown_id_of_a_named_table_is_named(bad: Any) -> None:
    with pytest.raises(UnknownArmError) as caught:
        IdTable(["a", "b"]).rows(["a", bad])

    assert f"one of the 2 arms, 'a' to 'b': got {bad!r}" in str(caught.value)


def test_duplicate_ids_are_refused_with_both_rows() -> None:
    with pytest.raises(DuplicateArmError, match="got 'a' for rows 0 and 2"):
        IdTable(["a", "b", np.str_("a")])


def test_append_gives_a_new_table_and_leaves_the_old_one() -> None:
    old = IdTable(["a"])
    new = old.append(["b", "c"])

    assert (len(old), len(new)) == (1, 3)
    assert new.rows(["c"]).tolist() == [2]
    assert "c" not in old


def test_append_keeps_a_numbered_table_numbered_while_it_can() -> None:
    table = IdTable(count=3).append([3, 4])

    assert table.is_numbered
    assert len(table) == 5
    assert not table.append(["extra"]).is_numbered
    assert table.append(["extra"]).rows([4, "extra"]).tolist() == [4, 5]


@pytest.mark.parametrize("fresh", [["b", "a"], ["c", "c"]])
def test_append_refuses_ids_that_are_taken(fresh: list[str]) -> None:
    with pytest.raises(DuplicateArmError, match="id of its own"):
        IdTable(["a"]).append(fresh)


@pytest.mark.parametrize("ids", [[], None])
def test_an_empty_table_is_refused(ids: list[str] | None) -> None:
    with pytest.raises(InputError, match="at least one arm"):
        IdTable(ids, count=0 if ids is None else None)


def test_each_arm_needs_one_id() -> None:
    with pytest.raises(ShapeError, match="got 2 ids and 3 rows"):
        IdTable(["a", "b"], count=3)


@pytest.mark.parametrize("bad", ["abc", 7])
def test_a_single_id_outside_a_list_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="come in a list"):
        IdTable(count=10).rows(bad)


def test_an_id_that_cannot_be_hashed_is_refused() -> None:
    with pytest.raises(InputError, match="hashable"):
        IdTable([["a"], ["b"]])
