"""A table says where arrays lie, for as long as they do, and compiled code reads them there."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

from fastbandit import Bandit, FrozenBandit
from fastbandit.compiler.compiled import compiled
from fastbandit.files.array_specs import ArraySpec
from fastbandit.runtime.tables import Table, _arrays_at, arrays_at, kind_of

ANY = (None, "", True)


def spec_of(array: Any) -> ArraySpec:
    return ArraySpec(tuple("abc"[: array.ndim]), (array.dtype.name,), *ANY)


def table_of(*arrays: Any) -> Table:
    return Table(arrays, [spec_of(array) for array in arrays])


def numbers(*shape: int, dtype: str = "float32") -> Any:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


ARRAYS = (
    numbers(5),
    numbers(0),
    numbers(2, 3),
    numbers(0, 3),
    numbers(2, 3, 4),
    numbers(4, dtype="int32"),
    numbers(4, 2, dtype="int32"),
    numbers(3, dtype="int64"),
)
TOLD = "f1 f1 f2 f2 f3 i1 i2 l1"


@compiled()
def read(table: Any, vectors: Any) -> Any:
    return arrays_at(table, TOLD, vectors)


@compiled()
def read_vectors(table: Any, vectors: Any) -> Any:
    return arrays_at(table, "v2", vectors)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_arrays_are_read_where_they_lie(is_compiled: bool) -> None:
    table = table_of(*ARRAYS)

    got = read(table.rows, ARRAYS[0]) if is_compiled else _arrays_at(table.rows, TOLD, ARRAYS[0])

    assert [array.dtype for array in got] == [array.dtype for array in ARRAYS]
    for one, array in zip(got, ARRAYS, strict=True):
        np.testing.assert_array_equal(one, array)
        assert one.ctypes.data == array.ctypes.data or not array.size
    assert " ".join(map(kind_of, table.specs)) == TOLD


@pytest.mark.parametrize("dtype", ["float32", "int16", "int8"])
def test_vectors_are_of_the_kind_that_is_told(dtype: str) -> None:
    vectors = numbers(4, 3, dtype=dtype)

    (got,) = read_vectors(table_of(vectors).rows, vectors[:0, 0].copy())

    assert got.dtype == dtype
    np.testing.assert_array_equal(got, vectors)


@pytest.mark.parametrize(
    "array",
    [
        numbers(3, 4).T,
        numbers(3, 4)[:, ::2],
        numbers(3, 4, dtype="float64"),
        numbers(3, 4).astype(">f4"),
        numbers(3),
    ],
    ids=["turned", "every second column", "long numbers", "bytes turned", "one axis"],
)
def test_other_arrays_are_refused(array: Any) -> None:
    wanted = spec_of(numbers(3, 4))

    with pytest.raises(ValueError, match="contiguous axes of float32"):
        Table([array], [wanted])


def test_rows_of_the_same_arrays_are_taken_from_the_table_before() -> None:
    first, second, third, other = (numbers(size) for size in (1, 2, 3, 4))
    before = table_of(first, second)

    after = Table([first, other, third], [spec_of(first)] * 3, before)

    np.testing.assert_array_equal(after.rows, table_of(first, other, third).rows)


def test_a_table_holds_its_arrays() -> None:
    array = numbers(3)
    seen, table = weakref.ref(array), table_of(array)

    del array
    gc.collect()

    assert seen() is not None
    np.testing.assert_array_equal(_arrays_at(table.rows, "f1", numbers(0))[0], numbers(3))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_speaks_of_the_arrays_that_were_copied(again: Any) -> None:
    table = table_of(numbers(3), numbers(2, 2))

    copied = again(table)

    assert copied.rows[0, 0] == copied.arrays[0].ctypes.data != table.rows[0, 0]
    np.testing.assert_array_equal(copied.rows[:, 1:], table.rows[:, 1:])


def is_true_of(table: Table, arrays: Any) -> bool:
    return [array.ctypes.data for array in arrays] == table.rows[:, 0].tolist()


def test_what_replaces_a_policy_has_a_table_of_its_own() -> None:
    frozen: FrozenBandit = Bandit(arms=np.eye(3), context=2).freeze()
    model, catalogue, _ = frozen.parts
    tables = (model.table, catalogue.table)

    frozen.add_arms(np.ones((2, 3)), ids=["a", "b"])
    changed = copy.deepcopy(model)
    _, now, _ = frozen.parts

    assert now.table is not catalogue.table
    assert is_true_of(now.table, (*now.arms.arrays, now.more, now.positions))
    assert is_true_of(changed.table, changed.arrays)
    assert is_true_of(tables[0], model.arrays)
    assert is_true_of(tables[1], (*catalogue.arms.arrays, catalogue.more, catalogue.positions))
