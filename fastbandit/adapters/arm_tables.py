"""Arms from what a retrieval system has already: a faiss index, or a table of embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import list_ids
from fastbandit.errors import InputError, SettingError, ShapeError
from fastbandit.features.kinds import to_floats
from fastbandit.packages import needed
from fastbandit.progress import Progress, silent

_AT_ONCE = 65_536


@dataclass(frozen=True)
class KnownArms:
    """Features and ids of arms: `Bandit(arms=known.features, ids=known.ids, context=...)`."""

    features: NDArray[np.float32]
    ids: list[Any]

    def __len__(self) -> int:
        return len(self.ids)


def arms_from_faiss(
    index: Any, *, ids: Iterable[Any] | None = None, progress: Progress = silent
) -> KnownArms:
    """Take the vectors and ids out of a faiss index; `ids` stand in for its own, in their order.

    Vectors that are stored in fewer bits come back as the index knows them.
    """
    faiss = _import_faiss()
    if not isinstance(index, faiss.Index) or not index.ntotal:
        raise InputError(
            f"Arms need a faiss index that holds vectors: got {type(index).__name__} of "
            f"{getattr(index, 'ntotal', 0)}. Add the vectors first."
        )
    inside = faiss.downcast_index(index)  # lives as long as the index, which owns it
    read = _in_lists if _is_in_lists(inside) else _in_row
    numbers, vectors = read(inside, progress)
    order = np.argsort(numbers, kind="stable")
    listed = numbers[order].tolist() if ids is None else list_ids(ids)
    return _known(vectors[order], listed)


def arms_from_table(
    table: Any,
    *,
    ids: Iterable[Any] | None = None,
    name: str | None = None,
    leave_out: Iterable[int] = (),
) -> KnownArms:
    """Take arms from a table of embeddings, a row each: an array, a tensor, an embedding layer.

    In a state dict, `name` says which entry (needed where more than one is a table). `ids` name
    all rows of the table, else their numbers do; rows to `leave_out` are no arms: padding, say.
    """
    rows = to_floats(_table_in(table, name), what="embeddings")
    if rows.ndim != 2:
        raise ShapeError(
            f"A table of embeddings needs the shape (arms, columns): got {rows.shape}. Give one "
            f"row for each arm."
        )
    listed = list(range(len(rows))) if ids is None else list_ids(ids)
    known, gone = _known(rows, listed), set(leave_out)
    left = [row for row in range(len(rows)) if row not in gone]
    return known if not gone else KnownArms(rows[left], [listed[row] for row in left])


def _known(features: NDArray[np.float32], ids: list[Any]) -> KnownArms:
    if len(ids) != len(features):
        raise ShapeError(
            f"Each arm needs one id: got {len(ids)} ids and {len(features)} vectors. Drop those "
            f"that have only one of the two."
        )
    return KnownArms(features, ids)


# -- faiss


def _import_faiss() -> Any:
    return needed("faiss", what="An index of faiss", extra="adapters")


def _is_in_lists(index: Any) -> bool:
    return isinstance(index, _import_faiss().IndexIVF)


def _in_row(index: Any, progress: Progress) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Read an index that has vectors in the order they came, with or without ids."""
    faiss, numbers = _import_faiss(), np.arange(index.ntotal)
    if isinstance(index, faiss.IndexIDMap | faiss.IndexIDMap2):
        numbers = faiss.vector_to_array(index.id_map).copy()
        index = faiss.downcast_index(index.index)
    if _is_in_lists(index):
        inner, vectors = _in_lists(index, progress)
        return numbers[inner], vectors
    parts = []
    for first in range(0, index.ntotal, _AT_ONCE):
        count = min(_AT_ONCE, index.ntotal - first)
        try:
            parts.append(index.reconstruct_n(first, count))
        except RuntimeError as error:
            raise SettingError(
                f"Arms need a faiss index that gives its vectors back: {type(index).__name__} does "
                f"not. Give the vectors it was built from to arms_from_table()."
            ) from error
        progress(first + count, index.ntotal, "Reading vectors")
    return numbers, np.concatenate(parts)


def _in_lists(index: Any, progress: Progress) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Read an index that has vectors in lists of near ones, with their ids."""
    faiss, numbers, lists, done = _import_faiss(), [], index.invlists, 0
    vectors = np.empty((index.ntotal, index.d), dtype=np.float32)
    for number in range(index.nlist):
        size = lists.list_size(number)
        if size:
            numbers.append(faiss.rev_swig_ptr(lists.get_ids(number), size).copy())
        for offset in range(size):
            index.reconstruct_from_offset(number, offset, faiss.swig_ptr(vectors[done]))
            done += 1
        progress(done, index.ntotal, "Reading vectors")
    return np.concatenate(numbers), vectors


# -- tables


def _table_in(table: Any, name: str | None) -> Any:
    """Return the table itself: of a layer its weight, of a state dict one entry."""
    if not isinstance(table, Mapping):
        return getattr(table, "weight", table)
    shaped = [key for key, value in table.items() if len(getattr(value, "shape", ())) == 2]
    if name is None and len(shaped) == 1:
        return table[shaped[0]]
    if name not in table:
        raise SettingError(
            f"A state dict needs the name of one entry: got {name!r}. Name one of: "
            f"{', '.join(map(str, shaped)) or 'none has two axes'}."
        )
    return table[name]
