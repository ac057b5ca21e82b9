"""Brings a bandit's arms, and their columns, to where the log says they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fastbandit.arms.catalogue import Catalogue
from fastbandit.bandit import Bandit
from fastbandit.runtime.columns import Columns
from fastbandit.storage.events import Arm, ArmId, ArmsChanged


def apply_changes(
    bandit: Bandit, columns: Columns | None, changes: Iterable[ArmsChanged]
) -> Columns | None:
    """Put arms into a bandit and take them out, in the order of the log; give the columns.

    An arm that is there just so is left alone; one that differs takes a new row. A change that
    would take the last arm takes none: so does what serves.
    """
    for put, taken in _batches(bandit, changes):
        columns = _put(bandit, columns, put)
        there = [id for id in taken if _catalogue(bandit).is_live(id)]
        if there:
            bandit.discard_arms(there)
    return columns


def _batches(
    bandit: Bandit, changes: Iterable[ArmsChanged]
) -> Iterator[tuple[dict[ArmId, Arm], list[ArmId]]]:
    """Join changes that touch different arms: they can be made at once.

    Each batch must be made before the next is asked for.
    """
    put: dict[ArmId, Arm] = {}
    taken: dict[ArmId, None] = {}
    eligible_count = len(bandit)
    for change in changes:
        ids = [*(arm.id for arm in change.upserted), *change.discarded]
        if any(id in put or id in taken for id in ids):
            yield put, list(taken)
            put, taken = {}, {}
        fresh, gone = _counts(_catalogue(bandit), change)
        put |= {arm.id: arm for arm in change.upserted}
        eligible_count += fresh
        if gone < eligible_count:
            taken |= dict.fromkeys(change.discarded)
            eligible_count -= gone
    yield put, list(taken)


def _counts(catalogue: Catalogue, change: ArmsChanged) -> tuple[int, int]:
    """Count the arms that a change opens, and those that it then takes."""
    put = {arm.id for arm in change.upserted}
    fresh = sum(not catalogue.is_live(id) for id in put)
    gone = sum(id in put or catalogue.is_live(id) for id in set(change.discarded))
    return fresh, gone


def _put(bandit: Bandit, columns: Columns | None, put: dict[ArmId, Arm]) -> Columns | None:
    catalogue = _catalogue(bandit)
    fresh = [arm for arm in put.values() if not _is_there(catalogue, columns, arm)]
    if not fresh:
        return columns
    features = np.array([arm.features for arm in fresh], dtype=np.float32)
    if columns is not None:
        values = {name: [(arm.columns or {}).get(name) for arm in fresh] for name in columns}
        columns = columns.added(values, rows=len(fresh))
    bandit.upsert_arms(features, ids=[arm.id for arm in fresh])
    return columns


def _is_there(catalogue: Catalogue, columns: Columns | None, arm: Arm) -> bool:
    """Tell whether an arm can be chosen and has these features and columns."""
    if not catalogue.is_live(arm.id):
        return False
    row = int(catalogue.table.rows([arm.id])[0])
    features: Any = catalogue.features.dense
    is_same = np.array_equal(features[row], np.asarray(arm.features, dtype=np.float32))
    return is_same and (columns is None or columns.row(row) == (arm.columns or {}))


def _catalogue(bandit: Bandit) -> Catalogue:
    arms = bandit.policy.arms
    assert isinstance(arms, Catalogue)
    return arms
