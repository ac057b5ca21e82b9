"""The arms of a frozen bandit: those in partitions, those added since, and which are eligible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Mask, read_only
from fastbandit.arms.columns import Recent, canonical
from fastbandit.arms.eligibility import (
    draw_eligible_row,
    has_predicates,
    mask_where,
    read_eligible,
)
from fastbandit.arms.ids import ArmIds
from fastbandit.arms.neighbour_graph import neighbour_graph
from fastbandit.arms.offers import offered_ids
from fastbandit.arms.partitions import Floats, Positions, build_partitions
from fastbandit.arms.rows import ArmRows, Rows, Upserted
from fastbandit.arms.stale_ids import KnownIds
from fastbandit.errors import EligibilityError
from fastbandit.files.array_specs import ArraySpec
from fastbandit.runtime.parts import FrozenArms
from fastbandit.runtime.tables import Table
from fastbandit.search.limits import FEW

EVERYTHING = read_only(np.empty(0, dtype=np.bool_))
_UNLISTED = read_only(np.empty(0, dtype=np.int32))
_SPECS = (
    ArraySpec(("more", "dim"), ("float32",), None, "", is_finite=True),
    ArraySpec(("rows",), ("int32",), -1, "positions", is_finite=True),
)


class EligibleRows(NamedTuple):
    """What may be chosen: a mask of rows and how many those are, or a few arms by position.

    A mask of no length holds every arm; no arms listed: those of the mask.
    """

    mask: Mask
    size: int
    listed: Positions


@dataclass(frozen=True)
class FrozenCatalogue:
    """Arms in partitions, `more` that are not in partitions yet (the last rows), and their rows.

    A *position* is where an arm lies: in the order of the partitions, then among `more`.
    Catalogues are never changed, only replaced: whoever holds one sees one state of the arms.
    """

    arms: FrozenArms
    rows: ArmRows
    more: Floats

    @staticmethod
    def of(arms: FrozenArms, rows: ArmRows) -> FrozenCatalogue:
        """Return arms that are all in partitions, but for those that cannot be chosen."""
        nothing = np.empty((0, arms.vectors.shape[1]), np.float32)
        return FrozenCatalogue(arms, replace(rows, features=None), read_only(nothing))

    def __len__(self) -> int:
        """The number of arms that can be chosen."""
        return self.rows.live_count

    @property
    def ids(self) -> ArmIds:
        """The ids of the arms, by row."""
        return self.rows.ids

    @cached_property
    def learned_ids(self) -> frozenset[str]:
        """The ids of arms that came with requests and were learned from, which have dead rows."""
        return offered_ids(self.ids.ids(np.flatnonzero(~self.rows.live)))

    @cached_property
    def first_more(self) -> int:
        """The first row that is not in partitions yet."""
        return self.rows.total - len(self.more)

    @cached_property
    def positions(self) -> Positions:
        """The position of each row, -1 for rows that were gone when the partitions were made."""
        positions = np.full(self.rows.total, -1, dtype=np.int32)
        count = len(self.arms.order)
        positions[self.arms.order] = np.arange(count, dtype=np.int32)
        positions[self.first_more :] = count + np.arange(len(self.more), dtype=np.int32)
        return positions

    @cached_property
    def table(self) -> Table:
        """Where the arrays lie that compiled code reads: those of the arms, then two by row."""
        arrays = (*self.arms.arrays, self.more, self.positions)
        return Table(arrays, (*self.arms.table.specs, *_SPECS), before=self.arms.table)

    @cached_property
    def first_arm(self) -> FrozenArms:
        """Partitions with one row, for a catalogue of others: what compiled code reads needs it."""
        return replace(
            self.arms,
            order=read_only(np.zeros(1, dtype=np.int32)),
            vectors=read_only(self.arms.vectors[:1].copy()),
            graph=read_only(self.arms.graph[:1].copy()),
        )

    def points_of(self, rows: Any) -> Floats:
        """Return the coordinates of rows that have a position (of row 0 in place of -1)."""
        positions, count = self.positions[np.maximum(rows, 0)], len(self.arms.order)
        factor, shift = self.arms.decode
        points = self.arms.vectors[np.minimum(positions, count - 1)] * factor + shift
        if len(self.more):
            is_more = positions >= count
            points[is_more] = self.more[positions[is_more] - count]
        return np.asarray(points, dtype=np.float32)

    # -- what may be chosen

    @cached_property
    def all_eligible(self) -> EligibleRows:
        """All arms that can be chosen; where those are few of more, a list of them."""
        count = len(self)
        if count < self.rows.total and count <= FEW:
            return self.only(self.rows.live_rows)
        are_all = count == len(self.arms.order) + len(self.more)
        mask = EVERYTHING if are_all else read_only(self.rows.live)
        return EligibleRows(mask, count, _UNLISTED)

    def eligible(self, eligible: Any) -> EligibleRows:
        """Read what one context may choose: a predicate, a list of ids, or a mask by row."""
        if eligible is None:
            return self.all_eligible
        if isinstance(eligible, EligibleRows):
            return eligible
        if isinstance(eligible, Mapping):
            find = self._remembered.get
            columns = self.rows.columns
            return find(canonical(eligible), lambda _: self._among(mask_where(eligible, columns)))
        if isinstance(eligible, KnownIds) and eligible.rows is self.rows:
            return self._known(eligible.found)
        is_list = isinstance(eligible, list | tuple | set) and len(eligible) <= FEW
        if is_list and not any(isinstance(item, bool | np.bool_) for item in eligible):
            return self.only(self.ids.rows(eligible))
        return self.eligible_for_each(eligible, contexts=1)[0]

    def eligible_for_each(self, eligible: Any, *, contexts: int) -> list[EligibleRows]:
        """Read what contexts may choose: the same for all of them, or one for each."""
        is_known = isinstance(eligible, KnownIds) and eligible.rows is self.rows
        if eligible is None or is_known or isinstance(eligible, EligibleRows | Mapping):
            return [self.eligible(eligible)]
        if has_predicates(eligible, contexts=contexts):
            return [self.eligible(item) for item in eligible]
        masks = read_eligible(eligible, self.ids, contexts=contexts)
        assert masks is not None
        return [self._among(mask) for mask in masks]

    @cached_property
    def _remembered(self) -> Recent[EligibleRows]:
        return Recent()

    def _known(self, rows: Rows) -> EligibleRows:
        """Return what lies in some rows, few or many."""
        if len(rows) <= FEW:
            return self.only(rows)
        mask = np.zeros(self.rows.total, dtype=np.bool_)
        mask[rows] = True
        return self._among(mask)

    def _among(self, mask: Mask) -> EligibleRows:
        """Return the live rows of a mask; where those are few, a list of them."""
        mask = mask & self.rows.live
        count = int(np.count_nonzero(mask))
        if count > FEW:
            return EligibleRows(read_only(mask), count, _UNLISTED)
        return self.only(np.flatnonzero(mask))

    def only(self, rows: Rows) -> EligibleRows:
        """Return the live ones of a few rows."""
        rows = np.unique(rows[self.rows.live[rows]])
        if not len(rows):
            raise EligibilityError(
                "A context needs at least one arm that it may choose: got none that can be "
                "chosen. Let more arms be eligible, or leave the context out."
            )
        return EligibleRows(EVERYTHING, len(rows), read_only(self.positions[rows]))

    def only_drawn(self, rows: Rows | None, seed: int, *, count: int) -> EligibleRows:
        """Return a few arms, drawn evenly from some rows (None: from all)."""
        return self.only(draw_eligible_row(seed, rows, total=self.rows.total, count=count))

    def rows_of(self, eligible: EligibleRows) -> NDArray[np.int64] | None:
        """Return the rows that are eligible, in order, or None for all there ever were."""
        if len(eligible.listed):
            count, listed = len(self.arms.order), eligible.listed.astype(np.int64)
            known = self.arms.order[np.minimum(listed, count - 1)]
            return np.where(listed < count, known, self.first_more + listed - count)
        if len(eligible.mask):
            return np.flatnonzero(self.rows.live & eligible.mask)
        return self.rows.live_rows if len(self) < self.rows.total else None

    # -- changes

    def added(
        self, points: Floats, ids: Iterable[Any] | None, columns: Any = None
    ) -> FrozenCatalogue:
        """Return a catalogue with more arms at its end."""
        rows = self.rows.added(len(points), ids, features=None, columns=columns)
        return self._grown(rows, points)

    def upserted(
        self, points: Floats, ids: list[Any], columns: Any = None, *, by_id: bool = False
    ) -> tuple[FrozenCatalogue, Upserted]:
        """Return a catalogue with more arms, in place of those of the same ids, and counts.

        Where ids alone are known, points say nothing.
        """

        def are_near(given: NDArray[np.int64], rows: Rows) -> Mask:
            """Compare coordinates, but for rounding."""
            gaps = np.isclose(self.points_of(rows), points[given], rtol=1e-4, atol=1e-4)
            return np.asarray(gaps.all(axis=1) | by_id)

        rows, fresh, counts = self.rows.upserted(
            ids, features=None, columns=columns, is_same=are_near
        )
        return self._grown(rows, points[fresh]), counts

    def discarded(self, ids: Iterable[Any]) -> tuple[FrozenCatalogue, list[Any]]:
        """Return a catalogue without some arms, and the ids that could not be chosen before."""
        rows, missing = self.rows.discarded(ids)
        return replace(self, rows=rows), missing

    def _grown(self, rows: ArmRows, points: Floats) -> FrozenCatalogue:
        more = read_only(np.concatenate([self.more, points.astype(np.float32)]))
        return replace(self, rows=rows, more=more)

    # -- partitions

    def in_partitions(self) -> FrozenArms:
        """Put all arms that can be chosen into partitions anew; takes seconds for a million."""
        rows = np.concatenate([self.arms.order, self.first_more + np.arange(len(self.more))])
        vectors = np.concatenate([self.arms.points, self.more])
        is_live = self.rows.live[rows]
        rows, vectors = rows[is_live], vectors[is_live]
        order = np.argsort(rows, kind="stable")
        partitions = build_partitions(vectors[order])
        near = neighbour_graph(partitions)
        return FrozenArms.of(partitions, rows[order], near, dtype=self.arms.dtype)

    def moved_into(self, arms: FrozenArms, before: FrozenCatalogue) -> FrozenCatalogue:
        """Return these arms with partitions that were made of an earlier state."""
        return replace(self, arms=arms, more=read_only(self.more[len(before.more) :]))
