"""Changes of the arms, as requests bring them: checked, and made in a frozen bandit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.errors import InputError, NotFiniteError, ShapeError
from fastbandit.runtime.frozen import FrozenBandit
from fastbandit.runtime.live import Put
from fastbandit.storage.events import Arm, ArmsChanged

_LARGEST = 1e30


def apply_change(bandit: FrozenBandit, change: ArmsChanged, *, is_trial: bool = False) -> Put:
    """Upsert or discard arms of a bandit; a trial only raises what that would raise."""
    counts = Put(0, 0, 0)
    if change.upserted:
        columns = _columns_of(change.upserted)
        if columns and bandit.columns is None:
            raise InputError(
                f"New arms need the columns of the others: got {', '.join(columns)}, and the "
                f"others have none. Leave columns out, or name them in arms.columns and begin with "
                f"a new data folder."
            )
        counts = bandit.upsert_arms(
            _features_of(change.upserted),
            ids=[arm.id for arm in change.upserted],
            columns=columns,
            is_trial=is_trial,
        )
    if change.discarded:
        bandit.discard_arms(change.discarded, is_trial=is_trial)
    return counts


def _features_of(arms: Sequence[Arm]) -> NDArray[np.float32]:
    """Stack the features of arms, if all have as many, of ordinary size."""
    counts = [len(arm.features) for arm in arms]
    odd = next((place for place, count in enumerate(counts) if count != counts[0]), None)
    if odd is not None:
        raise ShapeError(
            f"Arms need equally many features: got {counts[0]} for {arms[0].id!r} and "
            f"{counts[odd]} for {arms[odd].id!r}. Send as many as the others have."
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
    """Return the columns of arms by name, if all have the same."""
    names = set(arms[0].columns or ())
    odd = next((arm for arm in arms if set(arm.columns or ()) != names), None)
    if odd is not None:
        raise InputError(
            f"Arms need the same columns: got {sorted(names)} for {arms[0].id!r} and "
            f"{sorted(odd.columns or ())} for {odd.id!r}. Send a value in each column."
        )
    columns = {name: [(arm.columns or {})[name] for arm in arms] for name in sorted(names)}
    return columns or None
