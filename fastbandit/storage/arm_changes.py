"""Changes of the arms, as the log holds them, made in a bandit that learns or that serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.columns import Columns
from fastbandit.arms.rows import Upserted
from fastbandit.errors import InputError, NotFiniteError, ShapeError
from fastbandit.storage.events import Arm, ArmId, ArmsChanged

_LARGEST = 1e30


@runtime_checkable
class HoldsArms(Protocol):
    """A bandit whose arms can be changed."""

    @property
    def columns(self) -> Columns | None: ...

    def __len__(self) -> int: ...

    def __contains__(self, id: Any) -> bool: ...

    def upsert_arms(
        self, arms: Any, *, ids: Iterable[Any], columns: Any = None, is_trial: bool = False
    ) -> Upserted: ...

    def discard_arms(self, ids: Iterable[Any], *, is_trial: bool = False) -> list[Any]: ...


def apply_change(bandit: HoldsArms, change: ArmsChanged, *, is_trial: bool = False) -> Upserted:
    """Upsert arms into a bandit, then discard some; a trial only raises what that would raise.

    An arm that is there just so is left alone; one that differs takes a new row.
    """
    counts = Upserted(0, 0, 0)
    if change.upserted:
        columns = _columns_of(change.upserted)
        if columns and bandit.columns is None:
            raise InputError(
                f"New arms need the columns of the others: got {', '.join(columns)}, and the "
                f"others have none. Leave columns out, or name them in arms.columns and begin with "
                f"a new data folder."
            )
        features, ids = _features_of(change.upserted), [arm.id for arm in change.upserted]
        counts = bandit.upsert_arms(features, ids=ids, columns=columns, is_trial=is_trial)
    if change.discarded:
        bandit.discard_arms(change.discarded, is_trial=is_trial)
    return counts


def apply_changes(bandit: HoldsArms, changes: Iterable[ArmsChanged]) -> None:
    """Make changes in the order of the log, many at once where they touch different arms.

    A change that would discard the last arm discards none: so does what serves.
    """
    for batch in _batches(bandit, changes):
        apply_change(bandit, batch)


def _batches(bandit: HoldsArms, changes: Iterable[ArmsChanged]) -> Iterator[ArmsChanged]:
    """Join changes that touch different arms; make each before the next is asked for."""
    upserted: dict[ArmId, Arm] = {}
    discarded: dict[ArmId, None] = {}
    live_count = len(bandit)
    for change in changes:
        has_columns = bandit.columns is not None
        arms = {a.id: a if has_columns else Arm(a.id, a.features) for a in change.upserted}
        if any(id in upserted or id in discarded for id in (*arms, *change.discarded)):
            yield ArmsChanged(list(upserted.values()), list(discarded))
            upserted, discarded = {}, {}
        upserted |= arms
        live_count += sum(id not in bandit for id in arms)
        gone = sum(id in arms or id in bandit for id in set(change.discarded))
        if gone < live_count:
            discarded |= dict.fromkeys(change.discarded)
            live_count -= gone
    yield ArmsChanged(list(upserted.values()), list(discarded))


def _features_of(arms: Sequence[Arm]) -> NDArray[np.float32]:
    """Stack the features of arms, if all have as many, of ordinary size."""
    odd = next((arm for arm in arms if len(arm.features) != len(arms[0].features)), None)
    if odd is not None:
        raise ShapeError(
            f"Arms need equally many features: got {len(arms[0].features)} for {arms[0].id!r} and "
            f"{len(odd.features)} for {odd.id!r}. Send as many as the others have."
        )
    features = np.array([arm.features for arm in arms], dtype=np.float64)
    huge = np.flatnonzero(~(np.abs(features) <= _LARGEST).all(axis=1))
    if len(huge):
        raise NotFiniteError(
            f"Arms need features of ordinary size, at most {_LARGEST:g}: got "
            f"{arms[huge[0]].features} for {arms[huge[0]].id!r}. Scale the features."
        )
    return features.astype(np.float32)


def _columns_of(arms: Sequence[Arm]) -> dict[str, list[Any]] | None:
    names = set(arms[0].columns or ())
    odd = next((arm for arm in arms if set(arm.columns or ()) != names), None)
    if odd is not None:
        raise InputError(
            f"Arms need the same columns: got {sorted(names)} for {arms[0].id!r} and "
            f"{sorted(odd.columns or ())} for {odd.id!r}. Send a value in each column."
        )
    columns = {name: [(arm.columns or {})[name] for arm in arms] for name in sorted(names)}
    return columns or None
