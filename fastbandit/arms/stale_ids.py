"""Ids that no arm has, or none has any more: left out of what is eligible, and counted.

Whoever asks holds a list of arms that is a little older than the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.eligibility import as_mask, has_predicates, is_group
from fastbandit.arms.ids import ArmIds, has_kind, list_ids
from fastbandit.arms.rows import ArmRows, Rows


class KnownIds(list[Any]):
    """Ids of arms that can be chosen; `found` are their rows among those that they were read for.

    Of a hundred thousand ids each look-up takes milliseconds: one is enough.
    """

    def __init__(self, ids: list[Any], rows: ArmRows, found: Rows) -> None:
        super().__init__(ids)
        self.rows, self.found = rows, found


def drop_stale(eligible: Any, rows: ArmRows, *, contexts: int) -> tuple[Any, NDArray[np.int64]]:
    """Return what is eligible without stale ids, and how many those are for each context.

    Masks and predicates have none. Where no other id is left, they stay, to be rejected.
    """
    if _names_no_ids(eligible) or (isinstance(eligible, KnownIds) and eligible.rows is rows):
        return eligible, np.zeros(contexts, dtype=np.int64)
    if has_predicates(eligible, contexts=contexts):
        groups = list(eligible)
    else:
        items = list_ids(eligible, what="Eligible arms")
        if not _are_groups(items, rows.ids):
            left, count = known_of(items, rows)
            return (left if count else eligible), np.full(contexts, count, dtype=np.int64)
        if len(items) != contexts:
            return eligible, np.zeros(contexts, dtype=np.int64)
        groups = items
    pairs = [(one, 0) if _names_no_ids(one) else known_of(list_ids(one), rows) for one in groups]
    return [left for left, _ in pairs], np.array([count for _, count in pairs], dtype=np.int64)


def check_known(eligible: Any, ids: ArmIds) -> None:
    """Raise where an id is eligible that no arm ever had."""
    if _names_no_ids(eligible) or (isinstance(eligible, KnownIds) and eligible.rows.ids is ids):
        return
    items = list_ids(eligible, what="Eligible arms")
    is_mixed = has_kind(items, Mapping)
    for group in items if is_mixed or _are_groups(items, ids) else [items]:
        if not _names_no_ids(group):
            ids.rows(group)


def _names_no_ids(eligible: Any) -> bool:
    return eligible is None or isinstance(eligible, Mapping) or as_mask(eligible) is not None


def _are_groups(items: list[Any], ids: ArmIds) -> bool:
    """Return whether these are lists of ids, one for each context; tuples may be ids."""
    return bool(items) and all(map(is_group, items)) and not any(item in ids for item in items)


def known_of(ids: list[Any], rows: ArmRows) -> tuple[list[Any], int]:
    """Return the ids of arms that can be chosen, and how many others there are; or all."""
    found = rows.live_rows_of(ids)
    are_live = found >= 0
    count = len(ids) - int(np.count_nonzero(are_live))
    if count and count == len(ids):
        return ids, 0
    if count:
        ids = [id for id, is_live in zip(ids, are_live.tolist(), strict=True) if is_live]
        found = found[are_live]
    return KnownIds(ids, rows, found), count
