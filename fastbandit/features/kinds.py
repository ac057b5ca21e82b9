"""The kinds of features contexts and arms may have, and how raw data is read into them.

Each kind checks what it is handed (shape, finite numbers, range of ids) and gives `Inputs`.
NumPy arrays, torch tensors, SciPy matrices and lists are read by position; frames, Arrow tables
and dicts by name, through a schema.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.declaration import part, setting
from fastbandit.errors import InputError, NotFiniteError, SettingError, ShapeError
from fastbandit.features.schema import Schema
from fastbandit.features.tables import is_named, table_of
from fastbandit.types import Inputs


@part("features", name="dense")
class Dense:
    """Vectors of `dim` numbers: those of an array, or what a `schema` makes of named columns."""

    dim: int
    schema: Schema | None = setting(default=None, came_later=True)

    @staticmethod
    def of(schema: Schema) -> Dense:
        """Return the numbers that a schema makes."""
        return Dense(schema.dim, schema)

    def grown(self, raw: Any, *, what: str) -> Dense:
        """Return the same with slots for new names in raw rows: itself where there are none."""
        if self.schema is None or not self.schema.can_grow or not is_named(raw):
            return self
        schema = self.schema.grown(raw, what=what)
        return self if schema is self.schema else Dense.of(schema)

    def read(self, raw: Any, *, what: str) -> Inputs:
        if is_named(raw):
            return Inputs(dense=self._encoded(raw, what))
        array = to_floats(raw, what=what)
        if array.ndim != 2 or array.shape[1] != self.dim:
            raise ShapeError(
                f"The {what} need shape (n, {self.dim}): got {array.shape}. Give one row of "
                f"{self.dim} numbers for each; a single one goes into a list of one."
            )
        return Inputs(dense=array)

    def _encoded(self, raw: Any, what: str) -> NDArray[np.float32]:
        if self.schema is not None:
            return self.schema.encode(raw, what=what)
        raise InputError(
            f"The {what} came with names, which this bandit does not know: got a "
            f"{type(raw).__name__}. Build the bandit from a frame or a Schema, or give numbers in "
            f"their order: frame.to_numpy()."
        )


@part("features", name="point")
class Point:
    """Points between two corners, of which near ones have nearly equal rewards."""

    low: tuple[float, ...] = setting(default=(), formerly="lowest")
    high: tuple[float, ...] = setting(default=(), formerly="highest")

    @property
    def dim(self) -> int:
        return len(self.low)

    def read(self, raw: Any, *, what: str) -> Inputs:
        return Dense(self.dim).read(raw, what=what)


@part("features", name="sparse")
class Sparse:
    """Bags of words: rows of a SciPy sparse matrix with `dim` columns, never made dense."""

    dim: int

    def read(self, raw: Any, *, what: str) -> Inputs:
        from scipy.sparse import csr_matrix, issparse

        if not issparse(raw):
            raw = to_floats(raw, what=what)
        if len(raw.shape) != 2 or raw.shape[1] != self.dim:
            raise ShapeError(
                f"The {what} need shape (n, {self.dim}): got {raw.shape}. Give a SciPy sparse "
                f"matrix with {self.dim} columns."
            )
        matrix = csr_matrix(raw, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        check_finite(matrix.data, what=what, rows=rows)
        return Inputs(sparse=matrix)


@part("features", name="image")
class Image:
    """Gray images of `height` x `width` pixels."""

    height: int
    width: int

    def __post_init__(self) -> None:
        if not all(is_size(side) and side >= 8 for side in (self.height, self.width)):
            raise SettingError(
                f"Images need at least 8 x 8 pixels, in whole numbers: got {self.height} x "
                f"{self.width}. Use Dense({self.height * self.width}) for something so small."
            )

    def read(self, raw: Any, *, what: str) -> Inputs:
        array = to_floats(raw, what=what)
        if array.ndim != 3 or array.shape[1:] != (self.height, self.width):
            raise ShapeError(
                f"The {what} need shape (n, {self.height}, {self.width}): got {array.shape}. "
                f"Give gray images, one channel, resized to that many pixels."
            )
        return Inputs(dense=array)


@part("features", name="ids")
class Ids:
    """Whole numbers from 0 to `count` - 1, each with an embedding of its own."""

    count: int

    def read(self, raw: Any, *, what: str) -> Inputs:
        array = to_array(raw, what=what)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ShapeError(
                f"The {what} need to be a list of whole numbers: got shape {array.shape} of "
                f"{array.dtype}. Number your ids from 0 first."
            )
        wrong = array[(array < 0) | (array >= self.count)]
        if len(wrong):
            raise InputError(
                f"The {what} need ids from 0 to {self.count - 1}: got {int(wrong[0])}. Make "
                f"room for new ids with a larger Ids(count)."
            )
        return Inputs(ids=array.astype(np.int64))


@part("features", name="featuresandids")
class FeaturesAndIds:
    """Pairs of (features, ids): what is known about each row, and which one it is."""

    features: Dense | Sparse | Image
    ids: Ids

    def read(self, raw: Any, *, what: str) -> Inputs:
        if not isinstance(raw, tuple) or len(raw) != 2:
            raise ShapeError(
                f"The {what} need to be a pair (features, ids): got {type(raw).__name__}. "
                f"Give both, as a tuple."
            )
        features = self.features.read(raw[0], what=f"features of the {what}")
        ids = self.ids.read(raw[1], what=f"ids of the {what}")
        if len(features) != len(ids):
            raise ShapeError(
                f"The {what} need one id for each row of features: got {len(features)} rows "
                f"and {len(ids)} ids. Drop those that have only one of the two."
            )
        return Inputs(dense=features.dense, sparse=features.sparse, ids=ids.ids)


def grown(kind: Any, raw: Any, *, what: str) -> Any:
    """Return a kind of features that has learned to read the new names of raw rows."""
    if isinstance(kind, FeaturesAndIds):
        plain = grown(kind.features, raw, what=what)
        return kind if plain is kind.features else FeaturesAndIds(plain, kind.ids)
    return kind.grown(raw, what=what) if isinstance(kind, Dense) else kind


def kind_of(raw: Any, *, what: str) -> Dense | Sparse | Image:
    """Return which kind of features raw rows have: by their names, or type and shape."""
    if is_named(raw):
        table = table_of(raw, what=what)
        return Dense.of(Schema.infer(table) if table.schema is None else table.schema)
    shape = getattr(raw, "shape", None)
    if shape is None:
        shape = to_array(raw, what=what).shape
    if hasattr(raw, "tocsr"):
        return Sparse(int(shape[1]))
    if len(shape) == 2:
        return Dense(int(shape[1]))
    if len(shape) == 3:
        return Image(int(shape[1]), int(shape[2]))
    raise ShapeError(
        f"The {what} need rows of features, shape (n, d) or (n, height, width): got "
        f"{tuple(shape) or shown(raw)}. Leave features out, and give ids=, to learn one embedding "
        f"for each."
    )


def to_array(raw: Any, *, what: str) -> NDArray[Any]:
    """Turn a frame, tensor, array or list into a NumPy array."""
    if raw is None:
        raise ShapeError(f"The {what} are needed: got None. Give one row for each.")
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu().numpy()
    elif hasattr(raw, "to_numpy"):
        raw = raw.to_numpy()
    try:
        return np.asarray(raw)
    except ValueError as error:
        raise ShapeError(
            f"The {what} need rows of equal length: got a ragged list ({error}). Give each "
            f"row the same number of values."
        ) from error


def to_floats(raw: Any, *, what: str) -> NDArray[np.float32]:
    """Turn numbers into finite float32, or say which one is not."""
    array = to_array(raw, what=what)
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"The {what} need to be numbers: got {array.dtype} ({error}). Give texts, "
                f"categories and dates by name, in a frame or dicts: Bandit(context=frame)."
            ) from error
    with np.errstate(over="ignore"):
        floats = np.array(array, dtype=np.float32, order="C")  # a copy: the caller may go on
    check_finite(floats, what=what)
    return floats


def check_finite(
    array: NDArray[np.float32], *, what: str, rows: NDArray[np.int64] | None = None
) -> None:
    """Raise where a number is NaN, infinite or too large for 32 bits; `rows` names places."""
    is_bad = ~np.isfinite(array)
    if not is_bad.any():
        return
    places = np.flatnonzero(is_bad.reshape(len(array), -1).any(axis=1))
    named = places if rows is None else np.unique(rows[places])
    raise NotFiniteError(
        f"The {what} need finite numbers: got {array[is_bad][0]} in row {named[0]} "
        f"({len(named)} such rows). Fill or drop those rows."
    )


def shown(value: Any) -> str:
    """Word a value for an error: an array by its shape, anything else in at most 80 characters."""
    shape = getattr(value, "shape", ())
    if shape:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_size(number: Any) -> bool:
    """Return whether a number can count something: whole, and at least 1."""
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    return bool(is_whole and number >= 1)
