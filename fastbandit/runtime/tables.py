"""Arrays as compiled code finds them: a table of where they lie, instead of each array itself.

Each array of a call is unpacked anew, which takes 0.1 µs: for the forty of a policy and its arms,
a fifth of a decision. A table is one array, and says of each where it begins and how long its
sides are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from fastbandit.arms.arrays import Array, Mask
from fastbandit.arms.partitions import Floats, Positions
from fastbandit.compiler.compiled import compiled
from fastbandit.files.array_specs import ArraySpec

Rows = NDArray[np.int64]
_SIDES = 3
_LINE = 64  # bytes


class Table:
    """A row for each of some arrays: its address, then its sides.

    It holds the arrays, so that they stay where they are for as long as it is held. A copy of it
    speaks of the arrays that were copied with it.
    """

    __slots__ = ("arrays", "rows", "specs")

    def __init__(
        self, arrays: Sequence[Array], specs: Sequence[ArraySpec], before: Table | None = None
    ) -> None:
        self.arrays, self.specs = tuple(arrays), tuple(specs)
        self.rows = np.zeros((len(self.arrays), 1 + _SIDES), dtype=np.int64)
        known = () if before is None else before.arrays
        if before is not None:
            self.rows[: len(known)] = before.rows
        for number, (array, spec) in enumerate(zip(self.arrays, self.specs, strict=True)):
            if number >= len(known) or array is not known[number]:
                self.rows[number] = _row_of(array, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.arrays, self.specs)


def _row_of(array: Array, spec: ArraySpec) -> tuple[int, ...]:
    """Return the address and the sides of an array that is as declared, or raise ValueError."""
    sides, axes = array.shape, len(spec.shape)
    if not array.flags.c_contiguous or array.dtype not in _kinds(spec.dtypes) or len(sides) != axes:
        raise ValueError(
            f"Compiled code reads {axes} contiguous axes of {' or '.join(spec.dtypes)}: got "
            f"{array.ndim} of {array.dtype}, with strides {array.strides}"
        )
    return (array.ctypes.data, *sides, *(0,) * (_SIDES - axes))


@cache
def _kinds(names: tuple[str, ...]) -> frozenset[Any]:
    """Return kinds of numbers by their names: to ask each array for its own takes longer."""
    return frozenset(np.dtype(name) for name in names)


# -- the same arrays, for compiled code


def pointer_to(address: int) -> Any:
    """Return a pointer, for `numba.carray`."""
    return ctypes.c_void_p(int(address))


@intrinsic
def _pointer_to(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@overload(pointer_to, strict=False)
def _compiled_pointer(address: Any) -> Any:
    return lambda address: _pointer_to(address)  # type: ignore[call-arg]


@compiled()
def floats(table: Rows, row: int) -> Floats:
    """Return the numbers of a row that has one side."""
    return carray(pointer_to(table[row, 0]), (table[row, 1],), np.float32)


@compiled()
def float_rows(table: Rows, row: int) -> Floats:
    """Return the numbers of a row that has two sides."""
    return carray(pointer_to(table[row, 0]), (table[row, 1], table[row, 2]), np.float32)


@compiled()
def float_blocks(table: Rows, row: int) -> NDArray[np.float32]:
    """Return the numbers of a row that has three sides."""
    sides = (table[row, 1], table[row, 2], table[row, 3])
    return carray(pointer_to(table[row, 0]), sides, np.float32)


@compiled()
def positions(table: Rows, row: int) -> Positions:
    """Return the positions of a row that has one side."""
    return carray(pointer_to(table[row, 0]), (table[row, 1],), np.int32)


@compiled()
def position_rows(table: Rows, row: int) -> Positions:
    """Return the positions of a row that has two sides."""
    return carray(pointer_to(table[row, 0]), (table[row, 1], table[row, 2]), np.int32)


@compiled()
def sizes(table: Rows, row: int) -> NDArray[np.int64]:
    """Return the whole numbers of a row that has one side."""
    return carray(pointer_to(table[row, 0]), (table[row, 1],), np.int64)


@compiled()
def vectors_like(table: Rows, row: int, kind: Array) -> Array:
    """Return the vectors of a row that has two sides, of the same kind of numbers as another."""
    return carray(pointer_to(table[row, 0]), (table[row, 1], table[row, 2]), kind.dtype)


# -- buffers side by side in one block of memory


@compiled()
def floats_from(address: int, count: int) -> tuple[Floats, int]:
    """Return so many numbers from an address on, and the address after them."""
    return carray(pointer_to(address), (count,), np.float32), _after(address, 4 * count)


@compiled()
def float_rows_from(address: int, rows: int, columns: int) -> tuple[Floats, int]:
    """Return so many rows of numbers from an address on, and the address after them."""
    end = _after(address, 4 * rows * columns)
    return carray(pointer_to(address), (rows, columns), np.float32), end


@compiled()
def positions_from(address: int, count: int) -> tuple[Positions, int]:
    """Return so many positions from an address on, and the address after them."""
    return carray(pointer_to(address), (count,), np.int32), _after(address, 4 * count)


@compiled()
def flags_from(address: int, count: int) -> tuple[Mask, int]:
    """Return so many flags from an address on, and the address after them."""
    return carray(pointer_to(address), (count,), np.bool_), _after(address, count)


@compiled(allocates=False)
def _after(address: int, size: int) -> int:
    """Return where the next buffer may begin: at a multiple of what a processor reads at once."""
    return address + -(-size // _LINE) * _LINE
