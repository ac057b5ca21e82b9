"""The arms of a frozen bandit now: those in partitions, those added since, and which are gone.

A `Live` is never changed, only replaced: whoever holds one sees one state of the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.ids import IdTable
from fastbandit.arms.partitions import NEIGHBOURS, Floats, Positions, build_partitions
from fastbandit.errors import EligibilityError, InputError, SettingError
from fastbandit.runtime.columns import Columns, Recent, canonical
from fastbandit.runtime.parts import FrozenArms, still
from fastbandit.runtime.stored_ids import StoredIds
from fastbandit.search.limits import FEW

_EVERYTHING = still(np.empty(0, dtype=np.bool_))
_NOWHERE = still(np.empty(0, dtype=np.int32))


class Gate(NamedTuple):
    """What may be chosen: a mask of rows and how many it lets through, or a few places.

    A mask of no length lets everything through; no places listed: any.
    """

    eligible: NDArray[np.bool_]
    eligible_count: int
    listed: Positions


class Put(NamedTuple):
    """How many arms are new, took the place of one of the same id, and were there just so."""

    added: int
    changed: int
    unchanged: int


@dataclass(frozen=True)
class Live:
    """Arms in partitions, `more` that are not in partitions yet (rows from `first_more` on), and ids.

    `alive` is by row, and None while no arm was removed since the partitions were made. `columns`
    are what predicates speak of.
    """

    arms: FrozenArms
    ids: IdTable | StoredIds
    more: Floats
    first_more: int
    live: NDArray[np.bool_] | None = None
    columns: Columns | None = None

    def __len__(self) -> int:
        """The number of arms that can be chosen."""
        return self.eligible_count

    @property
    def rows(self) -> int:
        """The number of rows there ever were."""
        return self.first_more + len(self.more)

    @cached_property
    def eligible_count(self) -> int:
        if self.live is None:
            return len(self.arms.order) + len(self.more)
        return int(np.count_nonzero(self.is_eligible))

    @cached_property
    def gate(self) -> Gate:
        """Let all arms through that can be chosen; where those are few of more, list them."""
        if self.eligible_count < self.rows and self.eligible_count <= FEW:
            return self.gate_to(self.eligible_rows)
        return Gate(
            _EVERYTHING if self.live is None else still(self.live), self.eligible_count, _NOWHERE
        )

    @cached_property
    def is_eligible(self) -> NDArray[np.bool_]:
        """Whether each row can be chosen."""
        is_eligible = self.places >= 0
        return is_eligible if self.live is None else is_eligible & self.live

    @cached_property
    def eligible_rows(self) -> NDArray[np.int64]:
        """The rows that can be chosen, in order."""
        return np.flatnonzero(self.is_eligible)

    def gate_where(self, predicate: Mapping[str, Any]) -> Gate:
        """Let the rows through on whose columns a predicate holds; recent gates are kept."""
        return self._gates.get(canonical(predicate), self._gate_where)

    def _gate_where(self, text: str) -> Gate:
        if self.columns is None:
            raise SettingError(
                f"A predicate needs columns of the arms to speak of: got {text}, and no columns. "
                f"Call set_columns() first."
            )
        return self.gate_for(self.columns.mask_of(text))

    @cached_property
    def _gates(self) -> Recent[Gate]:
        return Recent()

    def gate_for(self, eligible: NDArray[np.bool_]) -> Gate:
        """Let only some rows through; where those are few, list them."""
        is_eligible = eligible & self.is_eligible
        eligible_count = int(np.count_nonzero(is_eligible))
        if eligible_count > FEW:
            return Gate(still(is_eligible), eligible_count, _NOWHERE)
        return self.gate_to(np.flatnonzero(is_eligible))

    def gate_to(self, rows: NDArray[np.int64]) -> Gate:
        """Let only these few rows through."""
        rows = np.unique(rows[self.is_eligible[rows]])
        if not len(rows):
            raise EligibilityError(
                "A context needs at least one arm that it may choose: got none that can be "
                "chosen. Allow more arms, or leave the context out."
            )
        return Gate(_EVERYTHING, len(rows), still(self.places[rows]))

    @cached_property
    def places(self) -> Positions:
        """The place of each row, -1 for rows that were gone when the partitions were made."""
        places = np.full(self.rows, -1, dtype=np.int32)
        count = len(self.arms.order)
        places[self.arms.order] = np.arange(count, dtype=np.int32)
        places[self.first_more :] = count + np.arange(len(self.more), dtype=np.int32)
        return places

    def are_live(self, rows: Any) -> bool:
        """Tell whether all rows (but -1, an empty place) can be chosen."""
        rows = np.asarray(rows)
        return bool(self.is_eligible[rows[rows >= 0]].all())

    def points_of(self, rows: Any) -> Floats:
        """Give the coordinates of rows that have a place (of row 0 where a place is empty)."""
        places, count = self.places[np.maximum(rows, 0)], len(self.arms.order)
        factor, shift = self.arms.decode
        points = self.arms.vectors[np.minimum(places, count - 1)] * factor + shift
        if len(self.more):
            is_more = places >= count
            points[is_more] = self.more[places[is_more] - count]
        return np.asarray(points, dtype=np.float32)

    def rows_through(self, gate: Gate) -> NDArray[np.int64] | None:
        """Give the rows that a gate lets through, in order, or None for all there ever were."""
        if len(gate.listed):
            count, listed = len(self.arms.order), gate.listed.astype(np.int64)
            known = self.arms.order[np.minimum(listed, count - 1)]
            return np.where(listed < count, known, self.first_more + listed - count)
        if len(gate.eligible):
            return np.flatnonzero(self.is_eligible & gate.eligible)
        return self.eligible_rows if self.eligible_count < self.rows else None

    def with_columns(self, columns: Any) -> Live:
        """Give the same arms with other columns, one value for each row there ever was."""
        return replace(self, columns=Columns.of(columns, rows=self.rows))

    def added(self, points: Floats, ids: Iterable[Any] | None, columns: Any = None) -> Live:
        """Give the arms with more at their end."""
        first, count = self.rows, len(points)
        given = range(first, first + count) if ids is None else list(ids)
        table = self.ids.append(given, live=self.is_eligible)
        if len(table) != first + count:
            raise InputError(
                f"Each new arm needs one id and one row of features: got {len(table) - first} "
                f"ids and {count} rows. Drop those that have only one of the two."
            )
        live = None if self.live is None else np.append(self.live, np.ones(count, np.bool_))
        more = still(np.concatenate([self.more, points.astype(np.float32)]))
        return replace(
            self, ids=table, more=more, live=live, columns=self._more_columns(columns, count)
        )

    def _more_columns(self, columns: Any, count: int) -> Columns | None:
        if self.columns is not None:
            return self.columns.added(columns, rows=count)
        if columns is not None:
            raise SettingError(
                f"New arms need the columns of the others: got {', '.join(columns)}, and the "
                f"others have none. Call set_columns() first."
            )
        return None

    def put(
        self, points: Floats, ids: list[Any], columns: Mapping[str, list[Any]] | None = None
    ) -> tuple[Live, Put]:
        """Give the arms with some added; one whose id can be chosen already takes its place."""
        rows, told = self.eligible_rows_of(ids), _by_row(columns, len(ids))
        three = zip(rows.tolist(), points, told, strict=True)
        is_same = np.array([self._is_at(row, *of_it) for row, *of_it in three], dtype=np.bool_)
        fresh = np.flatnonzero(~is_same)
        changed = rows[fresh][rows[fresh] >= 0]
        counts = Put(len(fresh) - len(changed), len(changed), len(ids) - len(fresh))
        if not len(fresh):
            return self, counts
        is_live = np.ones(self.rows, dtype=np.bool_) if self.live is None else self.live.copy()
        is_live[changed] = False
        live = replace(self, live=is_live) if len(changed) else self
        some = {name: [told[n][name] for n in fresh] for name in columns or ()}
        return live.added(points[fresh], [ids[n] for n in fresh], some or None), counts

    def eligible_rows_of(self, ids: list[Any]) -> NDArray[np.int64]:
        """Give the row of each id, -1 where no arm of that id can be chosen."""
        rows = np.full(len(ids), -1, dtype=np.int64)
        known = [place for place, id in enumerate(ids) if id in self.ids]
        rows[known] = self.ids.rows([ids[place] for place in known])
        rows[known] = np.where(self.is_eligible[rows[known]], rows[known], -1)
        return rows

    def _is_at(self, row: int, point: Floats, columns: dict[str, Any]) -> bool:
        """Tell whether an open row has these coordinates, but for rounding, and these columns."""
        if row < 0:
            return False
        held = self.points_of(np.array([row]))[0]
        is_same = np.allclose(held, point, rtol=1e-4, atol=1e-4)
        return is_same and (self.columns is None or self.columns.row(row) == columns)

    def removed(self, ids: Iterable[Any]) -> Live:
        """Give the arms without some."""
        rows = self.ids.rows(ids)
        gone = rows[~self.is_eligible[rows]]
        if len(gone):
            raise InputError(
                f"Only arms that can be chosen can be removed: got {self.ids.ids(gone)[0]!r}, "
                f"which was removed before. Leave it out."
            )
        live = np.ones(self.rows, dtype=np.bool_) if self.live is None else self.live.copy()
        live[rows] = False
        without = replace(self, live=live)
        if without.eligible_count == 0:
            raise EligibilityError(
                f"A catalogue needs at least one arm: removing {len(rows)} arms would leave "
                f"none. Add others first."
            )
        return without

    def in_partitions(self) -> FrozenArms:
        """Put all arms that can be chosen into partitions anew; takes seconds for a million."""
        rows = np.concatenate([self.arms.order, self.first_more + np.arange(len(self.more))])
        vectors = np.concatenate([self.arms.points, self.more])
        if self.live is not None:
            is_live = self.live[rows]
            rows, vectors = rows[is_live], vectors[is_live]
        order = np.argsort(rows, kind="stable")
        partitions = build_partitions(vectors[order])
        near = partitions.graph(NEIGHBOURS)
        return FrozenArms.of(partitions, rows[order], near, dtype=self.arms.dtype)

    def moved_into(self, arms: FrozenArms, before: Live) -> Live:
        """Give these arms with partitions that were made of an earlier state."""
        new = len(before.more)
        first = before.first_more + new
        moved = replace(self, arms=arms, more=still(self.more[new:]), first_more=first)
        if moved.live is not None and bool(moved.live[moved.places >= 0].all()):
            return replace(moved, live=None)
        return moved


def _by_row(columns: Mapping[str, list[Any]] | None, rows: int) -> list[dict[str, Any]]:
    named = {} if columns is None else columns
    return [{name: values[row] for name, values in named.items()} for row in range(rows)]
