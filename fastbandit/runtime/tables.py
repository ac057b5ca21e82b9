"""Arrays as compiled code finds them: a table of where they lie, instead of each array itself.

Each array of a call is unpacked anew, which takes 0.1 µs: for the forty of a policy and its arms,
a fifth of a decision. A table is one array, and says of each where it begins and how long its
sides are.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_void_p
from functools import cache
from typing import Any

import numpy as np
from numba import config, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from fastbandit.arms.arrays import Array
from fastbandit.files.array_specs import ArraySpec

Rows = NDArray[np.int64]
_SIDES = 3


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


def kind_of(spec: ArraySpec) -> str:
    """Return how `arrays_at` is told of an array: its kind of numbers, and its count of sides."""
    letters = {"float32": "f", "int32": "i", "int64": "l"}
    return f"{letters[spec.dtypes[0]]}{len(spec.shape)}"


def _arrays_at(table: Rows, told: str, vectors: Array) -> tuple[Array, ...]:
    """Return the arrays of a table, where numba is disabled."""
    kinds = {"f": np.float32, "i": np.int32, "l": np.int64, "b": np.bool_, "v": vectors.dtype}
    return tuple(
        carray(c_void_p(row[0]), tuple(row[1 : 1 + int(one[1])]), kinds[one[0]])
        for row, one in zip(table.tolist(), told.split(), strict=False)
    )


@intrinsic(prefer_literal=True)
def _compiled_arrays_at(typing: Any, table: Any, told: Any, vectors: Any) -> Any:
    """Return the arrays of a table; those told of as "v" have numbers of the kind of `vectors`."""
    kinds = {"f": types.float32, "i": types.int32, "l": types.int64, "b": types.boolean}
    kinds["v"] = vectors.dtype
    each = [types.Array(kinds[one[0]], int(one[1]), "C") for one in told.literal_value.split()]
    found = types.Tuple(each)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        rows, arrays = context.make_array(table)(context, builder, given[0]), []
        for number, kind in enumerate(each):
            there = [context.get_constant(types.intp, 4 * number + one) for one in range(4)]
            row = [builder.load(builder.gep(rows.data, [one])) for one in there]
            size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            steps = [context.get_constant(types.intp, size)]
            for side in row[kind.ndim : 1 : -1]:
                steps.insert(0, builder.mul(steps[0], side))
            array = context.make_array(kind)(context, builder)
            data, sides = builder.inttoptr(row[0], array.data.type), row[1 : kind.ndim + 1]
            populate_array(array, data, sides, steps, steps[-1], None)
            arrays.append(array._getvalue())
        return context.make_tuple(builder, found, arrays)

    return found(table, told, vectors), generate


_config: Any = config
arrays_at: Any = _arrays_at if _config.DISABLE_JIT else _compiled_arrays_at
