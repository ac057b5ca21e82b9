"""The ids of the arms as a file holds them, read one at a time."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import read_only
from fastbandit.arms.ids import IdTable
from fastbandit.errors import SnapshotError
from fastbandit.files.array_specs import check_arrays, stored
from fastbandit.files.json_ids import id_from_json, id_to_json

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder()
_CODEC = ("utf-8", "surrogatepass")  # any string may be an id
_UNREADABLE = (ValueError, LookupError, TypeError, RecursionError)


@dataclass(frozen=True, eq=False)
class StoredIds:
    """One id for each row, read as those of an `IdTable` are.

    `text` is one JSON list, `starts` says where in it each id begins, and the end. An id is
    decoded when it is asked for; all are when one must be found.
    """

    text: NDArray[np.uint8] = stored("letters", "uint8")
    starts: NDArray[np.int64] = stored("ends", "int64", least=1, below="past")

    def check(self) -> StoredIds:
        """Raise ValueError unless each id has a place in the text; what it says is read later."""
        letters, ends = len(self.text), self.starts
        check_arrays(self, {"letters": letters, "ends": max(2, ends.size), "past": letters + 1})
        if ends[0] != 1 or ends[-1] != letters or (np.diff(ends) < 2).any():
            raise ValueError("starts do not follow one another to the end of the text")
        return self

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.table)

    def __contains__(self, id: Any) -> bool:
        return id in self.table

    @property
    def is_numbered(self) -> bool:
        """Whether the ids are the rows themselves: such ids are not stored."""
        return False

    def rows(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Find the row of each id; the first time takes a second for a million."""
        return self.table.rows(ids)

    def find(self, ids: list[Any]) -> NDArray[np.int64]:
        """Return the row of each id, -1 where it is of no arm."""
        return self.table.find(ids)

    def ids(self, rows: Iterable[int] | NDArray[np.int64]) -> list[Hashable]:
        """Return the id of each row, counted from 0."""
        positions = np.asarray(rows, dtype=np.int64)
        firsts, lasts = self.starts[positions].tolist(), self.starts[positions + 1].tolist()
        ends = zip(firsts, lasts, strict=True)
        return _decoded(b",".join([self._view[first : last - 1] for first, last in ends]))

    def id(self, row: int) -> Hashable:
        """Return the id of one row."""
        piece = self._view[self.starts[row] : self.starts[row + 1] - 1]
        try:
            written, _ = _DECODER.raw_decode(str(piece, *_CODEC))  # half the time of json.loads
            return id_from_json(written)
        except _UNREADABLE as error:
            raise _damaged(error) from error

    def append(self, ids: Iterable[Any], *, live: NDArray[np.bool_] | None = None) -> IdTable:
        """Return a table with more rows at its end; ids of rows not live are free again."""
        return self.table.append(ids, live=live)

    @cached_property
    def table(self) -> IdTable:
        """All ids, decoded."""
        listed = _decoded(self._view[1:-1])
        if len(listed) != len(self):
            raise _damaged(ValueError(f"{len(listed)} of {len(self)}"))
        return IdTable.restored(listed)

    @cached_property
    def _view(self) -> memoryview:
        return self.text.data

    @staticmethod
    def of(ids: Iterable[Hashable]) -> StoredIds:
        """Write ids as a file holds them."""
        if isinstance(ids, StoredIds):
            return ids
        pieces = [_ENCODER.encode(id_to_json(id)).encode(*_CODEC) for id in ids]
        text = np.frombuffer(b"[" + b",".join(pieces) + b"]", dtype=np.uint8)
        lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
        starts = 1 + np.concatenate([[0], np.cumsum(lengths + 1)])
        return StoredIds(read_only(text), read_only(starts))


def _decoded(pieces: bytes | memoryview) -> list[Hashable]:
    """Decode many ids, written one after the other."""
    try:
        listed = list(map(id_from_json, json.loads("[" + str(pieces, *_CODEC) + "]")))
        hash(tuple(listed))
    except _UNREADABLE as error:
        raise _damaged(error) from error
    return listed


def _damaged(error: Exception) -> SnapshotError:
    return SnapshotError(
        f"The ids of the arms cannot be read ({type(error).__name__}: {error}). Load an older copy."
    )
