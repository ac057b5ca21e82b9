"""Features of one context or arm by name, each of which can be set back to its typical value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.arrays import Mask
from fastbandit.features.kinds import FeaturesAndIds, Image
from fastbandit.types import Features, Inputs

MOST = 256
"""So many groups at most: of more columns, some that lie side by side share a name."""
_NO_ID = np.iinfo(np.int64).max  # which every encoder takes for an id that came later


def names_and_spans(kind: Features, *, prefix: str) -> dict[str, slice]:
    """Return the columns of each named feature of a kind; without a schema each column is one."""
    if isinstance(kind, FeaturesAndIds):
        return names_and_spans(kind.features, prefix=prefix)
    if isinstance(kind, Image):
        return {prefix: slice(0, kind.height * kind.width)}
    schema = getattr(kind, "schema", None)
    if schema is not None:
        return dict(schema.spans)
    return _blocks(int(getattr(kind, "dim", 0)), prefix)


def _blocks(columns: int, prefix: str) -> dict[str, slice]:
    size = max(1, -(-columns // MOST))
    spans = {}
    for first in range(0, columns, size):
        last = min(first + size, columns)
        name = f"{prefix}[{first}]" if size == 1 else f"{prefix}[{first}:{last}]"
        spans[name] = slice(first, last)
    return spans


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """One row of features, and what is typical of each of them.

    `members` says to which group each dense column belongs, or each entry of a sparse row. The
    typical sparse row is empty. Where the row has an id, that is the last group.
    """

    names: tuple[str, ...]
    row: Inputs
    members: NDArray[np.int64]
    typical: NDArray[np.float64]

    @staticmethod
    def of(
        row: Inputs,
        kind: Features,
        *,
        typical: Any = None,
        prefix: str,
        id_name: str | None = None,
    ) -> FeatureGroups:
        """Group the features of a row; a typical row that is not known is one of zeros."""
        names: list[str] = []
        members, usual = np.zeros(0, dtype=np.int64), np.zeros(0)
        if row.dense is not None:
            columns = row.dense.size
            spans = names_and_spans(kind, prefix=prefix) or _blocks(columns, prefix)
            names, members = list(spans), np.zeros(columns, dtype=np.int64)
            for number, span in enumerate(spans.values()):
                members[span] = number
            known = np.zeros(0) if typical is None else np.ravel(np.asarray(typical, np.float64))
            usual = known if len(known) == columns else np.zeros(columns)
        elif row.sparse is not None:
            entries = row.sparse.indices
            size = max(1, -(-len(entries) // MOST))
            members = np.arange(len(entries)) // size
            for first in range(0, len(entries), size):
                last = min(first + size, len(entries)) - 1
                more = "" if first == last else f"..{entries[last]}"
                names.append(f"{prefix}[{entries[first]}{more}]")
        if row.ids is not None:
            names.append(prefix if id_name is None else id_name)
        return FeatureGroups(tuple(names), row, members, usual)

    def mixed(self, present: Mask) -> Inputs:
        """Return rows that have the groups marked in (n, groups); others are as is typical."""
        count, row = len(present), self.row
        dense = sparse = ids = None
        if row.dense is not None:
            flat = np.where(present[:, self.members], row.dense.ravel(), self.typical)
            dense = flat.astype(np.float32).reshape(count, *row.dense.shape[1:])
        if row.sparse is not None:
            from scipy.sparse import csr_matrix

            size = len(self.members)
            data = np.where(present[:, self.members], row.sparse.data, 0).astype(np.float32)
            columns = np.tile(row.sparse.indices, count)
            starts = np.arange(count + 1) * size
            shape = (count, row.sparse.shape[1])
            sparse = csr_matrix((data.ravel(), columns, starts), shape=shape)
        if row.ids is not None:
            ids = np.where(present[:, len(self.names) - 1], row.ids[0], _NO_ID)
        return Inputs(dense=dense, sparse=sparse, ids=ids)
