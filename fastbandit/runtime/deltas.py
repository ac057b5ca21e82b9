"""Checks that new constants or weights of some arms fit the bandit that they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbandit.arms.partitions import Floats
from fastbandit.errors import InputError, NotFiniteError, SettingError, ShapeError
from fastbandit.features.kinds import shown


def check_delta(
    own: Floats, rows: Any, means: Any, deviations: Any
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return rows, means and deviations of what arms have of their own, or say what is wrong.

    `own` is what they have: a constant an arm (N,), or weights (N, K).
    """
    arms = len(own)
    if not arms:
        raise SettingError(
            "A delta needs arms with constants or weights of their own: this bandit has none. "
            "Build it with posterior='arm-effects', and update it first."
        )
    listed, middle, width = np.asarray(rows), np.asarray(means), np.asarray(deviations)
    wanted = (listed.size, *own.shape[1:])
    are_alike = listed.shape == wanted[:1] and middle.shape == width.shape == wanted
    if not are_alike or listed.dtype.kind not in "iu":
        raise ShapeError(
            f"A delta needs a row for each arm, and means and deviations of shape {wanted}: got "
            f"{shown(rows)}, {shown(means)} and {shown(deviations)}. Give all three for each arm."
        )
    if listed.size and not 0 <= listed.min() <= listed.max() < arms:
        raise InputError(
            f"A delta needs rows of the arms that were frozen, from 0 to {arms - 1}: got "
            f"{listed.min()} to {listed.max()}. Apply it to the bandit it was made for."
        )
    middle, width = middle.astype(np.float32), width.astype(np.float32)
    if not (np.isfinite(middle).all() and np.isfinite(width).all() and (width >= 0).all()):
        raise NotFiniteError(
            "A delta needs finite means, and deviations of 0 or more: got others. Leave those "
            "arms out."
        )
    return listed.astype(np.int64), middle, width
