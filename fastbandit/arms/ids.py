"""The ids of the arms: names outside, rows inside."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import DuplicateArmError, InputError, ShapeError, UnknownArmError
from fastbandit.features.kinds import shown

_PART = 4096


@runtime_checkable
class ArmIds(Protocol):
    """One id for each row: held in memory, or read from a file one at a time."""

    @property
    def is_numbered(self) -> bool: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Hashable]: ...

    def __contains__(self, id: Any) -> bool: ...

    def rows(self, ids: Iterable[Any]) -> NDArray[np.int64]: ...

    def find(self, ids: list[Any]) -> NDArray[np.int64]: ...

    def ids(self, rows: Iterable[int] | NDArray[np.int64]) -> list[Hashable]: ...

    def id(self, row: int) -> Hashable: ...

    def append(self, ids: Iterable[Any], *, live: NDArray[np.bool_] | None = None) -> ArmIds: ...


class IdTable:
    """One id for each row, never changed: `append` returns a new table.

    Without ids the rows are their own names, held as a range. NumPy's scalars are the same
    ids as the Python values they hold.
    """

    __slots__ = ("_ids", "_rows")

    def __init__(self, ids: Iterable[Any] | None = None, *, count: int | None = None) -> None:
        listed = None if ids is None else list_ids(ids)
        size = (count or 0) if listed is None else len(listed)
        if size < 1:
            raise InputError("A bandit needs at least one arm: got none. Give arms or ids.")
        if count is not None and size != count:
            raise ShapeError(
                f"Each arm needs one id: got {size} ids and {count} rows of features. Drop "
                f"the arms that have only one of the two."
            )
        self._ids: Sequence[Hashable] = range(size) if listed is None else listed
        self._rows = None if listed is None else _number(listed)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._ids)

    def __contains__(self, id: Any) -> bool:
        return self._row(id) is not None

    @property
    def is_numbered(self) -> bool:
        """Whether the ids are the rows themselves, as when none were given."""
        return self._rows is None

    def rows(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        listed = list_ids(ids)
        found = self.find(listed)
        if len(found) and found.min() < 0:
            raise UnknownArmError(
                f"An id needs to be one of the {len(self)} arms, {self._sample()}: got "
                f"{listed[int(found.argmin())]!r}. Add that arm first, or correct its id."
            )
        return found

    def find(self, ids: list[Any]) -> NDArray[np.int64]:
        """Return the row of each id, -1 where it is of no arm."""
        try:
            parts = [self._find(few) for few in _parts(ids)]
        except (TypeError, ValueError, OverflowError):  # not all can be ids: the slow way
            rows = (self._row(id) for id in ids)
            return np.array([-1 if row is None else row for row in rows], dtype=np.int64)
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def ids(self, rows: Iterable[int] | NDArray[np.int64]) -> list[Hashable]:
        """Return the id of each row, counted from 0."""
        listed = np.asarray(rows, dtype=np.int64).tolist()
        return [self._ids[row] for row in listed]

    def id(self, row: int) -> Hashable:
        return self._ids[row]

    @staticmethod
    def restored(ids: list[Any]) -> IdTable:
        """Return the table that listed these ids: the last of equal ones is the one in use."""
        table = IdTable.__new__(IdTable)
        table._ids = range(len(ids)) if ids == list(range(len(ids))) else ids
        table._rows = None if isinstance(table._ids, range) else {id: r for r, id in enumerate(ids)}
        return table

    def append(self, ids: Iterable[Any], *, live: NDArray[np.bool_] | None = None) -> IdTable:
        """Return a table with more rows at its end; ids of rows not live are free again."""
        fresh = list_ids(ids)
        _number(fresh)
        known = next((id for id in fresh if self._is_taken(id, live)), None)
        if known is not None:
            raise DuplicateArmError(
                f"A new arm needs an id of its own: got {known!r}, which is row "
                f"{self._row(known)} already. Leave it out, or give it another id."
            )
        return IdTable.restored([*self._ids, *fresh])

    def _is_taken(self, id: Any, live: NDArray[np.bool_] | None) -> bool:
        row = self._row(id)
        return row is not None and (live is None or bool(live[row]))

    def _row(self, id: Any) -> int | None:
        id = id.item() if isinstance(id, np.generic) else id
        if self._rows is None:
            is_row = isinstance(id, int | float) and 0 <= id < len(self) and id == int(id)
            return int(id) if is_row else None
        try:
            return self._rows.get(id)
        except TypeError:  # a list, say: it cannot be an id
            return None

    def _find(self, ids: list[Any]) -> NDArray[np.int64]:
        """Find all rows at once, or raise where that cannot be done."""
        if self._rows is not None:
            found = map(self._rows.get, ids, repeat(-1))
            return np.fromiter(found, dtype=np.int64, count=len(ids))
        numbers = np.asarray(ids)
        if len(ids) and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
            raise TypeError
        return np.where((numbers >= 0) & (numbers < len(self)), numbers, -1).astype(np.int64)

    def _sample(self) -> str:
        if len(self) == 1:
            return repr(self._ids[0])
        return f"{self._ids[0]!r} to {self._ids[-1]!r}"


def list_ids(ids: Any, *, what: str = "Ids of arms") -> list[Any]:
    """Read ids from a list, set, array, series or tensor as Python values."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        fix = "Give its .arms" if hasattr(ids, "arms") else "Put a single one into a list of one"
        raise InputError(f"{what} need to come in a list: got {shown(ids)}. {fix}.")
    if hasattr(ids, "tolist"):
        listed = ids.tolist()
        return listed if isinstance(listed, list) else [listed]
    listed = list(ids)
    if not has_kind(listed, np.generic):
        return listed
    return [id.item() if isinstance(id, np.generic) else id for id in listed]


def has_kind(ids: Iterable[Any], kind: type | tuple[type, ...]) -> bool:
    """Return whether any of them is of a kind: their few types are asked, and not each of many."""
    return any(issubclass(one, kind) for one in set(map(type, ids)))


def _parts(ids: list[Any]) -> Iterator[list[Any]]:
    """Take ids by the thousands: between two parts, other threads get Python's lock."""
    return (ids[first : first + _PART] for first in range(0, max(1, len(ids)), _PART))


_PLAIN = {str, int}  # all of which can be ids


def _number(ids: list[Any]) -> dict[Hashable, int]:
    """Map each id to its row, or name the first that comes twice or cannot be an id."""
    rows: dict[Hashable, int] = {}
    if {*map(type, ids)} <= _PLAIN:
        rows = dict(zip(ids, range(len(ids)), strict=True))
        if len(rows) == len(ids):
            return rows
        rows = {}
    for row, id in enumerate(ids):
        if not isinstance(id, Hashable) or id != id:
            raise InputError(
                f"An id needs to be hashable, and no gap: got {id!r} for row {row}. Use a string, "
                f"a number or a tuple, or drop that arm."
            )
        if rows.setdefault(id, row) != row:
            raise DuplicateArmError(
                f"Each arm needs an id of its own: got {id!r} for rows {rows[id]} and {row}. "
                f"Drop or rename one of the two."
            )
    return rows
