"""The rows of a catalogue: an id, features and columns each, which are live, which are eligible.

Rows never move: an arm that is discarded keeps its row, unused. `ArmRows` are never changed, only
replaced: whoever holds some sees one state of the catalogue. What embeds arms
(`fastbandit.arms.catalogue`) and what serves them frozen (`fastbandit.runtime.frozen_catalogue`)
hold these rows, and add what is theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Mask
from fastbandit.arms.columns import Columns
from fastbandit.arms.eligibility import read_eligible
from fastbandit.arms.ids import ArmIds, list_ids
from fastbandit.errors import EligibilityError, InputError, SettingError, ShapeError
from fastbandit.types import Inputs

Rows = NDArray[np.int64]
IsSame = Callable[[NDArray[np.int64], Rows], Mask]
"""Compares the features of new arms, by their positions, with those of rows."""


class Upserted(NamedTuple):
    """How many arms are new, took a new row in place of their id's, and were there just so."""

    added: int
    changed: int
    unchanged: int


@dataclass(frozen=True)
class ArmRows:
    """Ids of the arms, and by row: whether they are live, their features, and their columns.

    Frozen arms have coordinates in place of features.
    """

    ids: ArmIds
    live: Mask
    features: Inputs | None = None
    columns: Columns | None = None

    @staticmethod
    def of(ids: ArmIds, features: Inputs | None = None, columns: Any = None) -> ArmRows:
        """Return the rows of arms that are all live."""
        if len(ids) == 0:
            raise InputError("A catalogue needs at least one arm: got none. Give ids or features.")
        rows = ArmRows(ids, np.ones(len(ids), dtype=np.bool_), features)
        return rows if columns is None else rows.with_columns(columns)

    # -- what is there

    @property
    def total(self) -> int:
        """The number of rows there ever were."""
        return len(self.live)

    @cached_property
    def live_count(self) -> int:
        """The number of arms that can be chosen."""
        return int(np.count_nonzero(self.live))

    @cached_property
    def live_rows(self) -> Rows:
        """The rows that can be chosen, in order."""
        return np.flatnonzero(self.live)

    def is_live(self, id: Any) -> bool:
        """Return whether an arm can be chosen."""
        return id in self.ids and bool(self.live[self.ids.rows([id])[0]])

    def are_live(self, rows: Any) -> bool:
        """Return whether all rows (but -1, which is none) can be chosen."""
        rows = np.asarray(rows)
        return bool(self.live[rows[rows >= 0]].all())

    def live_rows_of(self, ids: list[Any]) -> Rows:
        """Return the row of each id, -1 where no arm of that id can be chosen."""
        rows = self.ids.find(ids)
        return np.where(self.live[rows], rows, -1)  # of -1, whatever it says, -1 remains

    def eligible(self, eligible: Any, *, contexts: int) -> Mask | None:
        """Read what contexts may choose: (B, N), (1, N) for all alike, or None for all arms."""
        return read_eligible(
            eligible, self.ids, contexts=contexts, live=self.live, columns=self.columns
        )

    # -- changes

    def with_columns(self, columns: Any) -> ArmRows:
        """Return the same arms with other columns, one value for each row there ever was."""
        return replace(self, columns=Columns.of(columns, rows=self.total))

    def added(
        self, count: int, ids: Iterable[Any] | None, *, features: Inputs | None, columns: Any
    ) -> ArmRows:
        """Return rows with so many more at their end, all live."""
        first = self.total
        table = self.ids.append(range(first, first + count) if ids is None else ids, live=self.live)
        if len(table) != first + count:
            raise ShapeError(
                f"Each new arm needs one id and one row of features: got {len(table) - first} "
                f"ids and {count} rows. Drop those that have only one of the two."
            )
        if features is not None and self.features is not None:
            features = Inputs.stack([self.features, features])
        if self.columns is None and columns is not None:
            raise SettingError(
                f"New arms need the columns of the others: got {', '.join(columns)}, and the "
                f"others have none. Call set_columns() first."
            )
        more = None if self.columns is None else self.columns.added(columns, rows=count)
        live = np.append(self.live, np.ones(count, dtype=np.bool_))
        return ArmRows(table, live, features, more)

    def upserted(
        self, ids: list[Any], *, features: Inputs | None, columns: Any, is_same: IsSame
    ) -> tuple[ArmRows, NDArray[np.int64], Upserted]:
        """Return rows with some arms added, the positions of those among `ids`, and counts.

        An arm whose id is live takes a new row, unless its features and columns are the same.
        """
        rows = self.live_rows_of(ids)
        given = None if columns is None else Columns.of(columns, rows=len(ids))
        known = np.flatnonzero(rows >= 0)
        is_held = np.zeros(len(ids), dtype=np.bool_)
        is_held[known] = is_same(known, rows[known])
        if self.columns is not None:
            for position, row in zip(known.tolist(), rows[known].tolist(), strict=True):
                values = {} if given is None else given.row(position)
                is_held[position] &= self.columns.row(row) == values
        fresh = np.flatnonzero(~is_held)
        replaced = rows[fresh][rows[fresh] >= 0]
        counts = Upserted(len(fresh) - len(replaced), len(replaced), len(ids) - len(fresh))
        if not len(fresh):
            return self, fresh, counts
        taken = None if features is None else features.take(fresh)
        if taken is not None and taken.ids is not None:  # which are their rows
            taken = replace(taken, ids=np.arange(self.total, self.total + len(taken)))
        grown = self._without(replaced).added(
            len(fresh),
            [ids[position] for position in fresh],
            features=taken,
            columns=None if given is None else given.take(fresh),
        )
        return grown, fresh, counts

    def discarded(self, ids: Iterable[Any]) -> tuple[ArmRows, list[Any]]:
        """Return rows in which these arms cannot be chosen, and the ids that could not before."""
        listed = list(dict.fromkeys(list_ids(ids)))
        rows = self.live_rows_of(listed)
        missing = [id for id, row in zip(listed, rows.tolist(), strict=True) if row < 0]
        if len(missing) == len(listed):
            return self, missing
        without = self._without(rows[rows >= 0])
        if without.live_count == 0:
            raise EligibilityError(
                f"A catalogue needs at least one arm: discarding {self.live_count} arms would "
                f"leave none. Add others first."
            )
        return without, missing

    def _without(self, rows: Rows) -> ArmRows:
        if not len(rows):
            return self
        live = self.live.copy()
        live[rows] = False
        return replace(self, live=live)
