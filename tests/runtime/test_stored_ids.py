"""Ids as a file holds them are the ids that went in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastbandit.arms.ids import IdTable
from fastbandit.errors import DuplicateArmError, SettingError, UnknownArmError
from fastbandit.runtime.stored_ids import StoredIds

IDS = ["a", "ärm 2", 'say "b", \\c', "", "\ud800", 7, -2.5, 2**70, True, ("c", 1, ("d",)), ()]
simple = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))


@pytest.fixture
def stored() -> StoredIds:
    return StoredIds.of(IdTable(IDS))


@given(st.lists(st.one_of(simple, st.tuples(simple, simple)), min_size=1, unique=True))
def test_any_ids_come_back_as_they_went_in(ids: list[Any]) -> None:
    stored = StoredIds.of(IdTable(ids))

    assert len(stored) == len(ids)
    assert [stored.id(row) for row in range(len(ids))] == ids
    assert stored.ids(range(len(ids))) == ids
    assert stored.rows(ids).tolist() == list(range(len(ids)))


def test_types_are_kept(stored: StoredIds) -> None:
    read = [stored.id(row) for row in range(len(IDS))]

    assert [type(id) for id in read] == [type(id) for id in IDS]


def test_one_id_is_read_without_reading_all(stored: StoredIds) -> None:
    assert stored.id(9) == ("c", 1, ("d",))
    assert stored.ids(np.array([1, 1, 0], dtype=np.int32)) == ["ärm 2", "ärm 2", "a"]

    assert "table" not in vars(stored)


def test_no_rows_have_no_ids(stored: StoredIds) -> None:
    assert stored.ids([]) == []


def test_an_id_is_found_as_in_a_table(stored: StoredIds) -> None:
    assert "ärm 2" in stored
    assert "b" not in stored
    assert stored.rows(np.array(["ärm 2"])).tolist() == [1]
    with pytest.raises(UnknownArmError, match="'b'"):
        stored.rows(["b"])


def test_more_ids_can_be_appended(stored: StoredIds) -> None:
    grown = stored.append(["new"])

    assert len(grown) == len(IDS) + 1
    assert grown.rows(["new", "a"]).tolist() == [len(IDS), 0]
    with pytest.raises(DuplicateArmError, match="'a'"):
        stored.append(["a"])


def test_the_id_of_an_arm_that_is_gone_is_free_again() -> None:
    table = IdTable(["a", "b"]).append(["a"], live=np.array([False, True]))

    assert StoredIds.of(table).rows(["a"]).tolist() == [2]


def test_stored_ids_are_not_written_again(stored: StoredIds) -> None:
    assert StoredIds.of(stored) is stored


@pytest.mark.parametrize("bad", [frozenset("ab"), float("inf"), b"x", ("a", None)])
def test_an_id_that_json_cannot_hold_is_named(bad: Any) -> None:
    with pytest.raises(SettingError, match=r"strings, finite numbers or tuples.*got"):
        StoredIds.of(IdTable(["a", bad]))
